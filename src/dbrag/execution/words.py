"""Bare words a statement may hold: the second look at it, without a tree.

sqlglot and the engine need not agree on what a word means. So in what is about to run,
each word that is not quoted must be one of these, a function that may be called, or a
name that was looked up (and is quoted where an engine could take it for a keyword).
INTO, OUTFILE, LOCK, SHARE, RETURNING and their like are in none of these lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_QUERY = """select all distinct from where group by having order asc desc nulls first last limit
offset fetch next row rows only ties with recursive as on using join inner left right full outer
cross natural lateral union intersect except values not materialized window qualify percent at"""
_EXPRESSION = """and or not in is null true false unknown between symmetric like ilike similar to
escape case when then else end cast filter over partition range groups unbounded preceding
following current exclude no others within any some exists array row collate grouping sets cube
rollup distinct isnull notnull ignore respect interval zone local without extract for both
leading trailing placing position tablesample bernoulli system repeatable ordinality overlaps
default_ of"""
_UNITS = """century centuries day days decade decades dow doy epoch hour hours isodow isoyear
julian microsecond microseconds millennium millisecond milliseconds minute minutes month months
nanosecond quarter quarters second seconds timezone timezone_hour timezone_minute week weeks
weekday year years dayofweek dayofyear yearweek era"""
_NOW = "current_date current_time current_timestamp localtime localtimestamp"
_TYPES = """bigint binary bit blob bool boolean bytea char character date datetime dec decimal
double float int integer json jsonb nchar numeric nvarchar precision real smallint string text
time timestamp timestamptz timetz tinyint uuid varbinary varchar varying"""

_OWN: Mapping[str, str] = {
    "postgres": """only ordinality timestamptz int2 int4 int8 float4 float8 serial bpchar name
inet cidr macaddr macaddr8 point line lseg box path polygon circle money xml hstore citext oid
tsvector tsquery varbit int4range int8range numrange tsrange tstzrange daterange int4multirange
int8multirange nummultirange tsmultirange tstzmultirange datemultirange jsonpath vector halfvec
geometry geography nfc nfd nfkc nfkd normalized document asymmetric variadic operator""",
    "mysql": """div mod xor regexp rlike sounds straight_join separator against boolean mode
language query expansion binary signed unsigned charset character set utf8 utf8mb3 utf8mb4 latin1
ascii utf8mb4_general_ci utf8mb4_bin utf8mb4_unicode_ci utf8mb4_0900_ai_ci use force ignore index
key keys day_hour day_microsecond day_minute day_second hour_microsecond hour_minute hour_second
minute_microsecond minute_second second_microsecond year_month columns path nested error empty on
ordinality year member longtext mediumtext tinytext mediumint dual value _utf8 _utf8mb3 _utf8mb4
_latin1 _binary _ascii row_number straight sql_tsi_day""",
    "duckdb": """asof positional semi anti exclude replace rename columns pivot unpivot include
name value glob try_cast hugeint uhugeint utinyint usmallint uinteger ubigint int1 int2 int4 int8
int16 int32 int64 uint8 uint16 uint32 uint64 float4 float8 list struct map enum bitstring varint
bignum timestamp_s timestamp_ms timestamp_ns timestamp_us timestamptz signed short long bytea
lambda if sample reservoir system variant long geometry map""",
    "tsql": "top percent pivot unpivot nvarchar datetime2 datetimeoffset money bit max apply",
    "snowflake": "pivot unpivot number variant object top ilike rlike regexp",
    "bigquery": "pivot unpivot int64 float64 numeric bignumeric bytes struct replace safe_cast",
    "databricks": "pivot unpivot string long rlike struct map semi anti",
    "spark": "pivot unpivot string long rlike struct map semi anti",
    "trino": "varchar json map row try_cast",
    "oracle": "number varchar2 nvarchar2 clob dual minus pivot unpivot",
    "clickhouse": "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 string date32"
    " datetime64 any asof semi anti final prewhere",
}

_SHARED = frozenset(" ".join((_QUERY, _EXPRESSION, _UNITS, _NOW, _TYPES)).split())

# Words of others, by which a function may be called here.
_FOREIGN = {
    "mysql": frozenset({"array", "tablesample", "ilike", "qualify"}),
    "postgres": frozenset({"qualify"}),
}

WORDS: Mapping[str, frozenset[str]] = {
    name: (_SHARED | frozenset(words.split())) - _FOREIGN.get(name, frozenset())
    for name, words in _OWN.items()
}
"""Per dialect the bare words that may stand in a query, lower case."""


def words_of(dialect: str) -> frozenset[str]:
    """The bare words of a dialect."""
    return WORDS.get(dialect, _SHARED)


_MORE_TYPES = """int1 int2 int4 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float4 float8
bpchar varbit signed unsigned list struct map enum union hugeint uhugeint utinyint usmallint
uinteger ubigint interval array row string number varchar2 timestamp_s timestamp_ms timestamp_ns
name citext mediumint longtext mediumtext tinytext varint bignum variant geometry geography
vector halfvec hstore inet cidr macaddr macaddr8 point line lseg box path polygon circle money
xml oid tsvector tsquery int4range int8range numrange tsrange tstzrange daterange jsonpath
bitstring year"""
TYPES = frozenset(_TYPES.split()) | frozenset(_MORE_TYPES.split())
"""Types that a cast may name, with or without ``(…)`` behind them."""

_RESERVED = """abort accessible add all alter always analyse analyze and anti any array as asc
asensitive asof asymmetric at authorization before begin between bigint binary blob both by call
cascade case cast change char character check coalesce collate collation column columns commit
concurrently condition constraint continue convert copy create cross cube current current_catalog
current_date current_role current_schema current_time current_timestamp current_user cursor
database databases date datetime deallocate dec decimal declare default deferrable delayed delete
desc describe deterministic discard distinct distinctrow div do double drop dual dumpfile each
else elseif enclosed end escape escaped except execute exec exists exit explain extract false
fetch filter first float float4 float8 following for force foreign freeze from full fulltext
function generated get glob global grant greatest group grouping groups handler having
high_priority hour if ignore ilike in index infile initially inner inout insensitive insert int
int1 int2 int3 int4 int8 integer intersect interval into is isnull iterate join json_table key
keys kill lambda language last lateral lead leading least leave left like limit lines list listen
load local localtime localtimestamp lock locked long longblob longtext loop low_priority map
match materialized maxvalue mediumblob mediumint mediumtext merge minus mod modifies national
natural nchar new no none normalize not notify notnull nowait null nullif nulls numeric of off
offset old on only open optimize option or order ordinality out outer outfile over overlaps
overlay partition percent pivot pivot_longer pivot_wider placing position positional precision
prepare preceding primary procedure purge qualify query range rank read reads real recursive
references regexp release rename repeat replace require reset resignal restrict return returning
revoke right rlike rollback rollup row row_number rows rowtype savepoint schema select semi
sensitive separator session_user set setof sets share show signal similar skip sleep smallint
some spatial sql sqlexception sqlstate sqlwarning ssl start starting stored straight_join struct
substring summarize symmetric system system_user table tablesample terminated then ties time
timestamp tinyblob tinyint tinytext to trailing transaction treat trigger trim true truncate
try_cast unbounded undo union unique unknown unlisten unlock unnest unpack unpivot unsigned
update usage use user using utc_date utc_time utc_timestamp vacuum value values varbinary varchar
varcharacter variadic varying verbose view virtual when where while window with within without
write xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot
xmlserialize xmltable xor zerofill array_agg top minute second day month year zone next prior
connect level rownum sysdate session uid"""
RESERVED = frozenset(_RESERVED.split())
"""Words that some engine takes for a keyword: as names they are quoted."""
