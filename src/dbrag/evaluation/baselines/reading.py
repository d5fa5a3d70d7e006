"""Baselines that read tables whole: which tables they get, and their rows as far as needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, LimitReached
from dbrag.execution.limits import within
from dbrag.reasoning.budget import Usage
from dbrag.sources.statements import LONG_TEXT_CHARACTERS, select_rows

if TYPE_CHECKING:
    from dbrag.evaluation.methods import Tools
    from dbrag.sources.base import Source
    from dbrag.types import Table

Take = Callable[[Sequence[tuple[Any, ...]]], bool]
"""Called with rows; whether more of them are wanted."""

ROWS_AT_ONCE = 100


@dataclass(frozen=True)
class Found:
    """The tables that a question is answered from, the best first, and what it took."""

    tables: tuple[Table, ...]
    seconds: float = 0.0
    tokens: Mapping[str, int] = field(default_factory=dict)


def retrieved(tools: Tools, question: str) -> Found:
    """The ``m`` best tables, reranked where the settings say so (R_q of the paper).

    Raises:
        UsageError: the question is empty or too long.
        ModelError: the chat model was to rerank and fails.
    """
    started = time.perf_counter()
    result = tools.db.search(question, top=tools.db.settings.m)
    tables = tuple(tools.catalog.by_ref[candidate.table] for candidate in result.candidates)
    told = result.rerank["tokens"] if result.rerank else {}
    return Found(tables, time.perf_counter() - started, told)


def read_rows(source: Source, table: Table, most: int, seconds: float, take: Take) -> None:
    """Give ``take`` the rows of a table, ``ROWS_AT_ONCE`` at a time, until it wants no more.

    Columns come in the order of ``table``, rows in that of the engine. A binary cell of more
    than 64 bytes is the text ``<blob 1234 bytes>``.

    Args:
        most: rows at most.
        seconds: the time it may take.

    Raises:
        LimitReached: it takes longer, or a text is longer than ``LONG_TEXT_CHARACTERS``.
        SourceError, ExecutionError: the table cannot be read.
    """
    statement = select_rows(table, most, source.dialect)
    with source.session(seconds) as session:

        def work() -> None:
            session.execute(statement)
            while rows := session.fetch(ROWS_AT_ONCE):
                _check_lengths(rows, table)
                if not take(rows):
                    return

        within(session, work, seconds, doing=f"reading {table.ref}")


def _check_lengths(rows: Sequence[tuple[Any, ...]], table: Table) -> None:
    """Longer texts were cut on the way: a baseline that reads all must not be given them."""
    for row in rows:
        for column, value in zip(table.columns, row, strict=True):
            if isinstance(value, str) and len(value) > LONG_TEXT_CHARACTERS:
                raise LimitReached(
                    f"a text in {table.ref}.{column.name} is longer than "
                    f"{LONG_TEXT_CHARACTERS:,} characters",
                    f'leave the column out: redact = ["{table.ref.name}.{column.name}"]',
                )


def told(error: DbragError) -> dict[str, str]:
    """An error as a prediction tells it."""
    return {"code": error.code, "message": error.message}


def summed(*tokens: Mapping[str, int]) -> dict[str, int]:
    """Tokens of several calls together, kind by kind."""
    spent = Usage()
    for one in tokens:
        spent.add_tokens(one)
    return spent.tokens()
