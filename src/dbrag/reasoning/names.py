"""Names and values as a statement has to write them, in every dialect.

A name that could do harm in a prompt (line breaks, unseen characters, marks of chat
templates, boundless length) is shown without them, and put right again in what the
model writes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from dbrag.execution.dialects import rules_of
from dbrag.textsafe import is_plain, one_line
from dbrag.types import Table, TableRef

MAX_CELL_CHARS = 40
MAX_NAME_CHARS = 128
"""Longer names are shown cut; PostgreSQL ends at 63 bytes, MySQL at 64 characters."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SQLALCHEMY = {
    "postgres": "postgresql",
    "redshift": "postgresql",
    "duckdb": "postgresql",
    "tsql": "mssql",
    "mariadb": "mysql",
}
_KNOWN = frozenset({"sqlite", "mysql", "postgresql", "oracle", "mssql"})


@lru_cache(maxsize=8192)
def identifier(name: str, dialect: str) -> str:
    """A name as it must be written in SQL: quoted only where the dialect needs it."""
    plain = _PLAIN.match(name) and not _is_folded(name, dialect)
    if plain and name.lower() not in _reserved(dialect):
        tokens = sqlglot.tokenize(name, dialect=dialect)
        allowed = Dialect.get_or_raise(dialect).parser_class.ID_VAR_TOKENS
        if len(tokens) == 1 and tokens[0].token_type in allowed:
            return name
    return sqlglot.exp.to_identifier(name, quoted=True).sql(dialect=dialect)


def shown(name: str, dialect: str) -> str:
    """A name for a prompt: ``identifier``, or without what could do harm there."""
    return identifier(_harmless(name), dialect)


def table_shown(ref: TableRef, dialect: str, qualified: bool) -> str:
    """A table's name for a prompt, its schema before it if ``qualified``."""
    name = shown(ref.name, dialect)
    return f"{shown(ref.schema, dialect)}.{name}" if qualified and ref.schema is not None else name


def need_schemas(refs: Collection[TableRef], dialect: str) -> bool:
    """Whether tables must be written with their schema: it is not the one that goes unsaid."""
    schemas = {ref.schema for ref in refs}
    return bool(schemas - {None, rules_of(dialect).default_schema})


def restore_names(sql: str, tables: Sequence[Table], dialect: str) -> str:
    """A statement with the real names of tables and columns that were shown otherwise."""
    real = _shown_otherwise(tables)
    if not real:
        return sql
    try:
        tree = sqlglot.parse_one(sql, dialect=dialect)
    except (SqlglotError, RecursionError):
        return sql  # the guard says what is wrong with it
    changed = False
    for node in tree.find_all(exp.Identifier):
        name = real.get(node.name.casefold())
        if name is not None and name != node.name:
            node.set("this", name)
            node.set("quoted", True)
            changed = True
    return tree.sql(dialect=dialect) if changed else sql


def literal(value: str, dialect: str = "sqlite") -> str:
    """A cell as a quoted SQL literal, cleaned and capped."""
    text = one_line(value, MAX_CELL_CHARS)
    escapes = Dialect.get_or_raise(dialect).tokenizer_class.STRING_ESCAPES
    if "\\" in escapes:
        text = text.replace("\\", "\\\\")
    quote = "''" if "'" in escapes else "\\'"
    return "'" + text.replace("'", quote) + "'"


def _harmless(name: str) -> str:
    if len(name) <= MAX_NAME_CHARS and "`" not in name and is_plain(name):
        return name
    # A backtick of a name would be doubled, and three of them open a fence.
    return one_line(name, MAX_NAME_CHARS).replace("`", "'").strip() or "_"


def _shown_otherwise(tables: Sequence[Table]) -> dict[str, str]:
    """Name as shown, folded → real name; without those that another name is shown as, too."""
    names = {table.ref.name for table in tables}
    names |= {table.ref.schema for table in tables if table.ref.schema is not None}
    names |= {column.name for table in tables for column in table.columns}
    forms = {name: _harmless(name).casefold() for name in names}
    times = Counter(forms.values())
    return {
        form: name for name, form in forms.items() if times[form] == 1 and _harmless(name) != name
    }


def _is_folded(name: str, dialect: str) -> bool:
    """Whether the engine reads an unquoted name in other letter case than it has."""
    match Dialect.get_or_raise(dialect).normalization_strategy.name:
        case "LOWERCASE":
            return name != name.lower()
        case "UPPERCASE":
            return name != name.upper()
    return False


@lru_cache(maxsize=16)
def _reserved(dialect: str) -> frozenset[str]:
    """The engine's reserved words, in lower case, as SQLAlchemy's dialects list them."""
    from sqlalchemy.engine import URL

    backend = _SQLALCHEMY.get(dialect, dialect)
    # Of an engine that SQLAlchemy does not know by itself: a name quoted too often does no harm.
    backends = [backend] if backend in _KNOWN else sorted(_KNOWN - {"sqlite"})
    found = (URL.create(one).get_dialect().preparer.reserved_words for one in backends)
    return frozenset(word.lower() for words in found for word in words)
