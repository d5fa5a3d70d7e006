"""Which schemas of a server stand for databases of their own.

Tables of one database belong together: a program is written over the tables of one. A
server with many schemas often holds many databases in that sense; foreign keys tell.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dbrag.types import ForeignKey, TableRef


class HasKeys(Protocol):
    """A table, or what is known of one."""

    @property
    def ref(self) -> TableRef:
        """Its identity."""

    @property
    def foreign_keys(self) -> tuple[ForeignKey, ...]:
        """Its declared keys."""


def parts_of(tables: Iterable[HasKeys]) -> Mapping[TableRef, str]:
    """Table → name of the part it belongs to: its source, or ``source.schema``.

    Schemas joined by foreign keys are one part, named by the first of them. Schemas
    without any key may belong to anything: they stay with their source.
    """
    tables = list(tables)
    group: dict[tuple[str, str | None], tuple[str, str | None]] = {}
    linked: set[tuple[str, str | None]] = set()

    def root(place: tuple[str, str | None]) -> tuple[str, str | None]:
        while group.setdefault(place, place) != place:
            place = group[place]
        return place

    for table in tables:
        for key in table.foreign_keys:
            ends = _place(table.ref), _place(key.target)
            linked.update(ends)
            one, other = sorted(map(root, ends), key=str)
            group[other] = one
    several = _several(tables)
    return {
        table.ref: f"{table.ref.source}.{root(_place(table.ref))[1]}"
        if table.ref.source in several and _place(table.ref) in linked
        else table.ref.source
        for table in tables
    }


def group_numbers(tables: Sequence[HasKeys], loose: Collection[str]) -> list[int]:
    """For each table the number of the database it belongs to, from 0; -1: of none.

    Databases are the parts of ``parts_of``. A table of a loose source belongs to none:
    each file of a folder may stand for itself.

    Args:
        loose: names of sources that are folders or patterns of data files.
    """
    parts = parts_of(tables)
    numbers: dict[str, int] = {}
    return [
        -1 if table.ref.source in loose else numbers.setdefault(parts[table.ref], len(numbers))
        for table in tables
    ]


def _place(ref: TableRef) -> tuple[str, str | None]:
    return ref.source, ref.schema


def _several(tables: Iterable[HasKeys]) -> set[str]:
    """Sources of more than one schema."""
    counts = Counter(source for source, _ in {_place(table.ref) for table in tables})
    return {source for source, count in counts.items() if count > 1}
