"""How the tables of one SELECT are joined, and which columns tell their rows apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbrag.reasoning.blocks import Block, Entry, Place
from dbrag.reasoning.words import conjuncts
from dbrag.types import Table


@dataclass(frozen=True, slots=True)
class Edge:
    """Two entries of a block with the columns that are equated."""

    left: Entry
    left_columns: tuple[str, ...]
    right: Entry
    right_columns: tuple[str, ...]
    outer: bool

    def from_(self, entry: Entry) -> tuple[Entry, tuple[str, ...]]:
        """The other side with its columns."""
        if entry is self.left:
            return self.right, self.right_columns
        return self.left, self.left_columns


def row_key(table: Table) -> str | None:
    """A column that tells rows apart."""
    if len(table.primary_key) == 1:
        return table.primary_key[0]
    entry = Entry("", table)
    return next((c.name for c in table.columns if is_unique(entry, (c.name,))), None)


def is_unique(entry: Entry, columns: tuple[str, ...]) -> bool | None:
    """Whether no two rows of an entry agree in these columns; None where it is not known."""
    table = entry.table
    if table is None:
        return None
    folded = {name.casefold() for name in columns}
    if table.primary_key and {name.casefold() for name in table.primary_key} <= folded:
        return True
    known = [p for p in table.profile if p.column.casefold() in folded]
    whole = not table.sampled and table.row_count == table.rows_read
    if whole and any(p.distinct == table.rows_read for p in known):
        return True
    if len(columns) == 1 and known and not known[0].whole:
        repeats = known[0].distinct < table.rows_read - known[0].nulls
        return False if repeats else None
    return None


def edges_of(block: Block, where: Sequence[exp.Expr]) -> Iterator[Edge]:
    """The equations between columns of two entries, together for each pair of entries."""
    found: dict[tuple[int, int], tuple[list[str], list[str], bool]] = {}

    def add(one: Place | None, other: Place | None, *, outer: bool) -> None:
        if one is None or other is None:
            return
        places = [(_position(block, place.entry), place.name) for place in (one, other)]
        (a, left), (b, right) = sorted(places)
        if a < 0 or a == b:
            return
        pair = found.setdefault((a, b), ([], [], outer))
        pair[0].append(left)
        pair[1].append(right)

    for number, entry in enumerate(block.entries):
        join = entry.join
        if join is None:
            continue
        outer = bool(join.side)
        for part in conjuncts(join.args.get("on")):
            add(*_sides(part, block), outer=outer)
        for name in join.args.get("using") or ():
            before = [e for e in block.entries[:number] if e.has(name.name)]
            if before:
                add(Place(before[0], name.name), Place(entry, name.name), outer=outer)
    for part in where:
        add(*_sides(part, block), outer=False)
    for (a, b), (left, right, outer) in found.items():
        yield Edge(block.entries[a], tuple(left), block.entries[b], tuple(right), outer)


def _sides(part: exp.Expr, block: Block) -> tuple[Place | None, Place | None]:
    if not isinstance(part, exp.EQ):
        return None, None
    left, right = part.this, part.args["expression"]
    if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
        return None, None
    return block.place(left), block.place(right)


def _position(block: Block, wanted: Entry) -> int:
    return next((n for n, entry in enumerate(block.entries) if entry is wanted), -1)
