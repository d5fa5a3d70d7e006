"""MySQL and MariaDB: what a statement may call, and what to write instead of some others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT = """ascii bin bit_length char char_length character_length chr concat concat_ws conv elt
export_set field find_in_set format from_base64 hex insert instr lcase left length locate lower
lpad ltrim make_set mid oct octet_length ord position quote regexp_instr
regexp_replace regexp_substr repeat replace reverse right rpad rtrim soundex space strcmp substr
substring substring_index to_base64 trim ucase unhex upper md5 sha sha1 sha2 crc32
natural_sort_key weight_string"""
_MATH = """abs acos asin atan atan2 ceil ceiling cos cot degrees exp floor ln log log10 log2 mod
pi pow power radians rand round sign sin sqrt tan truncate bit_count"""
_GENERAL = """coalesce ifnull nullif if isnull greatest least interval cast convert binary uuid
version database schema nvl nvl2 inet_aton
inet_ntoa inet6_aton inet6_ntoa is_ipv4 is_ipv6 exists row charset collation match values"""
_DATE = """adddate addtime convert_tz curdate current_date current_time current_timestamp curtime
date date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear extract
from_days from_unixtime get_format hour last_day localtime localtimestamp makedate maketime
microsecond minute month monthname now period_add period_diff quarter sec_to_time second
str_to_date subdate subtime sysdate time time_format time_to_sec timediff timestamp timestampadd
timestampdiff to_char to_days to_seconds unix_timestamp utc_date utc_time utc_timestamp week
weekday weekofyear year yearweek add_months"""
_AGGREGATE = """avg bit_and bit_or bit_xor count cume_dist dense_rank first_value group_concat
json_arrayagg json_objectagg lag last_value lead max median min nth_value ntile percent_rank
percentile_cont percentile_disc rank row_number std stddev stddev_pop stddev_samp sum var_pop
var_samp variance"""
_JSON = """json_array json_array_append json_array_insert json_compact json_contains
json_contains_path json_depth json_detailed json_equals json_exists json_extract json_insert
json_keys json_length json_loose json_merge json_merge_patch json_merge_preserve json_normalize
json_object json_overlaps json_pretty json_query json_quote json_remove json_replace json_search
json_set json_type json_unquote json_valid json_value"""

# Only what MySQL and MariaDB both have: a name that one of them does not know, as MariaDB
# any_value, grouping, regexp_like and uuid_to_bin, is a stored function there.
ALLOWED = frozenset(" ".join((_TEXT, _MATH, _GENERAL, _DATE, _AGGREGATE, _JSON)).split())

TABLE_FUNCTIONS: Mapping[str, tuple[str, ...]] = {"json_table": ()}

INSTEAD: Mapping[str, str] = {
    "any_value": "MAX(x)",
    "regexp_like": "s REGEXP 'pattern'",
    "grouping": "x IS NULL, with GROUP BY x WITH ROLLUP",
    "cube": "GROUP BY x, y WITH ROLLUP",
    "rollup": "GROUP BY x, y WITH ROLLUP",
    "strftime": "DATE_FORMAT(d, '%Y-%m')",
    "to_date": "STR_TO_DATE(s, '%Y-%m-%d')",
    "to_timestamp": "FROM_UNIXTIME(n)",
    "date_part": "EXTRACT(YEAR FROM d)",
    "date_trunc": "DATE_FORMAT(d, '%Y-%m-01')",
    "julianday": "TO_DAYS(d)",
    "date_diff": "DATEDIFF(a, b)",
    "dateadd": "DATE_ADD(d, INTERVAL 1 DAY)",
    "datetime": "CAST(d AS DATETIME)",
    "make_date": "STR_TO_DATE(CONCAT(y, '-', m, '-', d), '%Y-%m-%d')",
    "age": "TIMESTAMPDIFF(YEAR, a, b)",
    "unixepoch": "UNIX_TIMESTAMP(d)",
    "epoch": "UNIX_TIMESTAMP(d)",
    "getdate": "NOW()",
    "today": "CURDATE()",
    "clock_timestamp": "SYSDATE()",
    "iif": "IF(condition, a, b)",
    "string_agg": "GROUP_CONCAT(s SEPARATOR ', ')",
    "listagg": "GROUP_CONCAT(s SEPARATOR ', ')",
    "array_agg": "GROUP_CONCAT(s) or JSON_ARRAYAGG(s)",
    "json_agg": "JSON_ARRAYAGG(x)",
    "jsonb_agg": "JSON_ARRAYAGG(x)",
    "json_group_array": "JSON_ARRAYAGG(x)",
    "json_build_object": "JSON_OBJECT('a', x)",
    "total": "SUM(x)",
    "stdev": "STDDEV_SAMP(x)",
    "bool_or": "MAX(condition)",
    "bool_and": "MIN(condition)",
    "arg_max": "a window: ROW_NUMBER() OVER (ORDER BY b DESC) = 1",
    "max_by": "a window: ROW_NUMBER() OVER (ORDER BY b DESC) = 1",
    "approx_count_distinct": "COUNT(DISTINCT x)",
    "strpos": "LOCATE(part, s)",
    "charindex": "LOCATE(part, s)",
    "len": "CHAR_LENGTH(s)",
    "split_part": "SUBSTRING_INDEX(SUBSTRING_INDEX(s, ',', n), ',', -1)",
    "initcap": "CONCAT(UPPER(LEFT(s, 1)), LOWER(SUBSTRING(s, 2)))",
    "btrim": "TRIM(s)",
    "starts_with": "s LIKE 'x%'",
    "glob": "REGEXP",
    "regexp_matches": "s REGEXP 'pattern'",
    "try_cast": "CAST(x AS DECIMAL)",
    "to_number": "CAST(s AS DECIMAL(20, 4))",
    "trunc": "TRUNCATE(x, n)",
    "random": "RAND()",
    "div": "a DIV b",
    "cbrt": "POW(x, 1 / 3)",
    "printf": "FORMAT(x, 2)",
    "generate_series": "a recursive WITH",
    "unnest": "JSON_TABLE",
    "quantile": "a window with PERCENT_RANK()",
    "hex_to_int": "CONV(s, 16, 10)",
}
