"""SQLite: what a statement may call, and what to write instead of some others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCALAR = """abs char coalesce concat concat_ws format glob hex ifnull iif if instr length like
likelihood likely lower ltrim max min nullif octet_length printf quote random replace round rtrim
sign soundex sqlite_version substr substring trim typeof unhex unicode unistr unlikely upper cast
randomblob zeroblob total_changes changes last_insert_rowid"""
_AGGREGATE = """avg count group_concat string_agg sum total median percentile percentile_cont
percentile_disc"""
_WINDOW = """row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value
last_value nth_value"""
_DATE = """date time datetime julianday unixepoch strftime timediff current_date current_time
current_timestamp"""
_MATH = """acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log
log10 log2 mod pi pow power radians sin sinh sqrt tan tanh trunc"""
_JSON = """json json_array json_array_length json_error_position json_extract json_group_array
json_group_object json_insert json_object json_patch json_pretty json_quote json_remove
json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract jsonb_group_array
jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set"""
_SEARCH = "bm25 highlight snippet offsets matchinfo match"

ALLOWED = frozenset(" ".join((_SCALAR, _AGGREGATE, _WINDOW, _DATE, _MATH, _JSON, _SEARCH)).split())

_JSON_ROWS = ("key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root")

TABLE_FUNCTIONS: Mapping[str, tuple[str, ...]] = {"json_each": _JSON_ROWS, "json_tree": _JSON_ROWS}

INSTEAD: Mapping[str, str] = {
    "year": "strftime('%Y', d)",
    "month": "strftime('%m', d)",
    "day": "strftime('%d', d)",
    "hour": "strftime('%H', d)",
    "extract": "strftime('%Y', d)",
    "date_part": "strftime('%Y', d)",
    "date_trunc": "date(d, 'start of month')",
    "date_format": "strftime('%Y-%m', d)",
    "to_char": "strftime('%Y-%m', d)",
    "to_date": "date(d)",
    "datediff": "julianday(a) - julianday(b)",
    "date_diff": "julianday(a) - julianday(b)",
    "date_add": "date(d, '+1 day')",
    "date_sub": "date(d, '-1 day')",
    "dateadd": "date(d, '+1 day')",
    "now": "datetime('now')",
    "getdate": "datetime('now')",
    "curdate": "date('now')",
    "left": "substr(s, 1, n)",
    "right": "substr(s, -n)",
    "mid": "substr(s, start, n)",
    "len": "length(s)",
    "char_length": "length(s)",
    "isnull": "ifnull(a, b)",
    "nvl": "ifnull(a, b)",
    "greatest": "max(a, b)",
    "least": "min(a, b)",
    "position": "instr(s, part)",
    "strpos": "instr(s, part)",
    "locate": "instr(s, part)",
    "charindex": "instr(s, part)",
    "to_number": "CAST(s AS REAL)",
    "convert": "CAST(s AS REAL)",
    "try_cast": "CAST(s AS REAL)",
    "array_agg": "group_concat(s)",
    "listagg": "group_concat(s, ', ')",
    "stddev": "sqrt(avg(x * x) - avg(x) * avg(x))",
    "std": "sqrt(avg(x * x) - avg(x) * avg(x))",
    "stdev": "sqrt(avg(x * x) - avg(x) * avg(x))",
    "stddev_pop": "sqrt(avg(x * x) - avg(x) * avg(x))",
    "variance": "avg(x * x) - avg(x) * avg(x)",
    "regexp": "LIKE or GLOB",
    "regexp_like": "LIKE or GLOB",
    "generate_series": "a recursive WITH",
}
