"""What the guard has to know of each SQL dialect: how names and strings are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from dbrag.execution.words import RESERVED

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")
_PLAIN_ANY_CASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_UPPER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True)
class Rules:
    """One dialect.

    Attributes:
        name: sqlglot's name of it.
        quote: before and after a quoted name.
        folds: names without quotes mean their lower-case spelling (PostgreSQL).
        own_words: names are left as written and looked up as the engine does
            (SQLite); elsewhere what is ambiguous to the engine is quoted.
        exact_aliases: letter case counts in the aliases of tables, not in columns.
        default_schema: the schema a table without one is looked up in first.
        row_ids: columns that every table has without naming them.
        escapes: a backslash in a string may be an escape, by the engine or its settings.
        quote_doubled: a quote inside quotes is written twice.
        whole_rows: the name of a FROM entry alone means its whole row.
        stored_words: words of other engines' syntax that name stored functions here.
        fields: ``column.field`` and ``column.function()`` may be written.
    """

    name: str
    quote: tuple[str, str] = ('"', '"')
    folds: bool = False
    own_words: bool = False
    exact_aliases: bool = False
    default_schema: str | None = None
    row_ids: frozenset[str] = frozenset()
    escapes: bool = False
    quote_doubled: bool = True
    whole_rows: bool = False
    fields: bool = False
    stored_words: frozenset[str] = frozenset()

    @cached_property
    def reserved(self) -> frozenset[str]:
        """Words that mean something else where they are not quoted."""
        return RESERVED

    def server_name(self, name: str, *, quoted: bool) -> str:
        """The name as the engine reads it."""
        # Only ASCII letters are folded: in UTF-8 databases PostgreSQL does no more.
        return name.translate(_UPPER) if self.folds and not quoted else name

    def quoted(self, name: str) -> str:
        """The name in the dialect's quotes."""
        opening, closing = self.quote
        return opening + name.replace(closing, closing * 2) + closing

    def values_columns(self, width: int) -> list[str]:
        """Names of the columns of a VALUES list."""
        pattern = {"duckdb": "col{}", "mysql": "column_{}"}.get(self.name, "column{}")
        first = 0 if self.name in ("duckdb", "mysql") else 1
        return [pattern.format(i + first) for i in range(width)]

    def written(self, name: str) -> str:
        """The name as a statement has to write it to mean exactly it."""
        plain = _PLAIN if self.folds else _PLAIN_ANY_CASE
        bare = plain.match(name) and name.lower() not in self.reserved
        return name if bare else self.quoted(name)

    def settled(self, name: str, real: str, *, quoted: bool) -> str | None:
        """What to write for a name that means ``real``; None: it can stay as it is."""
        if not quoted:
            plain = _PLAIN_ANY_CASE.match(name) and name.lower() not in self.reserved
            if plain and self.server_name(name, quoted=False) == real:
                return None
            return self.written(real)
        return None if name == real else self.quoted(real)


_RULES = {
    rules.name: rules
    for rules in (
        Rules("sqlite", own_words=True, row_ids=frozenset({"rowid", "oid", "_rowid_"})),
        Rules("postgres", folds=True, default_schema="public", whole_rows=True),
        Rules(
            "mysql",
            quote=("`", "`"),
            exact_aliases=True,
            escapes=True,
            stored_words=frozenset({"cube", "rollup"}),
        ),
        Rules(
            "duckdb",
            default_schema="main",
            row_ids=frozenset({"rowid"}),
            whole_rows=True,
            fields=True,
        ),
        Rules("tsql", default_schema="dbo"),
        Rules("bigquery", quote=("`", "`"), escapes=True, quote_doubled=False, fields=True),
        Rules("databricks", quote=("`", "`"), escapes=True, quote_doubled=False, fields=True),
        Rules("spark", quote=("`", "`"), escapes=True, quote_doubled=False, fields=True),
        Rules("clickhouse", escapes=True),
        Rules("snowflake", escapes=True),
        Rules("redshift", folds=True, default_schema="public", escapes=True),
    )
}


@lru_cache
def rules_of(dialect: str) -> Rules:
    """The rules of a dialect; careful ones for a dialect without its own."""
    return _RULES.get(dialect) or Rules(dialect, escapes=True)
