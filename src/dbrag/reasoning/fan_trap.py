"""Aggregates over rows that a join repeats (the fan trap): certain enough to be repaired.

``SELECT s.city, SUM(s.budget) FROM stores s JOIN orders o ON …`` adds a store's budget once
for each of its orders. Told only where all of this holds: the aggregate goes over columns of
tables with a known key; by keys or by its profile another table in the join has several rows
for one of theirs; and the engine, asked once, finds rows of theirs more than once within one
group of the result. So grouping by the repeating side is no trap, nor a filter that leaves
one row of it, nor DISTINCT.

A COUNT is mostly meant to count the rows that a join makes: it is told only where the counted
rows are many to one of another table (a store's staff) which a third repeats (its orders).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.errors import DbragError
from dbrag.execution import guard
from dbrag.execution.run import run
from dbrag.reasoning.blocks import Block, Entry, Place, Statement, take_apart
from dbrag.reasoning.edges import Edge, edges_of, is_unique, row_key
from dbrag.reasoning.losses import aggregated, counting
from dbrag.reasoning.words import Words, conjuncts
from dbrag.settings import Settings
from dbrag.sources.base import Source
from dbrag.types import Program, Table

LOCAL = ("sqlite", "duckdb")
"""Dialects of engines that run in this process: looking costs little."""
COUNT_S = 1.0
"""Seconds that counting may take, of one aggregate."""
MOST_ASKED = 3
"""Aggregates of one program that are counted."""


@dataclass(frozen=True, slots=True)
class _Trap:
    """An aggregate whose rows may be repeated: of ``near``, by ``far``."""

    name: str
    argument: exp.Expr
    near: Entry
    far: Entry


def doubled_aggregate(
    program: Program, tables: Sequence[Table], source: Source, settings: Settings
) -> str | None:
    """What to tell the writer of a program that counts rows more than once; None if it does
    not, if that is not certain, or would take long to find out. Only local engines are asked.

    Args:
        tables: those that the program reads, with keys and profiles; others may be there.
    """
    if program.dialect not in LOCAL:
        return None
    read = [table for table in tables if table.ref in set(program.tables)]
    try:
        tree = sqlglot.parse_one(program.sql, dialect=program.dialect)
        statement = take_apart(tree, read)
        traps = [
            (block, trap)
            for block in statement.blocks
            if _stands_alone(block)
            for trap in _traps(block)
        ]
        for block, trap in traps[:MOST_ASKED]:
            query = _repeats(block, trap)
            times = _asked(query, program, read, source, settings) if query is not None else 0
            if times > 1:
                return _told(statement, block, trap, times, program.dialect)
    except (SqlglotError, RecursionError):
        return None  # what cannot be taken apart is told as such by the explanation
    return None


def _stands_alone(block: Block) -> bool:
    """Whether it reads several tables and nothing else, and no row of a query around it."""
    if len(block.entries) < 2 or any(entry.table is None for entry in block.entries):
        return False
    return all(
        place is not None and any(place.entry is entry for entry in block.entries)
        for node in block.walk()
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)
        for place in [block.place(node) or _of_output(block, node)]
    )


def _of_output(block: Block, column: exp.Column) -> Place | None:
    """A column that ORDER BY or HAVING names as the result does: it is looked at there."""
    return Place(block.entries[0], column.name) if block.output_named(column) is not None else None


def _traps(block: Block) -> Iterator[_Trap]:
    where = block.select.args.get("where")
    edges = list(edges_of(block, conjuncts(where.this) if where is not None else []))
    for name, argument, places in aggregated(block):
        near = places[0].entry
        if near.table is None or row_key(near.table) is None:
            continue
        far = _repeating(near, edges, up=name != "COUNT")
        if far is not None:
            yield _Trap(name, argument, near, far)


def _repeating(start: Entry, edges: Sequence[Edge], *, up: bool) -> Entry | None:
    """The nearest entry, going along the joins, that has several rows for one of ``start``.

    Args:
        up: also where none before it on the way has several rows of ``start``.
    """
    waiting, reached = [(start, up)], [start]
    while waiting:
        near, ready = waiting.pop(0)
        for edge in edges:
            if edge.left is not near and edge.right is not near:
                continue
            far, columns = edge.from_(near)
            if any(far is entry for entry in reached):
                continue
            _, own = edge.from_(far)
            many_here = is_unique(near, own) is False
            if is_unique(far, columns) is False and (ready or many_here):
                return far
            reached.append(far)
            waiting.append((far, ready or many_here))
    return None


def _repeats(block: Block, trap: _Trap) -> exp.Select | None:
    """``SELECT MAX(n)``: how often one row of the aggregated table is in one group at most."""
    groups = _groups(block)
    table = trap.near.table
    key = row_key(table) if table is not None else None
    if groups is None or key is None:
        return None
    row = exp.column(key, table=exp.to_identifier(trap.near.alias, quoted=True), quoted=True)
    rows = counting(block, exp.alias_(exp.Count(this=exp.Star()), "n"))
    rows = rows.where(trap.argument.copy().is_(exp.null()).not_(), row.is_(exp.null()).not_())
    rows = rows.group_by(*groups, row)
    return exp.select(exp.Max(this=exp.column("n"))).from_(rows.subquery("counted"))


def _groups(block: Block) -> list[exp.Expr] | None:
    """What the rows are grouped by, without positions and names of the result; None where
    that has other forms than a plain list."""
    group = block.select.args.get("group")
    if group is None:
        return []
    if any(value for name, value in group.args.items() if name != "expressions"):
        return None
    found: list[exp.Expr] = []
    for one in group.expressions:
        item = one
        if isinstance(one, exp.Literal) and not one.is_string:
            place = int(one.this) if one.this.isdigit() else 0
            if not 1 <= place <= len(block.select.expressions):
                return None
            item = block.select.expressions[place - 1].unalias()
        elif isinstance(one, exp.Column) and block.place(one) is None:
            named = block.output_named(one)
            if named is None:
                return None
            item = named
        found.append(item.copy())
    return found


def _asked(
    query: exp.Select, program: Program, tables: Sequence[Table], source: Source, settings: Settings
) -> int:
    """The engine's answer; 0 where it has none in time."""
    limit_s = min(COUNT_S, settings.timeout_s)
    try:
        admitted = guard.admit(
            query.sql(program.dialect), program.dialect, tables, functions=source.functions()
        )
        rows = run(source, admitted.sql, timeout_s=limit_s, max_rows=1, max_mb=1).rows
    except DbragError:
        return 0  # too slow, or not allowed: then nothing is certain
    return int(rows[0][0] or 0)


def _told(statement: Statement, block: Block, trap: _Trap, times: int, dialect: str) -> str:
    words = Words(block, dialect, statement.labels)
    near, far = words.entry(trap.near), words.entry(trap.far)
    what = f"{trap.name}({words.value(trap.argument)})"
    better = (
        f"COUNT(DISTINCT …) of a key of {near}, or count" if trap.name == "COUNT" else "aggregate"
    )
    return (
        f"Joining {near} with {far} repeats rows of {near} (one of them {times:,} times in one "
        f"group), so {what} takes them more than once. If that is not meant, {better} in a "
        f"subquery before joining {far}"
    )
