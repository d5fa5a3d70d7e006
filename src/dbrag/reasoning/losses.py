"""What a program counts twice or leaves out without saying so: NULLs and joins.

Told only where numbers show it: those of the profile, or, where the program itself was
fast, of one more counting statement over the same rows. At most three, worst first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.catalog.catalog import Catalog
from dbrag.errors import DbragError
from dbrag.execution import guard
from dbrag.execution.run import run
from dbrag.reasoning.blocks import Block, Entry, Place, Statement, take_apart
from dbrag.reasoning.edges import edges_of, is_unique, row_key
from dbrag.reasoning.words import Words, conjuncts, quoted
from dbrag.settings import Settings
from dbrag.sources.base import Source
from dbrag.types import AnswerWarning, ColumnProfile, Program, Table

if TYPE_CHECKING:
    from dbrag.reasoning.attempt import Attempt  # which has doubts, and those come from here

MOST = 3
"""Warnings of this kind for one answer."""

FAST_S = 0.5
"""Seconds up to which a program is fast enough to count its rows once more."""
COUNT_S = 2.0
"""Seconds that counting may take."""

Count = Callable[[exp.Select], Sequence[object] | None]
"""Runs a counting statement: its one row, None where it may not be run or fails."""

_MULTIPLIES, _SUMS, _COUNTS, _NEGATED, _DROPS, _COMPARED = range(6)
_ARITHMETIC = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, exp.Cast, exp.DataType),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div),
)
"""Parts of expressions that have no value exactly where a column of theirs has none."""
_CLAUSES = ("group", "having", "order", "limit", "offset", "distinct", "windows", "qualify")


@dataclass(frozen=True, slots=True)
class _Found:
    rank: int
    code: str
    message: str


def losses(program: Program, tables: Sequence[Table], count: Count) -> tuple[AnswerWarning, ...]:
    """Warnings of rows that are counted twice or left out.

    Args:
        tables: those that the program reads, with their profiles.
        count: runs a counting statement.
    """
    try:
        tree = sqlglot.parse_one(program.sql, dialect=program.dialect)
        statement = take_apart(tree, tables)
        found = [
            one
            for block in statement.blocks
            for one in _Looker(statement, block, program.dialect, count).found()
        ]
    except (SqlglotError, RecursionError):
        return ()  # what cannot be taken apart again was told as such by the explanation
    unique = {one.message: one for one in sorted(found, key=lambda one: one.rank)}
    return tuple(AnswerWarning(one.code, one.message) for one in list(unique.values())[:MOST])


def losses_of(
    attempt: Attempt | None,
    sources: Mapping[str, Source],
    catalog: Catalog,
    settings: Settings,
) -> tuple[AnswerWarning, ...]:
    """The warnings for a program that has run on one of these sources."""
    if attempt is None or attempt.program is None or attempt.execution is None:
        return ()
    program = attempt.program
    by_ref = catalog.by_ref
    tables = [by_ref[ref] for ref in program.tables if ref in by_ref]
    if not tables:
        return ()
    source = sources[tables[0].ref.source]

    def count(query: exp.Select) -> Sequence[object] | None:
        try:
            sql = query.sql(program.dialect)
            allowed = guard.admit(sql, program.dialect, tables, functions=source.functions())
            limit_s = min(COUNT_S, settings.timeout_s)
            return run(source, allowed.sql, timeout_s=limit_s, max_rows=1, max_mb=1).rows[0]
        except DbragError:
            return None  # the profile's numbers have to do

    fast = attempt.execution.seconds <= FAST_S
    return losses(program, tables, count if fast else _not_counted)


def counting(
    block: Block, *counted: exp.Expr, where: Sequence[exp.Expr] | None = None
) -> exp.Select:
    """``SELECT counted… `` over the rows of a block before they are grouped.

    Args:
        where: conditions in place of its own.
    """
    query = block.select.copy()
    for clause in _CLAUSES:
        query.set(clause, None)
    query.set("expressions", list(counted))
    if where is not None:
        query.set("where", None)
        query = query.where(*(part.copy() for part in where), copy=False)
    return query


def aggregated(block: Block) -> Iterator[tuple[str, exp.Expr, list[Place]]]:
    """What SUM, AVG and COUNT go over: a column, or arithmetic with those of one table."""
    for node in block.walk():
        if not isinstance(node, exp.Sum | exp.Avg | exp.Count):
            continue
        if isinstance(node.find_ancestor(exp.Window, exp.Select), exp.Window):
            continue
        argument = node.this
        if not isinstance(argument, exp.Expr) or any(
            not isinstance(part, _ARITHMETIC) for part in block.walk(argument)
        ):
            continue
        places = [block.place(column) for column in argument.find_all(exp.Column)]
        known = [place for place in places if place is not None]
        if not known or len(known) < len(places):
            continue
        own = any(known[0].entry is entry for entry in block.entries)
        if own and all(place.entry is known[0].entry for place in known):
            yield type(node).__name__.upper(), argument, known


class _Looker:
    """Looks at one block."""

    def __init__(self, statement: Statement, block: Block, dialect: str, count: Count) -> None:
        self._block = block
        self._words = Words(block, dialect, statement.labels)
        self._count = count if statement.flat is block else _not_counted
        where = block.select.args.get("where")
        self._where = conjuncts(where.this) if where is not None else []
        self._edges = list(edges_of(block, self._where))

    def found(self) -> Iterator[_Found]:
        for name, argument, places in aggregated(self._block):
            yield from self._nulls_in_aggregate(name, argument, places)
            yield from self._multiplied(name, argument, places[0])
        for part in self._where:
            yield from self._nulls_in_comparison(part)
        for edge in self._edges:
            if not edge.outer:
                yield from self._dropped(edge.left, edge.left_columns, edge.right)
                yield from self._dropped(edge.right, edge.right_columns, edge.left)

    # ---- NULLs ------------------------------------------------------------------

    def _nulls_in_aggregate(
        self, name: str, argument: exp.Expr, places: list[Place]
    ) -> Iterator[_Found]:
        for place in places:
            profile = _profile(place)
            if profile is None or not profile.nulls or self._has_value(place):
                continue
            counted = self._count(counting(self._block, _all(), exp.Count(this=argument.copy())))
            told = _told(counted, place, profile, self._words.value(argument))
            if told:
                rank = _COUNTS if name == "COUNT" else _SUMS
                yield _Found(rank, "nulls_dropped", f"{told}; {name} leaves them out")
            return

    def _nulls_in_comparison(self, part: exp.Expr) -> Iterator[_Found]:
        column, negated = _compared(part)
        place = self._block.place(column) if column is not None else None
        profile = _profile(place) if place is not None else None
        if column is None or place is None or profile is None or not profile.nulls:
            return
        if self._has_value(place):
            return
        others = [other for other in self._where if other is not part]
        said = exp.Count(this=column.copy())
        counted = self._count(counting(self._block, _all(), said, where=others))
        told = _told(counted, place, profile, self._words.value(column))
        if told:
            rank = _NEGATED if negated else _COMPARED
            text = f"{told}; the condition “{self._words.condition(part)}” leaves them out"
            yield _Found(rank, "nulls_dropped", text)

    # ---- joins ------------------------------------------------------------------

    def _multiplied(self, name: str, argument: exp.Expr, place: Place) -> Iterator[_Found]:
        """The rows of the column's table are repeated by a join with several rows each."""
        far = self._repeating(place.entry, pairs_only=name == "COUNT")
        table = place.entry.table
        if far is None or table is None or self._grouped_by(far):
            return
        of, other = self._words.entry(place.entry), self._words.entry(far)
        what = f"{name} of {self._words.value(argument)}"
        key = row_key(table)
        counted = None
        if key is not None:
            distinct = exp.Distinct(expressions=[_column(place.entry, key)])
            counted = self._count(counting(self._block, _all(), exp.Count(this=distinct)))
        if counted is None:
            text = f"a row of {of} may meet several of {other}: {what} may count it more than once"
            yield _Found(_MULTIPLIES, "join_multiplies", text)
            return
        rows, different = map(_number, counted)
        if different < rows:
            text = (
                f"the {rows:,} rows joined with {other} hold only {different:,} different rows of "
                f"{of}: {what} counts some of them more than once"
            )
            yield _Found(_MULTIPLIES, "join_multiplies", text)

    def _repeating(self, start: Entry, *, pairs_only: bool) -> Entry | None:
        """The first entry, going along the joins, that has several rows for one of ``start``.

        ``pairs_only``: only over a join that is unique on neither side, since counting
        the many rows of one is what a join is mostly for.
        """
        reached, waiting = [start], [start]
        while waiting:
            near = waiting.pop(0)
            for edge in self._edges:
                if edge.left is not near and edge.right is not near:
                    continue
                far, columns = edge.from_(near)
                if any(far is entry for entry in reached):
                    continue
                _, own = edge.from_(far)
                both = is_unique(near, own) is False or not pairs_only
                if is_unique(far, columns) is False and both:
                    return far
                reached.append(far)
                waiting.append(far)
        return None

    def _grouped_by(self, far: Entry) -> bool:
        """Whether the groups are those of the repeating side: then it is meant so."""
        group = self._block.select.args.get("group")
        columns = group.find_all(exp.Column) if group is not None else ()
        places = [self._block.place(column) for column in columns]
        return any(place is not None and place.entry is far for place in places)

    def _dropped(self, entry: Entry, columns: tuple[str, ...], far: Entry) -> Iterator[_Found]:
        """Rows without a value in the key of an inner join, if nothing is asked of the other."""
        if entry.table is None or entry.table.sampled or self._asked_of(far):
            return
        for name in columns:
            place = Place(entry, name)
            profile = _profile(place)
            if profile is not None and profile.nulls and not self._has_value(place):
                told = _told(None, place, profile, f"{self._words.entry(entry)}.{quoted(name)}")
                text = f"{told}; the join with {self._words.entry(far)} leaves them out"
                yield _Found(_DROPS, "join_drops", text)

    def _has_value(self, place: Place) -> bool:
        """Whether the program says itself that the column must have a value."""
        for part in self._where:
            inner = part.this.unnest() if isinstance(part, exp.Not) else part
            negated = isinstance(part, exp.Not) != bool(inner.args.get("negate"))
            if negated and isinstance(inner, exp.Is) and isinstance(inner.this, exp.Column):
                found = self._block.place(inner.this)
                if found is not None and (found.entry, found.name) == (place.entry, place.name):
                    return True
        return False

    def _asked_of(self, entry: Entry) -> bool:
        for part in self._where:
            if isinstance(part, exp.EQ) and isinstance(part.args["expression"], exp.Column):
                continue
            for column in part.find_all(exp.Column):
                place = self._block.place(column)
                if place is not None and place.entry is entry:
                    return True
        return False


def _not_counted(_: exp.Select) -> None:
    """For a slow program, and a block within others, whose rows cannot be counted alone."""


def _all() -> exp.Expr:
    return exp.Count(this=exp.Star())


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float | str) else 0


def _column(entry: Entry, name: str) -> exp.Column:
    return exp.column(name, table=exp.to_identifier(entry.alias, quoted=True), quoted=True)


def _profile(place: Place) -> ColumnProfile | None:
    table = place.entry.table
    wanted = place.name.casefold()
    found = table.profile if table is not None else ()
    return next((one for one in found if one.column.casefold() == wanted), None)


def _told(
    counted: Sequence[object] | None, place: Place, profile: ColumnProfile, said: str
) -> str | None:
    """How many rows have no value: as counted, else as the profile has it."""
    if counted is not None:
        rows, present = map(_number, counted)
        missing = rows - present
        verb = "has" if missing == 1 else "have"
        return f"{missing:,} of {rows:,} rows {verb} no {said}" if missing > 0 else None
    table = place.entry.table
    if table is None or "nulls" in profile.whole:
        return None  # an estimate of the engine is no number to tell
    which = "rows looked at" if table.sampled else "rows"
    when = f"{which} of {quoted(table.ref.name)} had no {said} when indexed"
    return f"{profile.nulls:,} of {table.rows_read:,} {when}"


def _compared(part: exp.Expr) -> tuple[exp.Column | None, bool]:
    """The column that a condition compares with something else than NULL; is it negated?"""
    inner = part.this.unnest() if isinstance(part, exp.Not) else part
    negated = isinstance(part, exp.Not) or bool(inner.args.get("negate"))
    negated = negated or isinstance(inner, exp.NEQ)
    ordered = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
    if not isinstance(inner, ordered) and not (
        negated and isinstance(inner, exp.NEQ | exp.In | exp.Like | exp.ILike | exp.EQ)
    ):
        return None, negated
    sides = (inner.this, inner.args.get("expression"))
    columns = [side for side in sides if isinstance(side, exp.Column)]
    return (columns[0] if len(columns) == 1 else None), negated
