"""How a program uses real columns: what it compares, sorts, groups and adds up.

A column is followed through steps that hand it on unchanged. Inside CASE it is noted as handled,
with the texts that it is compared with: all else that a program does there is left to it, and so
is any doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from dbrag.catalog.formats import ColumnFormat, column_format
from dbrag.reasoning.repair import TableNames
from dbrag.types import Column, ColumnProfile, Table

_ORDERING = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_ADDING = (exp.Sum, exp.Avg, exp.Add, exp.Sub, exp.Mul, exp.Div)
_DATE_FUNCTIONS = (exp.TimeToStr, exp.TsOrDsToTimestamp, exp.Date, exp.TsOrDsToDate)
_DATE_NAMES = frozenset({"julianday", "datetime", "unixepoch", "strftime", "date"})
_MAX_DEPTH = 20


@dataclass(frozen=True)
class Cell:
    """A real column with what its profile shows."""

    table: Table
    column: Column
    profile: ColumnProfile

    @property
    def name(self) -> str:
        """``table.column``."""
        return f"{self.table.ref.name}.{self.column.name}"

    @property
    def format(self) -> ColumnFormat:
        """How its texts are written."""
        return column_format(self.column, self.profile)


@dataclass
class Use:
    """How a program uses one column.

    ``handled``: it is looked at in a CASE somewhere. ``equal``: the texts that it is compared
    with. ``compared``: those comparisons outside of CASE, nodes of the program's own tree.
    """

    cell: Cell
    equal: dict[str, None] = field(default_factory=dict)
    compared: list[exp.Expr] = field(default_factory=list)
    like: dict[str, None] = field(default_factory=dict)
    grouped: bool = False
    joined: bool = False
    ordered: bool = False
    added: bool = False
    cast: bool = False
    dated: bool = False
    handled: bool = False

    @property
    def words(self) -> list[str]:
        """The texts it is compared with that have letters; none beside dates and numbers."""
        if self.cell.format.dates or self.cell.format.numbers:
            return []
        return [text for text in self.equal if any(c.isalpha() for c in text)]


def uses_of(tree: exp.Expr, tables: Sequence[Table], dialect: str) -> list[Use]:
    """The uses of all columns of ``tables``, each column once.

    Raises:
        SqlglotError, RecursionError: a statement too odd to be read.
    """
    uses = _Uses(TableNames(tables), dialect)
    for scope in traverse_scope(tree):
        uses.read(scope)
    return list(uses.found.values())


class _Uses:
    """Gathers the uses of all columns, scope by scope."""

    def __init__(self, names: TableNames, dialect: str) -> None:
        self.found: dict[tuple[object, str], Use] = {}
        self._names = names
        self._dialect = dialect

    def read(self, scope: Scope) -> None:
        for equal in scope.find_all(exp.EQ, exp.NEQ):
            self._compared(equal.this, equal.expression, scope)
            self._compared(equal.expression, equal.this, scope)
        for inside in scope.find_all(exp.In):
            for value in inside.expressions:
                self._compared(inside.this, value, scope)
        for simple in scope.find_all(exp.Case):
            if simple.this is not None:
                for branch in simple.args["ifs"]:
                    self._compared(simple.this, branch.this, scope)
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
            case = other.find_ancestor(exp.Case, exp.If)
            if case is not None and _hands_on(case, side):
                return
            for use in self._use(side, scope, in_case=True):
                use.equal[other.this] = None
                parent = other.parent
                if case is not None or parent is None:
                    continue
                # By identity: equal comparisons in several subqueries are several nodes.
                if not any(one is parent for one in use.compared):
                    use.compared.append(parent)
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

    def _use(self, node: exp.Expr | None, scope: Scope, *, in_case: bool = False) -> Iterator[Use]:
        """The use of a node that is nothing but a column, outside of CASE unless ``in_case``."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column):
            return
        if not in_case and node.find_ancestor(exp.Case, exp.If) is not None:
            return
        cell = self._cell(node, scope, _MAX_DEPTH)
        if cell is not None:
            yield self._of(cell)

    def _of(self, cell: Cell) -> Use:
        return self.found.setdefault((cell.table.ref, cell.column.name), Use(cell))

    def _cell(self, column: exp.Column, scope: Scope, depth: int) -> Cell | None:
        """The real column behind a name, through steps that hand it on unchanged."""
        if depth == 0:
            return None
        alias = column.table.casefold()
        if not alias and _is_made(column, scope):
            return None
        found: list[Cell | None] = []
        for name, node in scope.references:
            source = scope.sources.get(name)
            if source is None or (alias and name.casefold() != alias):
                continue
            if _is_renamed(column.name, node):
                found.append(None)
            elif isinstance(source, Scope):
                handed = _handed_on(column.name, source)
                if isinstance(handed, exp.Column):
                    cell = self._cell(handed, source, depth - 1)
                    if cell is not None or handed.parent is not None:  # else * has none of it
                        found.append(cell)
                elif handed is not None:
                    found.append(None)
            elif (cell := self._real(source, column.name)) is not None:
                found.append(cell)
        return found[0] if len(found) == 1 else None

    def _real(self, source: exp.Table, name: str) -> Cell | None:
        table = self._names.of(source)
        column = table.column(name) if table else None
        if table is None or column is None:
            return None
        profile = next((p for p in table.profile if p.column == column.name), None)
        return Cell(table, column, profile) if profile else None


def _hands_on(case: exp.Expr, side: exp.Expr) -> bool:
    """Whether a CASE has the compared column in its ELSE: it rewrites some of its values.

    What it does not name may be right as it is: ``CASE city WHEN 'PARIS' THEN 'Paris' ELSE city``.
    """
    if isinstance(case, exp.If) and isinstance(case.parent, exp.Case):
        case = case.parent
    otherwise = case.args.get("default" if isinstance(case, exp.Case) else "false")
    names = {column.name.casefold() for column in side.find_all(exp.Column)}
    return otherwise is not None and any(
        column.name.casefold() in names and column.find_ancestor(exp.Case, exp.If) is case
        for column in otherwise.find_all(exp.Column)
    )


def _is_made(column: exp.Column, scope: Scope) -> bool:
    """Whether ORDER BY or GROUP BY may mean an expression that has the column's name."""
    if column.find_ancestor(exp.Order, exp.Group) is None:
        return False
    if not isinstance(scope.expression, exp.Query):
        return False
    made = [e for e in scope.expression.selects if isinstance(e, exp.Alias)]
    return any(e.alias.casefold() == column.name.casefold() for e in made)


def _is_renamed(name: str, node: exp.Expr | None) -> bool:
    """Whether a FROM entry or a step gives the name to a column by its place: t(a, b)."""
    alias = node.args.get("alias") if node is not None else None
    names = alias.columns if isinstance(alias, exp.TableAlias) else ()
    return any(one.name.casefold() == name.casefold() for one in names)


def _handed_on(name: str, scope: Scope) -> exp.Expr | None:
    """What a step computes under a name; NULL where it has the name and that is not known."""
    query = scope.expression
    if not isinstance(query, exp.Query):
        return None
    if _is_renamed(name, query.parent):
        return exp.null()
    for selected in query.selects:
        if selected.alias_or_name.casefold() == name.casefold():
            return selected.unalias() if isinstance(query, exp.Select) else exp.null()
    plain = any(isinstance(one, exp.Star) and not any(one.args.values()) for one in query.selects)
    return exp.column(name) if plain and isinstance(query, exp.Select) else None
