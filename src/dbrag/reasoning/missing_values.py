"""Compared texts that a column does not hold, for a program that found nothing.

A result of no rows, or of one cell that is NULL or 0, often means a value in another spelling
or in another column. The engine says whether the column has it; the nearest of its values and
the columns that do have it are named to the writer of the program.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from dbrag.catalog.formats import same_value
from dbrag.errors import DbragError
from dbrag.execution import guard
from dbrag.execution.run import run
from dbrag.reasoning.names import literal, shown
from dbrag.reasoning.repair import TableNames, parse, tables_in
from dbrag.retrieval.spelling import edits, typo_limit
from dbrag.sources.statements import form_of
from dbrag.textsafe import mask_secrets
from dbrag.types import Column, Execution, Program, Table

if TYPE_CHECKING:
    from dbrag.index.values import ValueIndex
    from dbrag.settings import Settings
    from dbrag.sources.base import Source

TOTAL_S = 2.0
"""Seconds that looking up may take, of one program."""
MOST_TOLD = 3
"""Comparisons that are told of."""
MAX_CHARS = 450
"""Of all that is told, where it is more than one comparison: a repair prompt has room for it."""
MOST_NEAR = 4
"""Values of the column that are named."""
FEW = 12
"""A column of at most so many values is told whole where none is near."""
MOST_VALUES = 5_000
"""Distinct values of a column that are compared with what was looked for."""
_HITS = 50
_FILTERED = 500
"""Up to so many tables the index is searched for values of these only."""
_NEAR = 0.7
"""Likeness from which a value is near (0..1, difflib over folded texts)."""
_MAX_CHARS = 100
_CASED = (exp.Lower, exp.Upper, exp.Trim)
_FIGURES = re.compile(r"[\d\s:./+-]*\Z")


@dataclass(frozen=True, slots=True)
class _Compared:
    """A column with the texts that its rows must have, one of them at least.

    Attributes:
        texts: without the marks of patterns; ``written`` with them.
        condition: the comparison with the column standing alone.
        like: whether it is one with a pattern.
    """

    table: Table
    column: Column
    texts: tuple[str, ...]
    written: tuple[str, ...]
    condition: exp.Expr
    like: bool = False


def is_empty(execution: Execution) -> bool:
    """Whether a result is no rows, or one cell with NULL or 0."""
    rows = execution.rows
    if not rows:
        return True
    return len(rows) == 1 and len(rows[0]) == 1 and (rows[0][0] is None or rows[0][0] == 0)


def missing_values(
    program: Program,
    execution: Execution,
    tables: Sequence[Table],
    source: Source,
    settings: Settings,
    values: ValueIndex | None = None,
) -> str | None:
    """What to tell the writer of a program whose result is empty, None if every compared text
    occurs, if nothing was compared, or where that cannot be found out in time.

    ``country = 'Frence': no such value; nearest: 'France', 'French Guiana'; 'Frence' occurs in
    city.name``. Columns that nobody may read are in no table, so they are never looked at.

    Args:
        tables: all of the source that may be read.
        values: says in which other columns of ``tables`` a text occurs.

    Raises:
        IndexUnusable: the index is damaged.
    """
    if not is_empty(execution):
        return None
    asker = _Asker(source, settings, tables)
    told: list[str] = []
    for one in _comparisons(program, tables):
        if len(told) >= MOST_TOLD or not asker.has_time():
            break
        if asker.has(one) is False:
            instead, few = asker.instead(one)
            places = _places(one, tables, values)
            if few and places:
                instead = ""  # the other column is meant
            told.append(_told(one, instead, places, program.dialect))
    told = list(dict.fromkeys(told))
    while len(told) > 1 and len("; ".join(told)) > MAX_CHARS:
        told.pop()  # the first ones are enough to go on with
    return "; ".join(told) or None


class _Asker:
    """Asks the engine within the time that is left."""

    def __init__(self, source: Source, settings: Settings, tables: Sequence[Table]) -> None:
        self._source = source
        self._tables = tables
        self._until = time.monotonic() + min(TOTAL_S, settings.timeout_s)

    def has_time(self) -> bool:
        return time.monotonic() < self._until

    def has(self, compared: _Compared) -> bool | None:
        """Whether a row satisfies the comparison; None if that cannot be said."""
        found = self._rows(_from(compared, exp.select("1")).where(compared.condition).limit(1))
        return None if found is None else bool(found)

    def instead(self, compared: _Compared) -> tuple[str, bool]:
        """What the column holds that is most like the texts looked for; without anything near
        all that it holds (then True), if that is little."""
        cell = exp.column(compared.column.name, quoted=True)
        query = _from(compared, exp.select(cell).distinct()).where(cell.is_(exp.null()).not_())
        found = self._rows(query.limit(MOST_VALUES)) or ()
        stored = [row[0] for row in found if isinstance(row[0], str) and row[0].strip()]
        if near := nearest(compared.texts, stored, self._until):
            return f"nearest: {_listed(near, self._source.dialect)}", False
        few = _listed(sorted(stored)[: FEW + 1], self._source.dialect)
        if 0 < len(stored) <= FEW and len(stored) == len(found) and len(few) <= MAX_CHARS // 2:
            return f"it holds {few}", True
        return "", False

    def _rows(self, query: exp.Select) -> tuple[tuple[Any, ...], ...] | None:
        left = self._until - time.monotonic()
        if left <= 0:
            return None
        dialect = self._source.dialect
        try:
            admitted = guard.admit(
                query.sql(dialect), dialect, self._tables, functions=self._source.functions()
            )
            done = run(self._source, admitted.sql, timeout_s=left, max_rows=MOST_VALUES, max_mb=16)
        except DbragError:
            return None  # too slow, or not comparable
        return done.rows


def nearest(texts: Sequence[str], stored: Sequence[str], until: float = math.inf) -> list[str]:
    """The stored values most like one of the texts, the nearest first, at most ``MOST_NEAR``.

    Near are other spellings, misspellings, values that begin with or contain the text or the
    other way round, and those that share most of their letters in order.

    Args:
        until: when to stop (``time.monotonic``); values not looked at by then are not near.
    """
    scored: list[tuple[float, str]] = []
    wanted = [same_value(text[:_MAX_CHARS]) for text in texts]
    for value in dict.fromkeys(stored):
        if time.monotonic() > until:
            break
        folded = same_value(value[:_MAX_CHARS])
        score = max((_likeness(one, folded) for one in wanted if one), default=0.0)
        if score >= _NEAR:
            scored.append((-score, value))
    return [value for _, value in sorted(scored)[:MOST_NEAR]]


def _likeness(wanted: str, value: str) -> float:
    """0..1 for two folded texts, 1 for equal ones."""
    if wanted == value:
        return 1.0
    limit = typo_limit(wanted)
    if limit and edits(wanted, value, limit) <= limit:
        return 0.95 + 0.04 * SequenceMatcher(None, wanted, value, autojunk=False).ratio()
    shorter, longer = sorted((wanted, value), key=len)
    if len(shorter) >= 3 and re.search(rf"\b{re.escape(shorter)}", longer):
        return 0.9
    if limit and any(edits(wanted, word, limit) <= limit for word in value.split()):
        return 0.85
    matcher = SequenceMatcher(None, wanted, value, autojunk=False)
    if matcher.real_quick_ratio() < _NEAR or matcher.quick_ratio() < _NEAR:
        return 0.0
    return min(0.84, matcher.ratio())


def _comparisons(program: Program, tables: Sequence[Table]) -> Iterator[_Compared]:
    """Every comparison of a text column with texts that rows have to satisfy."""
    tree = parse(program.sql, program.dialect)
    if tree is None:
        return
    names = TableNames(tables)
    try:
        for scope in traverse_scope(tree):
            known = tables_in(scope, names)
            for node in scope.find_all(exp.EQ, exp.In, exp.Like, exp.ILike):
                if known and not _is_negated(node, scope):
                    yield from _compared(node, known)
    except (SqlglotError, RecursionError):
        return


def _compared(node: exp.Expr, known: dict[str, Table]) -> Iterator[_Compared]:
    side, others = _sides(node)
    column = _bare(side)
    texts = [one.this for one in others if isinstance(one, exp.Literal) and one.is_string]
    if column is None or not texts or len(texts) < len(others):
        return
    like = isinstance(node, exp.Like | exp.ILike)
    looked = tuple(text.strip("%").replace("%", " ") if like else text for text in texts)
    homes = [known.get(column.table.casefold())] if column.table else list(known.values())
    found = [
        (table, real)
        for table in homes
        if table is not None and (real := table.column(column.name)) is not None
    ]
    if len(found) != 1:
        return
    table, real = found[0]
    is_text = not real.type or form_of(real.type) in ("text", "short text")
    if not is_text or all(_FIGURES.match(text) for text in looked):
        return  # a date or a number has no nearest spelling
    condition = node.copy()
    for cell in list(condition.find_all(exp.Column)):
        cell.replace(exp.column(real.name, quoted=True))
    yield _Compared(table, real, looked, tuple(texts), condition, like)


def _sides(node: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
    """The side that may be a column, and what it is compared with."""
    if isinstance(node, exp.In):
        return node.this, list(node.expressions)
    one, other = node.this, node.args["expression"]
    return (other, [one]) if isinstance(one, exp.Literal) else (one, [other])


def _bare(side: exp.Expr) -> exp.Column | None:
    """The column of ``c``, ``LOWER(c)``, ``TRIM(UPPER(c))``."""
    while isinstance(side, _CASED) and len(side.args) - list(side.args.values()).count(None) == 1:
        side = side.this
    return side if isinstance(side, exp.Column) else None


def _is_negated(node: exp.Expr, scope: Scope) -> bool:
    """Whether rows need not satisfy a comparison."""
    place = node.parent
    while place is not None and place is not scope.expression:
        if isinstance(place, exp.Not | exp.Case | exp.Select | exp.If):
            return True
        place = place.parent
    return False


def _from(compared: _Compared, query: exp.Select) -> exp.Select:
    ref = compared.table.ref
    return query.from_(exp.table_(ref.name, db=ref.schema, quoted=True))


def _places(
    compared: _Compared, tables: Sequence[Table], values: ValueIndex | None
) -> list[tuple[str, Table, str]]:
    """(text, table, column) where a text that was looked for occurs otherwise."""
    if values is None:
        return []
    by_ref = {table.ref: table for table in tables}
    among = by_ref if len(by_ref) <= _FILTERED else None
    found: dict[tuple[str, Table, str], None] = {}
    for text in compared.texts[:MOST_TOLD]:
        for hit in values.search(text[:_MAX_CHARS], _HITS, among):
            here = (hit.table, hit.column) == (compared.table.ref, compared.column.name)
            if not here and same_value(hit.value) == same_value(text) and hit.table in by_ref:
                found[hit.value, by_ref[hit.table], hit.column] = None
    return list(found)[:MOST_TOLD]


def _told(
    compared: _Compared,
    instead: str,
    places: Sequence[tuple[str, Table, str]],
    dialect: str,
) -> str:
    column = f"{shown(compared.table.ref.name, dialect)}.{shown(compared.column.name, dialect)}"
    how = "LIKE" if compared.like else "="
    wanted = _listed(compared.written[:MOST_TOLD], dialect)
    said = [f"{column} {how} {wanted}: no such value", *filter(None, [instead])]
    for text, table, name in places:
        where = f"{shown(table.ref.name, dialect)}.{shown(name, dialect)}"
        said.append(f"{_text(text, dialect)} occurs in {where}")
    return "; ".join(said)


def _listed(values: Sequence[str], dialect: str) -> str:
    return ", ".join(_text(value, dialect) for value in values)


def _text(value: str, dialect: str) -> str:
    return literal(mask_secrets(value[:_MAX_CHARS]), dialect)
