"""A source that tells its tables apart: SQLite with a mark for each table."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbrag.sources import open_sources
from dbrag.sources.statements import select_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from dbrag.sources.base import Session
    from dbrag.types import Table, TableRef


class MarkedSource:
    """Passes everything on to the SQLite source; marks are hashes of rows and columns.

    Args:
        estimate: the engine's guess of a table's rows, by its name.
        before_read: called with each statement before it runs.
    """

    def __init__(
        self,
        path: Path,
        *,
        estimate: Mapping[str, int] | None = None,
        before_read: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._inner: Any = open_sources([str(path)])[0][0]
        self._estimate = estimate or {}
        self._before_read = before_read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def marks(self) -> dict[TableRef, str]:
        marks = {}
        with self._inner.session() as session:
            for table in self._inner.reflect():
                if table.kind == "table":
                    session.execute(select_rows(table, 1000))
                    content = repr((table.columns, session.fetch(1000)))
                    marks[table.ref] = hashlib.sha256(content.encode()).hexdigest()
        return marks

    def reflect(self) -> list[Table]:
        return [
            replace(table, estimate=self._estimate.get(table.ref.name))
            for table in self._inner.reflect()
        ]

    @contextmanager
    def session(self, timeout_s: float | None = None) -> Iterator[Session]:
        with self._inner.session(timeout_s) as session:
            yield _Told(session, self._before_read)


class _Told:
    def __init__(self, inner: Session, before_read: Callable[[str], None]) -> None:
        self._inner = inner
        self._before_read = before_read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def execute(self, sql: str) -> Any:
        self._before_read(sql)
        return self._inner.execute(sql)
