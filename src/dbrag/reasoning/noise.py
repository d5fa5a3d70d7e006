"""Warnings about a program that takes noisy texts as they stand.

What a column's texts are like is told by its profile (``catalog.formats``). A program is
warned of only where it compares, sorts, groups or adds up such a column plainly: a column
inside CASE, REPLACE or the like is left to the program, and so is any doubt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.formats import ColumnFormat, column_format, same_value, visible
from dbrag.reasoning.repair import TableNames, parse
from dbrag.types import AnswerWarning, Column, ColumnProfile, Program, Table

log = logging.getLogger(__name__)

MAX_SHOWN = 3
"""Values that a warning repeats."""
_CASELESS = frozenset({"mysql", "tsql"})
"""Engines whose = disregards letter case and blanks at the end, as they come."""
_ORDERING = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_ADDING = (exp.Sum, exp.Avg, exp.Add, exp.Sub, exp.Mul, exp.Div)
_DATE_FUNCTIONS = (exp.TimeToStr, exp.TsOrDsToTimestamp, exp.Date, exp.TsOrDsToDate)
_DATE_NAMES = frozenset({"julianday", "datetime", "unixepoch", "strftime", "date"})
_MAX_DEPTH = 20


@dataclass(frozen=True)
class _Cell:
    """A real column with what its profile shows."""

    table: Table
    column: Column
    profile: ColumnProfile

    @property
    def name(self) -> str:
        return f"{self.table.ref.name}.{self.column.name}"

    @property
    def format(self) -> ColumnFormat:
        return column_format(self.column, self.profile)


@dataclass
class _Use:
    """How a program uses one column; ``handled``: it is looked at in a CASE somewhere."""

    cell: _Cell
    equal: dict[str, None] = field(default_factory=dict)
    like: dict[str, None] = field(default_factory=dict)
    grouped: bool = False
    joined: bool = False
    ordered: bool = False
    added: bool = False
    cast: bool = False
    dated: bool = False
    handled: bool = False


@dataclass(frozen=True, slots=True)
class Spelled:
    """What a column holds beside the texts that it is compared with.

    ``same``: other spellings, with their rows if they were counted. ``near``: likely
    misspellings, with the text they are for and their rows.
    """

    same: Mapping[str, int | None]
    near: Mapping[str, tuple[str, int]]


Look = Callable[[Table, Column, Sequence[str]], Spelled]


def noise_warnings(
    program: Program, catalog: Catalog, look: Look | None = None
) -> tuple[AnswerWarning, ...]:
    """What a program leaves out or mistakes because of how texts are written.

    Codes: ``mixed_spellings``, ``dates_as_text``, ``numbers_as_text``; one of a column each.

    Args:
        look: finds the spellings of compared texts; without it those of the profile count.
    """
    tables = [catalog.by_ref[ref] for ref in program.tables if ref in catalog.by_ref]
    tree = parse(program.sql, program.dialect)
    if tree is None or (look is None and not any(_is_noisy(table) for table in tables)):
        return ()
    uses = _Uses(TableNames(tables), program.dialect)
    try:
        for scope in traverse_scope(tree):
            uses.read(scope)
    except (SqlglotError, RecursionError) as error:  # the engine has run it: nothing to refuse
        log.info("no look at noise: %s", error)
        return ()
    said = {literal.this for literal in tree.find_all(exp.Literal) if literal.is_string}
    found: list[AnswerWarning] = []
    for use in uses.found.values():
        found += [*_of_values(use, program.dialect, look)] or _of_groups(use, program.dialect)
        found += _of_dates(use)
        found += _of_numbers(use, said)
    return tuple(found)


def _is_noisy(table: Table) -> bool:
    plain = ColumnFormat()
    types = {column.name: column for column in table.columns}
    return any(
        column_format(types[profile.column], profile) != plain
        for profile in table.profile
        if profile.column in types
    )


class _Uses:
    """Gathers the uses of all columns, scope by scope."""

    def __init__(self, names: TableNames, dialect: str) -> None:
        self.found: dict[tuple[object, str], _Use] = {}
        self._names = names
        self._dialect = dialect

    def read(self, scope: Scope) -> None:
        for equal in scope.find_all(exp.EQ, exp.NEQ):
            self._compared(equal.this, equal.expression, scope)
            self._compared(equal.expression, equal.this, scope)
        for inside in scope.find_all(exp.In):
            for value in inside.expressions:
                self._compared(inside.this, value, scope)
        for like in scope.find_all(exp.Like, exp.ILike):
            if isinstance(like.expression, exp.Literal) and like.expression.is_string:
                for use in self._use(like.this, scope):
                    use.like[like.expression.this] = None
        for compared in scope.find_all(*_ORDERING):
            self._ordering(compared, scope)
        for ordered in scope.find_all(exp.Ordered, exp.Min, exp.Max):
            for use in self._use(ordered.this, scope):
                use.ordered = True
        for added in scope.find_all(*_ADDING):
            for side in (added.this, added.args.get("expression")):
                plain = side.this if isinstance(side, exp.Cast) else side
                for use in self._use(plain, scope):
                    use.added = True
        for cast in scope.find_all(exp.Cast):
            if cast.to.is_type(*exp.DataType.NUMERIC_TYPES):
                for use in self._use(cast.this, scope):
                    use.cast = True
        for group in self._grouped(scope):
            for use in self._use(group, scope):
                use.grouped = True
        if self._dialect == "sqlite":
            self._dates(scope)
        for case in scope.find_all(exp.Case, exp.If):
            for column in case.find_all(exp.Column):
                if (cell := self._cell(column, scope, _MAX_DEPTH)) is not None:
                    self._of(cell).handled = True

    def _compared(self, side: exp.Expr, other: exp.Expr, scope: Scope) -> None:
        if isinstance(other, exp.Literal) and other.is_string:
            for use in self._use(side, scope):
                use.equal[other.this] = None
        elif isinstance(other, exp.Column) and isinstance(side, exp.Column):
            for use in self._use(side, scope):
                use.joined = True

    def _ordering(self, node: exp.Expr, scope: Scope) -> None:
        if isinstance(node, exp.Between):
            pairs = [(node.this, node.args["low"])]
        else:
            pairs = [(node.this, node.expression), (node.expression, node.this)]
        for side, other in pairs:
            # Beside a number other engines than SQLite read the text as one, or refuse.
            is_text = isinstance(other, exp.Literal) and other.is_string
            if is_text or (self._dialect == "sqlite" and not isinstance(other, exp.Column)):
                for use in self._use(side, scope):
                    use.ordered = True

    def _grouped(self, scope: Scope) -> Iterator[exp.Expr]:
        select = scope.expression
        if isinstance(select, exp.Select):
            group = select.args.get("group")
            yield from group.expressions if group else ()
            if select.args.get("distinct") and len(select.expressions) == 1:
                yield from (e.unalias() for e in select.expressions)
        for count in scope.find_all(exp.Count):
            if isinstance(count.this, exp.Distinct):
                yield from count.this.expressions

    def _dates(self, scope: Scope) -> None:
        for node in scope.find_all(*_DATE_FUNCTIONS, exp.Anonymous):
            if isinstance(node, exp.Anonymous):
                if node.name.casefold() not in _DATE_NAMES:
                    continue
                inner = node.expressions
            else:
                inner = [node.this]
            for one in inner:
                for use in self._use(one, scope):
                    use.dated = True

    def _use(self, node: exp.Expr | None, scope: Scope) -> Iterator[_Use]:
        """The use of a node that is nothing but a column, outside of CASE."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column) or node.find_ancestor(exp.Case, exp.If) is not None:
            return
        cell = self._cell(node, scope, _MAX_DEPTH)
        if cell is not None:
            yield self._of(cell)

    def _of(self, cell: _Cell) -> _Use:
        return self.found.setdefault((cell.table.ref, cell.column.name), _Use(cell))

    def _cell(self, column: exp.Column, scope: Scope, depth: int) -> _Cell | None:
        """The real column behind a name, through steps that hand it on unchanged."""
        if depth == 0:
            return None
        alias = column.table.casefold()
        if not alias and _is_made(column, scope):
            return None
        found = []
        for name, source in scope.sources.items():
            if alias and name.casefold() != alias:
                continue
            if isinstance(source, Scope):
                handed = _handed_on(column.name, source)
                if isinstance(handed, exp.Column):
                    found.append(self._cell(handed, source, depth - 1))
                elif handed is not None:
                    found.append(None)
            elif (cell := self._real(source, column.name)) is not None:
                found.append(cell)
        return found[0] if len(found) == 1 else None

    def _real(self, source: exp.Table, name: str) -> _Cell | None:
        table = self._names.of(source)
        column = table.column(name) if table else None
        if table is None or column is None:
            return None
        profile = next((p for p in table.profile if p.column == column.name), None)
        return _Cell(table, column, profile) if profile else None


def _is_made(column: exp.Column, scope: Scope) -> bool:
    """Whether ORDER BY or GROUP BY may mean an expression that has the column's name."""
    if column.find_ancestor(exp.Order, exp.Group) is None:
        return False
    if not isinstance(scope.expression, exp.Query):
        return False
    made = [e for e in scope.expression.selects if isinstance(e, exp.Alias)]
    return any(e.alias.casefold() == column.name.casefold() for e in made)


def _handed_on(name: str, scope: Scope) -> exp.Expr | None:
    """What a step computes under a name."""
    if not isinstance(scope.expression, exp.Select):
        return None
    for selected in scope.expression.selects:
        if selected.alias_or_name.casefold() == name.casefold():
            return selected.unalias()
    return None


def _of_values(use: _Use, dialect: str, look: Look | None) -> Iterator[AnswerWarning]:
    """Of values that a comparison misses."""
    cell = use.cell
    texts = [text for text in use.equal if any(c.isalpha() for c in text)]
    if not texts or cell.format.dates or cell.format.numbers:
        return
    asked = {same_value(text): text for text in reversed(texts)}
    seen = visible(cell.profile)
    shown = {value: n for value, n in seen.items() if same_value(value) in asked}
    spelled = look(cell.table, cell.column, texts) if look else Spelled(shown, {})
    same = {v: n for v, n in spelled.same.items() if not _is_matched(v, use.equal, dialect)}
    parts = []
    if same:
        whole = look is not None or (
            cell.profile.distinct <= len(cell.profile.frequent) and not cell.table.sampled
        )
        literal = asked[same_value(next(iter(same)))]
        parts.append(f"{_counted(same, whole)}, not equal to {literal!r}")
    if spelled.near:
        rows = {value: n for value, (_, n) in spelled.near.items()}
        literal = next(iter(spelled.near.values()))[0]
        parts.append(f"{_counted(rows, True)}, likely misspelt for {literal!r}")
    if parts:
        also = " also" if look is not None or any(text in seen for text in texts) else ""
        yield AnswerWarning("mixed_spellings", f"{cell.name}{also} holds {'; '.join(parts)}")


def _counted(values: Mapping[str, int | None], whole: bool) -> str:
    """Values with the number of their rows; without it where one is not known exactly."""
    counts = [n for n in values.values() if n is not None]
    if not whole or len(counts) < len(values):
        return _shown(values)
    return f"{_shown(values)} ({sum(counts):,} row{'s' if sum(counts) != 1 else ''})"


def _of_groups(use: _Use, dialect: str) -> Iterator[AnswerWarning]:
    """Of values that are kept apart, or do not meet."""
    cell = use.cell
    if cell.format.dates or cell.format.numbers:
        return
    groups = [group for group in cell.format.spellings if not _one(group, dialect)]
    if use.grouped and groups:
        yield AnswerWarning(
            "mixed_spellings",
            f"{cell.name} holds one value as {_shown(groups[0])}: they are counted apart",
        )
    elif (use.joined or use.grouped) and cell.format.blanks and dialect not in _CASELESS:
        yield AnswerWarning(
            "mixed_spellings",
            f"{cell.name} has blanks around some of its values, which = does not overlook",
        )


def _is_matched(value: str, literals: Iterable[str], dialect: str) -> bool:
    if dialect not in _CASELESS:
        return value in literals
    return value.rstrip().casefold() in {text.rstrip().casefold() for text in literals}


def _one(group: Iterable[str], dialect: str) -> bool:
    """Whether the engine takes all spellings for one."""
    return dialect in _CASELESS and len({text.rstrip().casefold() for text in group}) == 1


def _of_dates(use: _Use) -> Iterator[AnswerWarning]:
    dates = use.cell.format.dates
    if not dates or use.handled:
        return
    if use.ordered:
        how = "compared and sorted as text, not by date"
    elif use.dated:
        how = "the engine's functions do not read them as dates"
    elif len(dates) > 1 and (use.grouped or any(text[-1:].isdigit() for text in use.equal)):
        how = "compared as text, a day written in another way is another one"
    elif 0 < len(use.like) < len(dates):
        how = "compared with fewer patterns than ways to write them"
    else:
        return
    yield AnswerWarning(
        "dates_as_text", f"{use.cell.name} holds dates as text ({', '.join(dates)}): {how}"
    )


def _of_numbers(use: _Use, said: set[str]) -> Iterator[AnswerWarning]:
    form = use.cell.format
    if use.handled or not (form.numbers or form.unsorted):
        return
    unknown = [word for word in form.unknown if word not in said]
    if use.ordered and form.unsorted:
        how = "compared and sorted as text, not as numbers"
    elif (use.added or use.cast) and not form.prefix:
        how = f"read up to the first sign that is no digit: {_shown(form.numbers)}"
    elif (use.added or use.cast) and len(form.units) > 1:
        how = f"read without their units: {_shown(form.numbers)}"
    elif use.added and unknown:
        how = f"added up with 0 for {_shown(unknown)}"
    else:
        return
    yield AnswerWarning("numbers_as_text", f"{use.cell.name} holds numbers as text: {how}")


def _shown(values: Iterable[str]) -> str:
    texts = [repr(value) for value in values]
    more = [f"{len(texts) - MAX_SHOWN} more"] if len(texts) > MAX_SHOWN else []
    texts = texts[:MAX_SHOWN] + more
    return " and ".join(part for part in (", ".join(texts[:-1]), texts[-1]) if part)
