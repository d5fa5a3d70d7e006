"""DuckDB: what a statement may call, and what to write instead of some others.

Left out on purpose: everything that reads files or runs text as SQL (``read_*``, ``glob``,
``query``, ``query_table``, ``json_execute_serialized_sql``), that sleeps, logs, or shows
settings, variables and the catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT = """ascii base64 bar bin bit_count bit_length bit_position bitstring char_length
character_length chr concat concat_ws contains damerau_levenshtein decode editdist3 encode
ends_with format format_bytes from_base64 from_binary from_hex get_bit hamming hash hex instr
jaccard jaro_similarity jaro_winkler_similarity lcase left left_grapheme len length
length_grapheme levenshtein like_escape ilike_escape not_like_escape not_ilike_escape lower lpad
ltrim md5 md5_number mismatches nfc_normalize octet_length ord overlay parse_dirname
parse_dirpath parse_filename parse_path position prefix printf regexp_escape regexp_extract
regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array
regexp_split_to_table repeat replace reverse right right_grapheme rpad rtrim set_bit sha1 sha256
split split_part starts_with str_split str_split_regex string_split string_split_regex
string_to_array strip_accents strlen strpos substr substring substring_grapheme suffix to_base
to_base64 to_binary to_hex translate trim ucase unbin unhex unicode upper url_decode url_encode"""
_MATH = """abs acos acosh asin asinh atan atan2 atanh cbrt ceil ceiling cos cosh cot degrees
divide even exp factorial fdiv floor fmod gamma gcd greatest_common_divisor isfinite isinf isnan
lcm least_common_multiple lgamma ln log log10 log2 mod multiply nextafter pi pow power radians
random round round_even roundbankers sign signbit sin sinh sqrt subtract add tan tanh trunc xor
equi_width_bins"""
_GENERAL = """cast try_cast coalesce nullif ifnull if greatest least typeof get_type enum_code
enum_first enum_last enum_range enum_range_boundary gen_random_uuid uuid uuidv4 uuidv7 version
row struct_pack struct_extract struct_concat struct_contains struct_keys struct_values
struct_insert struct_has struct_position map map_concat map_contains map_contains_entry
map_contains_value map_entries map_extract map_extract_value map_from_entries map_keys map_values
union_value union_extract union_tag cardinality element_at exists columns grouping grouping_id
unnest unpack any all some constant_or_null replace_type"""
_DATE = """age ago century current_date current_localtime current_localtimestamp current_time
current_timestamp date date_add date_diff date_part date_sub date_trunc datediff datepart datesub
datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns
epoch_us era extract get_current_time get_current_timestamp hour isodow isoyear julian last_day
localtime localtimestamp make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns
make_timestamptz microsecond millennium millisecond minute month monthname nanosecond
normalized_interval now quarter second strftime strptime time_bucket timezone timezone_hour
timezone_minute to_centuries to_days to_decades to_hours to_microseconds to_millennia
to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years today
transaction_timestamp try_strptime week weekday weekofyear year yearweek"""
_AGGREGATE = """any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max
arg_max_null arg_min arg_min_null argmax argmin array_agg avg bit_and bit_or bit_xor
bitstring_agg bool_and bool_or corr count count_if count_star countif covar_pop covar_samp
cume_dist dense_rank entropy favg first first_value fsum geomean geometric_mean group_concat
histogram histogram_exact kahan_sum kurtosis kurtosis_pop lag last last_value lead list listagg
mad max max_by mean median min min_by mode nth_value ntile percent_rank percentile_cont
percentile_disc product quantile quantile_cont quantile_disc rank rank_dense regr_avgx regr_avgy
regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy reservoir_quantile
row_number sem skewness stddev stddev_pop stddev_samp string_agg sum sum_no_overflow sumkahan
var_pop var_samp variance wavg weighted_avg fill"""
_LIST = """aggregate apply array_aggr array_aggregate array_append array_apply array_cat
array_concat array_contains array_cosine_distance array_cosine_similarity array_cross_product
array_distance array_distinct array_dot_product array_extract array_filter array_grade_up
array_has array_has_all array_has_any array_indexof array_inner_product array_intersect
array_length array_pop_back array_pop_front array_position array_prepend array_push_back
array_push_front array_reduce array_resize array_reverse array_reverse_sort array_select
array_slice array_sort array_to_string array_transform array_unique array_value array_where
array_zip filter flatten generate_series generate_subscripts grade_up list_aggr list_aggregate
list_any_value list_append list_approx_count_distinct list_apply list_avg list_bit_and
list_bit_or list_bit_xor list_bool_and list_bool_or list_cat list_concat list_contains
list_cosine_distance list_cosine_similarity list_count list_distance list_distinct
list_dot_product list_element list_entropy list_extract list_filter list_first list_grade_up
list_has list_has_all list_has_any list_histogram list_indexof list_inner_product list_intersect
list_kurtosis list_last list_mad list_max list_median list_min list_mode list_pack list_position
list_prepend list_product list_reduce list_resize list_reverse list_reverse_sort list_select
list_skewness list_slice list_sort list_stddev_pop list_stddev_samp list_string_agg list_sum
list_transform list_unique list_value list_var_pop list_var_samp list_where list_zip range reduce"""
_JSON = """array_to_json from_json json json_array json_array_length json_contains json_exists
json_extract json_extract_path json_extract_path_text json_extract_string json_group_array
json_group_object json_group_structure json_insert json_keys json_merge_patch json_object
json_pretty json_quote json_remove json_replace json_set json_structure json_transform
json_transform_strict json_type json_valid json_value row_to_json to_json from_json_strict"""

ALLOWED = frozenset(" ".join((_TEXT, _MATH, _GENERAL, _DATE, _AGGREGATE, _LIST, _JSON)).split())

_JSON_ROWS = ("key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root")

TABLE_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "generate_series": ("*", "range", "generate_series"),
    "range": ("*", "range", "generate_series"),
    "unnest": ("*", "unnest"),
    "json_each": _JSON_ROWS,
    "json_tree": _JSON_ROWS,
    "generate_subscripts": ("*", "generate_subscripts"),
    "regexp_split_to_table": ("*",),
}

INSTEAD: Mapping[str, str] = {
    "julianday": "julian(d)",
    "date_format": "strftime(d, '%Y-%m')",
    "to_char": "strftime(d, '%Y-%m')",
    "to_date": "strptime(s, '%Y-%m-%d')::DATE",
    "str_to_date": "strptime(s, '%Y-%m-%d')",
    "dateadd": "d + INTERVAL 1 DAY",
    "adddate": "d + INTERVAL 1 DAY",
    "timestampdiff": "date_diff('day', a, b)",
    "timediff": "age(a, b)",
    "datetime": "CAST(d AS TIMESTAMP)",
    "unixepoch": "epoch(d)",
    "unix_timestamp": "epoch(d)",
    "from_unixtime": "to_timestamp(n)",
    "curdate": "current_date",
    "getdate": "now()",
    "sysdate": "now()",
    "clock_timestamp": "now()",
    "statement_timestamp": "now()",
    "nvl": "coalesce(a, b)",
    "isnull": "coalesce(a, b)",
    "iif": "if(condition, a, b)",
    "total": "sum(x)",
    "std": "stddev_pop(x)",
    "stdev": "stddev(x)",
    "json_agg": "json_group_array(x)",
    "jsonb_agg": "json_group_array(x)",
    "json_build_object": "json_object('a', x)",
    "locate": "strpos(s, part)",
    "charindex": "strpos(s, part)",
    "mid": "substr(s, start, n)",
    "char": "chr(n)",
    "glob": "s GLOB 'pattern'",
    "regexp": "regexp_matches(s, 'pattern')",
    "regexp_like": "regexp_matches(s, 'pattern')",
    "regexp_substr": "regexp_extract(s, 'pattern')",
    "substring_index": "split_part(s, ',', 1)",
    "initcap": "upper(s[1]) || lower(s[2:])",
    "btrim": "trim(s)",
    "convert": "CAST(x AS type)",
    "to_number": "CAST(s AS DOUBLE)",
    "pg_typeof": "typeof(x)",
    "rand": "random()",
    "truncate": "trunc(x)",
    "find_in_set": "list_contains(split(list, ','), s)",
    "width_bucket": "floor((x - low) / width)",
    "every": "bool_and(condition)",
    "read_csv": "the table's name: files are tables here",
    "read_parquet": "the table's name: files are tables here",
    "read_json": "the table's name: files are tables here",
}
