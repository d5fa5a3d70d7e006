"""How far an indexing run is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dbrag.cancel import check

if TYPE_CHECKING:
    from collections.abc import Callable

Stage = Literal["read", "text", "encode", "rows", "switch"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a run.

    ``stage``: "read" sources, build the full "text" index, "encode" summaries, then
    "rows", "switch" to the new index. ``done`` of ``total`` count sources, or texts while
    encoding. ``rows`` were read so far, ``rows_per_s`` over the reading stage;
    ``eta_s`` is the time left of this stage, None while unknown. ``tables`` are those
    done and all to be read of the source that is being read.
    """

    stage: Stage
    done: int
    total: int
    rows: int = 0
    rows_per_s: float = 0.0
    eta_s: float | None = None
    source: str | None = None
    tables: tuple[int, int] | None = None


class Reporter:
    """Measures rates and passes :class:`Progress` on, at most ten times a second."""

    def __init__(self, listener: Callable[[Progress], None] | None) -> None:
        self._listener = listener
        self._stage: Stage | None = None
        self._started = 0.0
        self._told = 0.0
        self._rows_per_s = 0.0
        self.rows = 0

    def tell(
        self,
        stage: Stage,
        done: int,
        total: int,
        source: str | None = None,
        tables: tuple[int, int] | None = None,
    ) -> None:
        """Report a step; the first and last step of a stage are always passed on.

        Raises:
            Cancelled: nobody wants the index any more; the one before it stays.
        """
        check()
        if self._listener is None:
            return
        now = time.monotonic()
        first = stage != self._stage
        if first:
            self._stage, self._started = stage, now
        if not first and done < total and now - self._told < 0.1:
            return
        self._told = now
        elapsed = now - self._started
        if stage == "read" and elapsed > 0:
            self._rows_per_s = self.rows / elapsed
        part = done + (tables[0] / tables[1] if tables and tables[1] else 0.0)
        eta = elapsed / part * (total - part) if part and elapsed > 0 else None
        self._listener(
            Progress(stage, done, total, self.rows, self._rows_per_s, eta, source, tables)
        )
