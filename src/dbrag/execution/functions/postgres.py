"""PostgreSQL: what a statement may call, and what to write instead of some others.

Left out on purpose, beside files, locks and settings: ``ts_stat``, ``ts_rewrite``,
``query_to_xml`` and their like run text as SQL; ``xmlparse`` and ``xpath`` read XML;
``currval`` and ``txid_current`` touch the session or assign a transaction number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT = """ascii bit_length btrim char_length character_length chr concat concat_ws convert_from
convert_to decode encode format initcap left length lower lpad ltrim md5 normalize octet_length
overlay parse_ident position quote_ident quote_literal quote_nullable regexp_count regexp_instr
regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
regexp_split_to_table regexp_substr repeat replace reverse right rpad rtrim sha224 sha256 sha384
sha512 split_part starts_with string_to_array string_to_table strpos substr substring to_ascii
to_hex translate trim unistr upper get_bit get_byte set_bit set_byte bit_count similarity
word_similarity strict_word_similarity unaccent levenshtein soundex difference metaphone
dmetaphone"""
_MATH = """abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling
cos cosd cosh cot cotd degrees div erf exp factorial floor gcd lcm ln log log10 min_scale mod pi
pow power radians random round scale sign sin sind sinh sqrt tan tand tanh trim_scale trunc
width_bucket"""
_GENERAL = """coalesce nullif greatest least cast num_nonnulls num_nulls pg_typeof isfinite
gen_random_uuid version current_database grouping row array text bool int2 int4 int8 float4
float8 numeric varchar bpchar exists any all some isempty lower_inc upper_inc lower_inf upper_inf
range_merge int4range int8range numrange tsrange tstzrange daterange host masklen netmask network
broadcast family abbrev inet cidr hostmask"""
_DATE = """age clock_timestamp date date_bin date_part date_trunc extract interval justify_days
justify_hours justify_interval make_date make_interval make_time make_timestamp make_timestamptz
now statement_timestamp timeofday timestamp timestamptz timezone to_char to_date to_number
to_timestamp transaction_timestamp current_date current_time current_timestamp localtime
localtimestamp time overlaps"""
_AGGREGATE = """any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count
covar_pop covar_samp cume_dist dense_rank every first_value json_agg json_object_agg jsonb_agg
jsonb_object_agg lag last_value lead max min mode nth_value ntile percent_rank percentile_cont
percentile_disc range_agg range_intersect_agg rank regr_avgx regr_avgy regr_count regr_intercept
regr_r2 regr_slope regr_sxx regr_sxy regr_syy row_number stddev stddev_pop stddev_samp string_agg
sum var_pop var_samp variance"""
_ARRAY = """array_append array_cat array_dims array_fill array_length array_lower array_ndims
array_position array_positions array_prepend array_remove array_replace array_to_string
array_upper cardinality generate_series generate_subscripts trim_array unnest array_to_json"""
_JSON = """json_array_elements json_array_elements_text json_array_length json_build_array
json_build_object json_each json_each_text json_extract_path json_extract_path_text json_object
json_object_keys json_populate_record json_populate_recordset json_strip_nulls json_to_record
json_to_recordset json_typeof jsonb_array_elements jsonb_array_elements_text jsonb_array_length
jsonb_build_array jsonb_build_object jsonb_concat jsonb_each jsonb_each_text jsonb_exists
jsonb_exists_all jsonb_exists_any jsonb_extract_path jsonb_extract_path_text jsonb_insert
jsonb_object jsonb_object_keys jsonb_path_exists jsonb_path_exists_tz jsonb_path_match
jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_pretty jsonb_set
jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof row_to_json
to_json to_jsonb"""
_SEARCH = """array_to_tsvector numnode phraseto_tsquery plainto_tsquery querytree setweight strip
to_tsquery to_tsvector ts_delete ts_filter ts_headline ts_rank ts_rank_cd tsvector_to_array
websearch_to_tsquery"""

ALLOWED = frozenset(
    " ".join((_TEXT, _MATH, _GENERAL, _DATE, _AGGREGATE, _ARRAY, _JSON, _SEARCH)).split()
)

TABLE_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "generate_series": ("*",),
    "generate_subscripts": ("*",),
    "unnest": ("*",),
    "regexp_split_to_table": ("*",),
    "regexp_matches": ("*",),
    "string_to_table": ("*",),
    "json_array_elements": ("*", "value"),
    "json_array_elements_text": ("*", "value"),
    "jsonb_array_elements": ("*", "value"),
    "jsonb_array_elements_text": ("*", "value"),
    "json_object_keys": ("*",),
    "jsonb_object_keys": ("*",),
    "jsonb_path_query": ("*",),
    "json_each": ("key", "value"),
    "json_each_text": ("key", "value"),
    "jsonb_each": ("key", "value"),
    "jsonb_each_text": ("key", "value"),
    "json_to_record": (),
    "json_to_recordset": (),
    "jsonb_to_record": (),
    "jsonb_to_recordset": (),
}

INSTEAD: Mapping[str, str] = {
    "strftime": "to_char(d, 'YYYY-MM')",
    "date_format": "to_char(d, 'YYYY-MM')",
    "julianday": "a::date - b::date",
    "datediff": "a::date - b::date",
    "date_diff": "a::date - b::date",
    "timestampdiff": "extract(epoch FROM a - b)",
    "date_add": "d + interval '1 day'",
    "date_sub": "d - interval '1 day'",
    "dateadd": "d + interval '1 day'",
    "adddate": "d + interval '1 day'",
    "year": "extract(year FROM d)",
    "month": "extract(month FROM d)",
    "day": "extract(day FROM d)",
    "hour": "extract(hour FROM d)",
    "minute": "extract(minute FROM d)",
    "quarter": "extract(quarter FROM d)",
    "week": "extract(week FROM d)",
    "dayofweek": "extract(dow FROM d)",
    "dayofyear": "extract(doy FROM d)",
    "weekday": "extract(isodow FROM d)",
    "dayname": "to_char(d, 'Day')",
    "monthname": "to_char(d, 'Month')",
    "last_day": "(date_trunc('month', d) + interval '1 month - 1 day')::date",
    "datetime": "d::timestamp",
    "curdate": "current_date",
    "today": "current_date",
    "getdate": "now()",
    "sysdate": "now()",
    "unixepoch": "extract(epoch FROM d)",
    "unix_timestamp": "extract(epoch FROM d)",
    "from_unixtime": "to_timestamp(n)",
    "str_to_date": "to_date(s, 'YYYY-MM-DD')",
    "strptime": "to_timestamp(s, 'YYYY-MM-DD')",
    "ifnull": "coalesce(a, b)",
    "isnull": "coalesce(a, b)",
    "nvl": "coalesce(a, b)",
    "if": "CASE WHEN condition THEN a ELSE b END",
    "iif": "CASE WHEN condition THEN a ELSE b END",
    "group_concat": "string_agg(s::text, ', ')",
    "listagg": "string_agg(s::text, ', ')",
    "total": "sum(x)",
    "median": "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
    "quantile": "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
    "std": "stddev_pop(x)",
    "stdev": "stddev(x)",
    "approx_count_distinct": "count(DISTINCT x)",
    "arg_max": "(array_agg(a ORDER BY b DESC))[1]",
    "max_by": "(array_agg(a ORDER BY b DESC))[1]",
    "min_by": "(array_agg(a ORDER BY b))[1]",
    "instr": "strpos(s, part)",
    "locate": "strpos(s, part)",
    "charindex": "strpos(s, part)",
    "len": "length(s)",
    "mid": "substr(s, start, n)",
    "ucase": "upper(s)",
    "lcase": "lower(s)",
    "char": "chr(n)",
    "glob": "~ (a regular expression)",
    "regexp": "~ (a regular expression)",
    "try_cast": "CAST(x AS type)",
    "convert": "CAST(x AS type)",
    "typeof": "pg_typeof(x)",
    "json_extract": "j #>> '{a,b}'",
    "json_value": "j #>> '{a,b}'",
    "json_group_array": "json_agg(x)",
    "printf": "format('%s', x) or to_char(x, 'FM990.00')",
    "rand": "random()",
    "truncate": "trunc(x, n)",
    "find_in_set": "s = ANY(string_to_array(list, ','))",
    "list": "array_agg(x)",
    "list_contains": "x = ANY(list)",
}
