"""What is known of databases that dbrag reads through their SQLAlchemy dialect alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of database.

    Attributes:
        dialect: sqlglot's name of its SQL dialect.
        read_only: statements that make a new session read-only.
        begin: statements at the start of each transaction.
        timeout: statement that limits the time of those after it; ``{ms}`` or ``{s}``.
        timeout_attribute: attribute of the driver's connection that does: ``call_timeout``
            in milliseconds, others in seconds.
        system: schemas of the engine itself, folded.
        own_schema: by default only the user's own schema is read, for others are many.
    """

    dialect: str
    read_only: tuple[str, ...] = ()
    begin: tuple[str, ...] = ()
    timeout: str = ""
    timeout_attribute: str = ""
    system: frozenset[str] = frozenset({"information_schema"})
    own_schema: bool = False


_POSTGRES = Kind(
    "postgres",
    read_only=("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",),
    timeout="SET statement_timeout = {ms}",
    system=frozenset({"information_schema", "pg_catalog", "pg_toast", "crdb_internal"}),
)
_MYSQL = Kind(
    "mysql",
    # The parser reads "…" as text and \ as an escape; so must the server.
    read_only=(
        "SET SESSION sql_mode = 'IGNORE_SPACE,NO_UNSIGNED_SUBTRACTION,NO_ENGINE_SUBSTITUTION'",
        "SET SESSION TRANSACTION READ ONLY",
    ),
    system=frozenset({"information_schema", "mysql", "performance_schema", "sys"}),
)
_ROLES = """information_schema sys guest db_owner db_accessadmin db_securityadmin db_ddladmin
db_backupoperator db_datareader db_datawriter db_denydatareader db_denydatawriter"""
_SQL_SERVER = Kind("tsql", timeout_attribute="timeout", system=frozenset(_ROLES.split()))
_HIVE_SYSTEM = frozenset({"information_schema", "sys"})

KINDS: Mapping[str, Kind] = {
    "athena": Kind("athena"),
    "awsathena": Kind("athena"),
    "bigquery": Kind("bigquery"),
    "clickhouse": Kind("clickhouse", system=frozenset({"information_schema", "system"})),
    "clickhousedb": Kind("clickhouse", system=frozenset({"information_schema", "system"})),
    "cockroachdb": _POSTGRES,
    "databricks": Kind("databricks", timeout="SET STATEMENT_TIMEOUT = {s}"),
    "doris": Kind("doris", system=_MYSQL.system | {"__internal_schema"}),
    "dremio": Kind("dremio", system=frozenset({"information_schema", "sys"})),
    "drill": Kind("drill", system=frozenset({"information_schema", "sys"})),
    "druid": Kind("druid", system=frozenset({"information_schema", "sys"})),
    "exa": Kind("exasol", system=frozenset({"exa_statistics", "sys"})),
    "exasol": Kind("exasol", system=frozenset({"exa_statistics", "sys"})),
    "hive": Kind("hive", system=_HIVE_SYSTEM),
    "mariadb": _MYSQL,
    "materialize": Kind("materialize", system=_POSTGRES.system | {"mz_catalog", "mz_internal"}),
    "mssql": _SQL_SERVER,
    "mysql": _MYSQL,
    "oracle": Kind(
        "oracle",
        begin=("SET TRANSACTION READ ONLY",),
        timeout_attribute="call_timeout",
        system=frozenset({"sys", "system"}),
        own_schema=True,
    ),
    "postgresql": _POSTGRES,
    "presto": Kind("presto"),
    "redshift": Kind("redshift", timeout="SET statement_timeout TO {ms}", system=_POSTGRES.system),
    "risingwave": Kind("risingwave", system=_POSTGRES.system | {"rw_catalog"}),
    "singlestoredb": Kind("singlestore", system=_MYSQL.system | {"memsql", "cluster"}),
    "snowflake": Kind("snowflake", timeout="ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = {s}"),
    "spark": Kind("spark", system=_HIVE_SYSTEM),
    "sqlite": Kind("sqlite", read_only=("PRAGMA query_only = ON",), system=frozenset()),
    "starrocks": Kind("starrocks", system=_MYSQL.system | {"_statistics_"}),
    "teradatasql": Kind("teradata", own_schema=True),
    "trino": Kind("trino", timeout="SET SESSION query_max_run_time = '{s}s'"),
}
"""By SQLAlchemy's name of the dialect. Where neither ``read_only`` nor ``begin`` is given, the
session cannot be made read-only: there the guard and the rights of the user are the walls."""
