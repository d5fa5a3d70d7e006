"""Other dialects: only functions that all of them have and that only compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_STANDARD = """abs acos asin atan atan2 avg cast ceil ceiling char_length character_length
coalesce concat concat_ws corr cos count covar_pop covar_samp cume_dist current_date current_time
current_timestamp date date_add date_diff date_format date_part date_sub date_trunc dateadd
datediff datepart day dayofmonth dayofweek dayofyear degrees dense_rank exp extract first_value
floor format greatest group_concat grouping hour if ifnull iif instr isnull lag last_day
last_value lcase lead least left len length listagg ln localtimestamp locate log log10 log2 lower
lpad ltrim max median min minute mod month now nth_value ntile nullif nvl nvl2 percent_rank
percentile_cont percentile_disc pi position pow power quarter radians rank regexp_like
regexp_replace regexp_substr replace reverse right round row_number rpad rtrim second sign sin
sqrt stddev stddev_pop stddev_samp stdev strftime string_agg strpos substr substring sum tan
timestampdiff to_char to_date to_number to_timestamp translate trim trunc truncate try_cast ucase
upper var var_pop var_samp variance week year approx_count_distinct any_value array_agg
array_length cardinality safe_cast convert charindex eomonth getdate datefromparts decode
json_value json_extract json_extract_scalar get_json_object json_query"""

ALLOWED = frozenset(_STANDARD.split())

INSTEAD_TSQL: Mapping[str, str] = {
    "length": "LEN(s)",
    "now": "GETDATE()",
    "ifnull": "ISNULL(a, b)",
    "date_trunc": "DATETRUNC(month, d)",
    "group_concat": "STRING_AGG(s, ', ')",
    "extract": "DATEPART(year, d)",
    "strftime": "FORMAT(d, 'yyyy-MM')",
    "to_char": "FORMAT(d, 'yyyy-MM')",
}
