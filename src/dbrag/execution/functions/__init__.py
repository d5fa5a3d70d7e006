"""Functions a statement may call, per dialect, and what to write instead of some others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.execution.functions import duckdb, generic, mysql, postgres, sqlite

if TYPE_CHECKING:
    from collections.abc import Mapping

_OTHERS = (
    "snowflake",
    "bigquery",
    "databricks",
    "trino",
    "presto",
    "athena",
    "spark",
    "tsql",
    "oracle",
    "clickhouse",
    "redshift",
)

ALLOWED: Mapping[str, frozenset[str]] = {
    "sqlite": sqlite.ALLOWED,
    "postgres": postgres.ALLOWED,
    "mysql": mysql.ALLOWED,
    "duckdb": duckdb.ALLOWED,
    **dict.fromkeys(_OTHERS, generic.ALLOWED),
}
"""Built-in functions, lower case, that only compute. A name outside is refused."""

TABLE_FUNCTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sqlite": sqlite.TABLE_FUNCTIONS,
    "postgres": postgres.TABLE_FUNCTIONS,
    "mysql": mysql.TABLE_FUNCTIONS,
    "duckdb": duckdb.TABLE_FUNCTIONS,
}
"""Functions that may stand for a table, with their columns (``*``: the alias names it)."""

INSTEAD: Mapping[str, Mapping[str, str]] = {
    "sqlite": sqlite.INSTEAD,
    "postgres": postgres.INSTEAD,
    "mysql": mysql.INSTEAD,
    "duckdb": duckdb.INSTEAD,
    "tsql": generic.INSTEAD_TSQL,
}
"""What to write for functions of other engines: models know those better."""
