"""Pages of what is too long for an agent's context: so many entries, so many characters.

Nothing is left out in silence: a page says which part of the whole it is, and names the cells of
which only the beginning is shown. Results of statements are kept for a while, so that their later
pages are rows of the same run.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dbrag.errors import LimitReached, UsageError
from dbrag.values import json_value

if TYPE_CHECKING:
    from dbrag.types import Answer, Execution

MAX_ROWS = 500
"""Most entries of a page."""
MAX_CHARS = 20_000
"""Most characters of the entries of a page, as JSON; the first entry is shown in any case."""
MAX_CELL = 2_000
"""Most characters of a cell; fewer where so many columns would not fit."""
_LEAST_CELL = 40

KEEP_S = 600.0
KEEP_RESULTS = 16
KEEP_BYTES = 64 * 2**20
_COUNTED_CELLS = 5_000_000
"""Of larger results not even the size is looked at."""

T = TypeVar("T")


@dataclass(frozen=True)
class Page:
    """A part of a list: entries ``offset`` to ``end`` (not included) of ``total``.

    ``full``: there would be more of them, if a page held more characters.
    """

    offset: int
    end: int
    total: int
    what: str
    full: bool = False

    @property
    def next_offset(self) -> int | None:
        """Where the next page begins, None at the end."""
        return self.end if self.end < self.total else None

    @property
    def shown(self) -> str:
        """``rows 1-50 of 1,234``; ``0 rows``."""
        if self.end == self.offset:
            return f"0 {self.what}"
        part = f"{self.what} {self.offset + 1:,}-{self.end:,} of {self.total:,}"
        return part + (f" (as many as {MAX_CHARS:,} characters hold)" if self.full else "")


def page_of(sizes: Iterable[int], offset: int, total: int, what: str) -> Page:
    """The page whose entries have these sizes (characters), as many as fit into ``MAX_CHARS``.

    Args:
        what: the entries in words, plural.

    Raises:
        UsageError: the page lies behind the end.
    """
    if offset and offset >= total:
        raise UsageError(
            f"offset={offset} is behind the end: there are {total:,} {what}", "start with offset=0"
        )
    end, left = offset, MAX_CHARS
    for size in sizes:
        left -= size
        if left < 0 and end > offset:
            return Page(offset, end, total, what, full=True)
        end += 1
    return Page(offset, end, total, what)


def take(
    entries: Sequence[T], offset: int, limit: int, what: str, size: Callable[[T], int]
) -> tuple[list[T], Page]:
    """The entries of a page, at most ``limit``; see :func:`page_of`."""
    window = list(entries[offset : offset + limit])
    page = page_of(map(size, window), offset, len(entries), what)
    return window[: page.end - offset], page


def json_size(value: Any) -> int:
    """Characters of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False, default=str))


@dataclass(frozen=True)
class Cut:
    """A cell that was cut: its place on the page, and the characters of the whole."""

    row: int
    column: int
    characters: int


def take_rows(
    execution: Execution, offset: int, limit: int
) -> tuple[list[list[Any]], list[Cut], Page]:
    """The rows of a page as JSON values, and which of their cells were cut.

    Raises:
        UsageError: the page lies behind the end.
        LimitReached: not even one row of so many columns can be shown.
    """
    columns = len(execution.columns)
    if json_size([column.name for column in execution.columns]) > MAX_CHARS:
        raise LimitReached(
            f"the result has {columns:,} columns, whose names alone are too long to show",
            "select fewer columns, or name them shorter (AS)",
        )
    most = max(_LEAST_CELL, min(MAX_CELL, MAX_CHARS // max(1, columns)))
    if columns * _LEAST_CELL > MAX_CHARS:
        raise LimitReached(
            f"the result has {columns:,} columns; at most {MAX_CHARS // _LEAST_CELL:,} are shown",
            "select fewer columns",
        )
    window = [_cells(row, most) for row in execution.rows[offset : offset + limit]]
    sizes = (json_size(values) for values, _ in window)
    page = page_of(sizes, offset, len(execution.rows), "rows")
    taken = window[: page.end - offset]
    cut = [Cut(row, *one) for row, (_, cells) in enumerate(taken) for one in cells]
    return [values for values, _ in taken], cut, page


def _cells(row: Sequence[Any], most: int) -> tuple[list[Any], list[tuple[int, int]]]:
    """The cells of a row as JSON values, long ones cut: (column, characters) of those."""
    values: list[Any] = []
    cut: list[tuple[int, int]] = []
    for column, cell in enumerate(row):
        value = json_value(cell)
        if isinstance(value, str | list | dict):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if len(text) > most:
                value = text[:most]
                cut.append((column, len(text)))
        values.append(value)
    return values, cut


@dataclass(frozen=True)
class Kept:
    """A result with the Unix time of its run."""

    answer: Answer
    at: float


class Results:
    """Whole results by source and statement, the latest ones; threads may share it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str | None, str], tuple[Kept, int]] = OrderedDict()

    def add(self, names: Iterable[tuple[str | None, str]], answer: Answer) -> bool:
        """Keep a result under some (source, statement) in place of an earlier one.

        False: it is too large.
        """
        size, kept = _bytes(answer.execution), Kept(answer, self._clock())
        with self._lock:
            for source, sql in names:
                self._kept.pop((source, sql.strip()), None)
                if size <= KEEP_BYTES:
                    self._kept[source, sql.strip()] = (kept, size)
            self._tidy()
        return size <= KEEP_BYTES

    def get(self, source: str | None, sql: str) -> Kept | None:
        """The kept result of a statement, None where there is none any more."""
        with self._lock:
            self._tidy()
            entry = self._kept.get((source, sql.strip()))
        return entry[0] if entry else None

    def _tidy(self) -> None:
        """Let go of what is old, then of the oldest until the others fit."""
        since = self._clock() - KEEP_S
        for key in [key for key, (kept, _) in self._kept.items() if kept.at < since]:
            del self._kept[key]
        while len(self._kept) > KEEP_RESULTS or self._total() > KEEP_BYTES:
            self._kept.popitem(last=False)

    def _total(self) -> int:
        """Bytes of all; one result may be kept under several names."""
        return sum({id(kept): size for kept, size in self._kept.values()}.values())


def _bytes(execution: Execution | None) -> int:
    """Memory of a result, as Arrow counts it."""
    if execution is None:
        return 0
    if len(execution.rows) * len(execution.columns) > _COUNTED_CELLS:
        return KEEP_BYTES + 1
    return int(execution.table.nbytes)
