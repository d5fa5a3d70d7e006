"""Rows and time of one source, spread over its tables so that none goes without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dbrag.types import Table


@dataclass
class Budget:
    """What may still be read of a source. Ask for a share, read, and say what it took.

    Each table may use an equal share of what is left. As small tables come first and
    leave most of theirs, they are read whole and the large ones share the rest equally.

    Attributes:
        table_rows: rows of one table at most; ``table_s``: seconds.
        rows: rows of all tables together that are left; ``seconds``: time left.
        tables: tables that are still to come; ``to_read``: those of them to be read,
            the others are known already.
    """

    table_rows: int
    table_s: float
    rows: int
    seconds: float
    tables: int
    to_read: int

    def share(self) -> tuple[int, float] | None:
        """Rows and seconds for the next table; None when a budget is used up."""
        rows = min(self.table_rows, self.rows // max(1, self.tables))
        seconds = min(self.table_s, self.seconds / max(1, self.to_read))
        return (rows, seconds) if rows > 0 and seconds > 0 else None

    def spend(self, rows: int, seconds: float) -> None:
        """A table was read."""
        self.known(rows)
        self.seconds -= seconds
        self.to_read -= 1

    def known(self, rows: int) -> None:
        """A table was taken over, with so many rows."""
        self.rows -= rows
        self.tables -= 1


def small_first(tables: Iterable[Table]) -> list[Table]:
    """By the engine's guess of the rows; tables of unknown size last, in their order."""
    return sorted(tables, key=lambda table: (table.estimate is None, max(0, table.estimate or 0)))
