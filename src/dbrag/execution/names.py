"""Does every name of a query exist? Found before anything runs.

SQLite itself is no help: a double-quoted name that it does not know silently becomes a
string. So each query is walked with the sources it can see, as SQLite's documentation
of name lookup has it: own FROM, then aliases of the own result, then the queries
around it. What can be put right without guessing is: ``source.table``, a name and its
table quoted as one, text in double quotes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from dbrag.errors import Refused
from dbrag.execution.columns import NameCheck
from dbrag.execution.functions import TABLE_FUNCTIONS
from dbrag.execution.schema import Schema
from dbrag.execution.scope import Columns, Cte, Frame, Unknown, Visible, output_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbrag.types import Table


class Names(NameCheck):
    """Walks a query; afterwards holds what it found.

    Attributes:
        used: tables the query reads, in order of appearance.
        unknown: names that do not exist.
        edits: start of a word → what must stand there instead (None: nothing).
        recursive: WITH entries that read themselves.
    """

    def __init__(
        self, schema: Schema, dialect: str, ctes: Mapping[str, Sequence[str] | None]
    ) -> None:
        super().__init__(schema)
        self.recursive: list[exp.CTE] = []
        self._functions = TABLE_FUNCTIONS.get(dialect, {})
        self._given = {
            name.casefold(): Cte(None, columns=None if columns is None else list(columns))
            for name, columns in ctes.items()
        }

    def walk(self, root: exp.Expr) -> None:
        """Look at the whole query.

        Raises:
            Refused: it reads an internal table or a table-valued function.
        """
        self._query(root, None, self._given)

    # -- queries ---------------------------------------------------------------

    def _query(
        self, node: exp.Expr, outer: Frame | None, scope: Mapping[str, Cte]
    ) -> tuple[Columns, list[Frame]]:
        """Result columns of a query, and the frames of its SELECTs."""
        scope = self._with(node, outer, scope)
        match node:
            case exp.Select():
                return self._select(node, outer, scope)
            case exp.SetOperation():
                return self._set_operation(node, outer, scope)
            case exp.Subquery() if isinstance(node.this, (exp.Query, exp.Values)):
                columns, frames = self._query(node.this, outer, scope)
                self._expressions(node, ("order", "limit", "offset"), frames, columns, scope)
                return columns, frames
            case exp.Values():
                frame = Frame(outer)
                for row in node.expressions:
                    self._expression(row, frame, scope)
                first = node.expressions[0] if node.expressions else None
                width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
                return [f"column{i + 1}" for i in range(width)], [frame]
        raise Refused(f"{node.key.upper()} is no query", "write one SELECT")

    def _with(
        self, node: exp.Expr, outer: Frame | None, scope: Mapping[str, Cte]
    ) -> Mapping[str, Cte]:
        clause = node.args.get("with_")
        if clause is None:
            return scope
        own = {cte.alias.casefold(): Cte(cte, outer) for cte in clause.expressions}
        inner = {**scope, **own}
        for cte in own.values():
            cte.scope = inner
        for cte in own.values():
            self._cte_columns(cte)
        return inner

    def _cte_columns(self, cte: Cte) -> Columns:
        if cte.node is None or cte.state == "done":
            return cte.columns
        if cte.state == "open":
            if cte.node not in self.recursive:
                self.recursive.append(cte.node)
            return cte.columns
        cte.state = "open"
        named = [column.name for column in cte.node.args["alias"].columns]
        body = cte.node.this
        if named:
            cte.columns = named
        elif isinstance(body, exp.SetOperation):
            # A recursive entry has the columns of its first part.
            first: exp.Expr = body
            scope = self._with(body, cte.outer, cte.scope)
            while isinstance(first, (exp.SetOperation, exp.Subquery)):
                first = first.this
            cte.columns = self._query(first, cte.outer, scope)[0]
        columns, _ = self._query(body, cte.outer, cte.scope)
        cte.columns = named or columns
        cte.state = "done"
        return cte.columns

    def _set_operation(
        self, node: exp.SetOperation, outer: Frame | None, scope: Mapping[str, Cte]
    ) -> tuple[Columns, list[Frame]]:
        # Long chains lean to the left: walked in a loop, not by recursion.
        parts: list[exp.Expr] = []
        place: exp.Expr = node
        while isinstance(place, exp.SetOperation):
            parts.append(place.expression)
            place = place.this
            if place.args.get("with_") is not None:
                scope = self._with(place, outer, scope)
        results = [self._query(part, outer, scope) for part in [place, *reversed(parts)]]
        frames = [frame for _, inner in results for frame in inner]
        names = [name for columns, _ in results for name in columns or ()]
        self._expressions(node, ("order", "limit", "offset"), frames, names, scope)
        return results[0][0], frames

    def _expressions(
        self,
        node: exp.Expr,
        parts: Sequence[str],
        frames: Sequence[Frame],
        names: Sequence[str] | None,
        scope: Mapping[str, Cte],
    ) -> None:
        """ORDER BY and LIMIT of a compound: result columns, or what any part can see."""
        frame = Frame(frames[0].outer if frames else None)
        frame.visible = [v for inner in frames for v in inner.visible]
        frame.aliases = {name.casefold() for name in names or ()}
        frame.aliases |= {alias for inner in frames for alias in inner.aliases}
        for part in parts:
            if node.args.get(part) is not None:
                self._expression(node.args[part], frame, scope)

    def _select(
        self, node: exp.Select, outer: Frame | None, scope: Mapping[str, Cte]
    ) -> tuple[Columns, list[Frame]]:
        frame = Frame(outer)
        pending: list[exp.Expr] = []
        source = node.args.get("from_")
        if source is not None:
            self._from(source.this, frame, scope, pending)
        for join in (*node.args.get("joins", ()), *node.args.get("laterals", ())):
            self._from(join, frame, scope, pending)
        frame.aliases = {
            item.alias.casefold() for item in node.expressions if isinstance(item, exp.Alias)
        }
        for expression in pending:
            self._expression(expression, frame, scope)
        for name, part in node.args.items():
            if name in ("with_", "from_", "joins", "laterals") or not part:
                continue
            for item in part if isinstance(part, list) else [part]:
                if isinstance(item, exp.Expr):
                    self._expression(item, frame, scope)
        return output_columns(node, frame), [frame]

    # -- FROM ------------------------------------------------------------------

    def _from(
        self,
        node: exp.Expr,
        frame: Frame,
        scope: Mapping[str, Cte],
        pending: list[exp.Expr],
    ) -> None:
        """Add an entry of FROM to the frame; conditions are kept for later in ``pending``."""
        match node:
            case exp.Join():
                self._from(node.this, frame, scope, pending)
                pending += [e for e in (node.args.get("on"),) if e is not None]
            case exp.Table():
                self._table(node, frame, scope, pending)
            case exp.Subquery() if isinstance(node.this, (exp.Query, exp.Values)):
                # A derived table sees the queries around, not its neighbours in FROM.
                columns, _ = self._query(node, frame.outer, scope)
                self._add(frame, node.alias, columns)
            case exp.Subquery():
                inner = Frame(frame.outer)
                self._from(node.this, inner, scope, pending)
                if node.alias:
                    self._add(frame, node.alias, [n for v in inner.visible for n in v.names])
                else:
                    frame.visible += inner.visible
            case exp.Values():
                columns, _ = self._query(node, frame.outer, scope)
                self._add(frame, node.alias, columns)
            case _:
                self._add(frame, node.alias_or_name, None)
        for join in node.args.get("joins", ()):
            self._from(join, frame, scope, pending)

    def _table(
        self,
        node: exp.Table,
        frame: Frame,
        scope: Mapping[str, Cte],
        pending: list[exp.Expr],
    ) -> None:
        if isinstance(node.this, exp.Func):
            name = node.this.name if isinstance(node.this, exp.Anonymous) else node.this.key
            columns = self._functions.get(name.lower())
            if columns is None:
                raise Refused(
                    f"function {name!r} may not stand for a table",
                    "read tables; for lists in a cell: " + ", ".join(self._functions),
                )
            pending += node.this.expressions
            self._add(frame, node.alias or name, list(columns))
            return
        prefixes = [part.name for part in (node.args.get("catalog"), node.args.get("db")) if part]
        cte = scope.get(node.name.casefold()) if not prefixes else None
        if cte is not None:
            self._add(frame, node.alias or node.name, self._cte_columns(cte))
            return
        table = self.known(node.this, node.name, prefixes)
        for part in ("catalog", "db"):
            if table is not None and node.args.get(part) is not None:
                self.drop(node.args[part])
        columns_of = None if table is None else [column.name for column in table.columns]
        name = node.name if table is None else table.ref.name
        if table is not None and table.kind == "view" and not table.columns:
            columns_of = None  # a view that could not be read: the engine says why
        self._add(frame, node.alias or name, columns_of, table)

    @staticmethod
    def _add(
        frame: Frame, alias: str | None, columns: Sequence[str] | None, table: Table | None = None
    ) -> None:
        folded = None if columns is None else frozenset(c.casefold() for c in columns)
        name = alias.casefold() if alias else None
        frame.visible.append(Visible(alias or None, name, folded, list(columns or ()), table))

    # -- expressions -----------------------------------------------------------

    def _expression(self, node: exp.Expr, frame: Frame, scope: Mapping[str, Cte]) -> None:
        """Every column below ``node``, queries inside it with their own frames."""
        stack = [node]
        while stack:
            place = stack.pop()
            if isinstance(place, (exp.Query, exp.Values)):
                self._query(place, frame, scope)
                continue
            if isinstance(place, exp.Column):
                self.column(place, frame)
                continue
            if isinstance(place, exp.Dot):
                self.note(place, Unknown("column", place.sql(), ()))
                continue
            if isinstance(place, exp.In) and isinstance(place.args.get("field"), exp.Column):
                # x IN t: the rows of a table of one column
                target = place.args["field"]
                if not (target.table or target.name.casefold() in scope):
                    self.known(target.this, target.name)
                stack.append(place.this)
                continue
            stack.extend(reversed(list(place.iter_expressions())))
