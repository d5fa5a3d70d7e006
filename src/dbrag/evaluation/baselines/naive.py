"""The naive baseline: one greedy query from DDL and two example rows of five tables.

The prompt is the common one of the text-to-SQL literature ("create table + select",
Rajkumar, Li and Bahdanau 2022): CREATE TABLE text and example rows in a comment, then
the question. No join hints, no matched values, no repair, no vote.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.errors import DbragError, ExecutionError
from dbrag.evaluation.methods import Prediction, Tools
from dbrag.models.base import Prompt
from dbrag.reasoning.budget import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.catalog.catalog import Catalog
    from dbrag.types import Candidate, Table, TableRef

TABLES = 5
EXAMPLE_ROWS = 2
MAX_TOKENS = 400

_CELL_CHARS = 100
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?(.*?)(?:```|\Z)", re.DOTALL)
_START = re.compile(r"\b(?:select|with)\b", re.IGNORECASE)
_RESERVED = re.compile(
    r"(?:add|all|and|as|asc|between|by|case|check|column|create|cross|default|delete"
    r"|desc|distinct|drop|else|end|exists|foreign|from|full|group|having|in|index"
    r"|inner|insert|intersect|into|is|join|key|left|like|limit|not|null|on|or|order"
    r"|outer|primary|references|right|select|set|table|then|to|transaction|union"
    r"|unique|update|using|values|view|when|where|with)\Z",
    re.IGNORECASE,
)
_NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "mysql": "MySQL", "duckdb": "DuckDB"}


class Naive:
    """Answers questions the naive way; see the module's text."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    def __call__(self, question: str) -> Prediction:
        """One question.

        Raises:
            ModelError: the model fails.
            UsageError: the question is empty or too long.
        """
        started = time.perf_counter()
        candidates = self.tools.db.search(question, top=TABLES, rerank=False).candidates
        retrieved = time.perf_counter()
        if not candidates:
            return Prediction("failed", error=_error(ExecutionError("no table was retrieved")))
        tables = [self.tools.catalog.by_ref[c.table] for c in candidates]
        dialect = self.tools.dialects.get(candidates[0].table.source, "sqlite")
        prompt = naive_prompt(question, tables, dialect)
        reply = self.tools.model().sample(prompt, 1, temperature=0.0, max_tokens=MAX_TOKENS)[0]
        reasoned = time.perf_counter()
        spent = Usage()
        spent.add(reply)
        sql: str | None = None
        used: tuple[TableRef, ...] = ()
        error: DbragError | None = None
        columns: tuple[str, ...] = ()
        rows: tuple[tuple[object, ...], ...] = ()
        try:
            sql = first_statement(reply.text, dialect)
            source, used = choose_source(sql, candidates, self.tools.catalog, dialect)
            result = self.tools.db.run_sql(source, sql)
            columns, rows = tuple(c.name for c in result.columns), result.rows
        except DbragError as caught:
            error = caught
        done = time.perf_counter()
        return Prediction(
            status="failed" if error else "answered",
            columns=columns,
            rows=rows,
            tables=used,
            sql=sql,
            tokens=spent.tokens(),
            stages={
                "retrieve": retrieved - started,
                "reason": reasoned - retrieved,
                "execute": done - reasoned,
            },
            error=_error(error) if error else None,
        )


def naive_prompt(question: str, tables: Sequence[Table], dialect: str = "sqlite") -> Prompt:
    """The prompt: DDL and example rows of each table, then the question."""
    engine = _NAMES.get(dialect, dialect)
    return Prompt(
        system="",
        context="\n\n".join(create_table(table) for table in tables),
        request=f"Using the tables above, answer this question with one {engine} query.\n"
        f"Question: {question}\n{engine} SQL:",
    )


def create_table(table: Table, rows: int = EXAMPLE_ROWS) -> str:
    """A table as CREATE TABLE text with its first rows in a comment."""
    lines = [f"  {_name(c.name)} {c.type}".rstrip() for c in table.columns]
    if table.primary_key:
        lines.append(f"  PRIMARY KEY ({_names(table.primary_key)})")
    for key in table.foreign_keys:
        target = f"{_name(key.target.name)} ({_names(key.target_columns)})"
        lines.append(f"  FOREIGN KEY ({_names(key.columns)}) REFERENCES {target}")
    text = f"CREATE TABLE {_name(table.ref.name)} (\n" + ",\n".join(lines) + "\n);"
    shown = table.sample_rows[:rows]
    if not shown:
        return text
    examples = ["\t".join(c.name for c in table.columns)]
    examples += ["\t".join(_cell(value) for value in row) for row in shown]
    title = f"{len(shown)} example row{'s' if len(shown) > 1 else ''}:"
    return f"{text}\n/*\n{title}\n" + "\n".join(examples).replace("*/", "* /") + "\n*/"


def first_statement(reply: str, dialect: str = "sqlite") -> str:
    """The first SELECT or WITH statement of a reply, code fences and prose left out.

    Raises:
        ExecutionError: there is none.
    """
    fenced = [block for block in _FENCE.findall(reply) if _START.search(block)]
    text = fenced[0] if fenced else reply
    start = _START.search(text)
    if start is None:
        raise ExecutionError(f"the model wrote no SQL but {' '.join(reply.split())[:120]!r}")
    text = text[start.start() :]
    try:
        tokens = sqlglot.tokenize(text, dialect=dialect)
    except SqlglotError:
        return text.strip()  # the engine's message will be the clearer one
    for token in tokens:
        if token.token_type == sqlglot.TokenType.SEMICOLON:
            return text[: token.start].strip()
    return text.strip()


def choose_source(
    sql: str, candidates: Sequence[Candidate], catalog: Catalog, dialect: str = "sqlite"
) -> tuple[str, tuple[TableRef, ...]]:
    """The source to run on: the best-ranked one that holds all tables of the statement.

    Returns:
        The source's name and the tables used; where no source has them all, the best
        table's source and none.
    """
    sources = list(dict.fromkeys(c.table.source for c in candidates))
    try:
        tree = sqlglot.parse_one(sql, dialect=dialect)
    except SqlglotError:
        return sources[0], ()
    own = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    names = {t.name.casefold() for t in tree.find_all(exp.Table) if t.name} - own
    for source in sources:
        refs = {table.ref.name.casefold(): table.ref for table in catalog.of_source(source)}
        if names <= refs.keys():
            return source, tuple(refs[name] for name in sorted(names))
    return sources[0], ()


def _error(error: DbragError) -> dict[str, str]:
    return {"code": error.code, "message": error.message}


def _name(name: str) -> str:
    if _PLAIN.match(name) and not _RESERVED.match(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def _names(names: Sequence[str]) -> str:
    return ", ".join(_name(name) for name in names)


def _cell(value: str | None) -> str:
    if value is None:
        return "NULL"
    line = " ".join(value.split())
    return line if len(line) <= _CELL_CHARS else line[:_CELL_CHARS] + "…"
