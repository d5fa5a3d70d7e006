"""What the expressions of a query can see: FROM entries, aliases, the queries around."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlglot import exp

    from dbrag.types import Table

_ROW_IDS = frozenset({"rowid", "oid", "_rowid_"})

Columns = list[str] | None
"""Names of result columns; None where they cannot be known."""


@dataclass(slots=True)
class Visible:
    """One entry of a FROM: its alias as written and folded, its columns folded and not."""

    label: str | None
    alias: str | None
    columns: frozenset[str] | None
    names: list[str]
    table: Table | None = None


@dataclass(slots=True)
class Frame:
    """What the expressions of one SELECT can see, and the SELECT around it."""

    outer: Frame | None
    visible: list[Visible] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)

    def chain(self) -> Iterator[Frame]:
        """This frame and those around it, from the inside out."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.outer

    def tables(self) -> list[Table]:
        """The real tables in sight."""
        return [v.table for frame in self.chain() for v in frame.visible if v.table is not None]


@dataclass(slots=True)
class Cte:
    """A WITH entry, looked into when it is first used."""

    node: exp.CTE | None
    outer: Frame | None = None
    scope: Mapping[str, Cte] = field(default_factory=dict)
    columns: Columns = None
    state: str = "new"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A name that does not exist, as written, with near real ones."""

    kind: str
    name: str
    suggestions: tuple[str, ...]
    hint: str = ""


def has(visible: Visible, name: str) -> bool:
    """True when a FROM entry has a column of that name, or may have."""
    if visible.columns is None or name.casefold() in visible.columns:
        return True
    return name.casefold() in _ROW_IDS and visible.table is not None


def output_columns(node: exp.Select, frame: Frame) -> Columns:
    """Names of the columns of a SELECT."""
    names: list[str] = []
    for item in node.expressions:
        if not item.is_star or item.key == "count":
            named = item.key in ("alias", "column")
            names.append(item.alias_or_name if named else item.sql("sqlite"))
            continue
        wanted = item.table.casefold() if item.key == "column" else None
        for v in frame.visible:
            if wanted is None or v.alias == wanted:
                if v.columns is None:
                    return None
                names += v.names
    return names
