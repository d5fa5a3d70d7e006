"""What stands in a FROM: tables, queries, functions, their aliases and columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from sqlglot import exp

from dbrag.errors import Refused
from dbrag.execution.columns import NameCheck
from dbrag.execution.functions import TABLE_FUNCTIONS
from dbrag.execution.scope import UNNAMED, Columns, Cte, Frame, Unknown, Visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbrag.execution.dialects import Rules
    from dbrag.execution.schema import Schema
    from dbrag.types import Table


class Entries(NameCheck, ABC):
    """Adds the entries of a FROM to what a query can see."""

    def __init__(self, schema: Schema, rules: Rules, functions: frozenset[str]) -> None:
        super().__init__(schema, rules)
        self._functions = TABLE_FUNCTIONS.get(rules.name, {})
        self._own_functions = functions

    @abstractmethod
    def _query(
        self, node: exp.Expr, outer: Frame | None, scope: Mapping[str, Cte]
    ) -> tuple[Columns, list[Frame]]:
        """The columns that a query gives, and the frames of its parts."""

    @abstractmethod
    def _cte_columns(self, cte: Cte) -> Columns:
        """The columns of a named query."""

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
                self._join(node, frame, scope, pending)
            case exp.Table():
                self._table(node, frame, scope, pending)
            case exp.Subquery() if isinstance(node.this, (exp.Query, exp.Values)):
                # A derived table sees the queries around, not its neighbours in FROM.
                columns, _ = self._query(node, self._beside(frame), scope)
                self._entry(node, frame, columns)
            case exp.Subquery():
                inner = Frame(frame.outer)
                self._from(node.this, inner, scope, pending)
                for join in node.args.get("joins", ()):
                    self._from(join, inner, scope, pending)
                if node.alias:
                    if inner.redacted:
                        raise Refused(f"{node.alias!r} cannot stand for a join", "leave it out")
                    self._entry(node, frame, [n for v in inner.visible for n in v.names])
                else:
                    frame.visible += inner.visible
                self._pivots(node, frame)
                return
            case exp.Values():
                columns, _ = self._query(node, frame.outer, scope)
                self._entry(node, frame, columns)
            case exp.Lateral() | exp.Unnest():
                self._lateral(node, frame, scope, pending)
            case _ if self._rules.own_words:
                self._add(frame, node.alias_or_name, None)
            case _:
                raise Refused(f"{node.key.upper()} may not stand in FROM", "read tables")
        self._pivots(node, frame)
        for join in node.args.get("joins", ()):
            self._from(join, frame, scope, pending)

    def _beside(self, frame: Frame) -> Frame | None:
        """What a derived table sees: in DuckDB its neighbours too, without LATERAL."""
        return frame if self._rules.fields else frame.outer

    def _join(
        self, node: exp.Join, frame: Frame, scope: Mapping[str, Cte], pending: list[exp.Expr]
    ) -> None:
        left = list(frame.visible)
        self._from(node.this, frame, scope, pending)
        for key, part in node.args.items():
            if key not in ("this", "using") and isinstance(part, exp.Expr):
                pending.append(part)
        if frame.redacted and node.args.get("method") == "NATURAL":
            raise Refused("NATURAL JOIN is not possible here", "write JOIN … ON")
        for identifier in node.args.get("using") or ():
            name = identifier.this if isinstance(identifier, exp.Column) else identifier
            if not isinstance(name, exp.Identifier):
                raise Refused("USING takes names of columns", "write USING (column)")
            self._seen.add(id(identifier))
            self._using(name, left, frame.visible)

    def _using(
        self, name: exp.Identifier, left: Sequence[Visible], both: Sequence[Visible]
    ) -> None:
        if self._rules.own_words and not any(v.redacted for v in both):
            return
        right = [v for v in both if not any(v is other for other in left)]
        if not (self._take(name, left) and self._take(name, right)):
            tables = [v.table for v in both if v.table is not None]
            near = self._schema.near_columns(name.name, tables)
            self.note(name, Unknown("column", name.name, tuple(near)))

    def _lateral(
        self,
        node: exp.Lateral | exp.Unnest,
        frame: Frame,
        scope: Mapping[str, Cte],
        pending: list[exp.Expr],
    ) -> None:
        inner = node.this if isinstance(node, exp.Lateral) else node
        if isinstance(inner, exp.Subquery):
            columns, _ = self._query(inner, frame, scope)
            self._entry(node, frame, columns)
            return
        if isinstance(inner, exp.Unnest):
            pending += inner.expressions
            names: tuple[str, ...] = ("*", "unnest")
            offset = inner.args.get("offset") or node.args.get("ordinality")
            if offset is not None:
                self._function_entry(node, frame, names)
                more = offset.name if isinstance(offset, exp.Identifier) else "ordinality"
                frame.visible[-1].show(more)
                return
        elif isinstance(inner, exp.Func):
            names = self._function_columns(inner)
            pending.append(inner)
        else:
            raise Refused(f"{inner.key.upper()} may not stand in FROM", "read tables")
        self._function_entry(node, frame, names)

    def _function_columns(self, node: exp.Expr) -> tuple[str, ...]:
        """Columns of a function that stands for a table.

        Raises:
            Refused: it may not.
        """
        names = [node.name] if isinstance(node, exp.Anonymous) else list(_sql_names(node))
        for name in names:
            if name.lower() in self._functions:
                return self._functions[name.lower()]
            if name.casefold() in self._own_functions:
                # As a value it would call functions: f.pg_ls_dir
                return () if self._rules.fields else ("*",)
        raise Refused(
            f"function {names[0]!r} may not stand for a table",
            "read tables; for lists in a cell: " + ", ".join(self._functions),
        )

    def _function_entry(self, node: exp.Expr, frame: Frame, columns: Sequence[str]) -> None:
        alias = node.args.get("alias")
        label = node.alias or (columns[1] if columns[:1] == ("*",) and len(columns) > 1 else None)
        if label is None and columns[:1] == ("*",):
            label = next(iter(_sql_names(node.this)), None)
        names = [name if name != "*" else label or "" for name in columns]
        named = self._column_aliases(alias)
        # Without names of its own the function's are the engine's to know.
        loose = not columns and not named
        names = [*(named or names), *(["ordinality"] if node.args.get("ordinality") else [])]
        self._add(frame, label, names, alias=alias)
        frame.visible[-1].loose = loose

    def _table(
        self,
        node: exp.Table,
        frame: Frame,
        scope: Mapping[str, Cte],
        pending: list[exp.Expr],
    ) -> None:
        self._seen.add(id(node))
        if isinstance(node.this, exp.Func):
            if isinstance(node.this, exp.JSONTable):
                columns = [c.name for c in node.this.find_all(exp.JSONColumnDef) if c.name]
                self._entry(node, frame, columns)
                pending.append(node.this.this)
                return
            columns_of = self._function_columns(node.this)
            pending += node.this.iter_expressions()
            if self._rules.own_words:
                self._add(frame, node.alias or node.this.name, list(columns_of))
            else:
                self._function_entry(node, frame, columns_of)
            return
        prefixes = [part.name for part in (node.args.get("catalog"), node.args.get("db")) if part]
        cte = scope.get(node.name.casefold()) if not prefixes else None
        if cte is not None:
            if not self._rules.own_words:
                self.settle(node.this, cte.name, exact=self._rules.exact_aliases)
            self._entry(node, frame, self._cte_columns(cte), name=cte.name or node.name)
            return
        if self._rules.name == "mysql" and node.name.upper() == "DUAL" and not prefixes:
            self.edits[node.this.meta["start"]] = "DUAL"
            return
        table = self.known(node.this, node.name, prefixes)
        for part in ("catalog", "db"):
            if table is not None and node.args.get(part) is not None:
                self.drop(node.args[part])
        if node.args.get("sample") is not None:
            pending.append(node.args["sample"])
        columns_read = None if table is None else [column.name for column in table.columns]
        name = node.name if table is None else table.ref.name
        if table is not None and table.kind == "view" and not table.columns:
            columns_read = None  # a view that could not be read: the engine says why
        self._entry(node, frame, columns_read, table, name=name)

    def _entry(
        self,
        node: exp.Expr,
        frame: Frame,
        columns: Sequence[str] | None,
        table: Table | None = None,
        name: str | None = None,
    ) -> None:
        """Add what a FROM entry shows under its alias, which may rename its columns."""
        alias = node.args.get("alias")
        named = self._column_aliases(alias)
        if named and table is not None and table.redacted:
            raise Refused(f"the columns of {name!r} cannot be renamed", "rename them in SELECT")
        self._add(
            frame, node.alias or name, self._renamed(columns, named), table=table, alias=alias
        )

    def _add(
        self,
        frame: Frame,
        label: str | None,
        columns: Sequence[str] | None,
        table: Table | None = None,
        alias: exp.Expr | None = None,
    ) -> None:
        identifier = alias.this if alias is not None else None
        if isinstance(identifier, exp.Identifier) and label:
            label = self._rules.server_name(label, quoted=bool(identifier.args.get("quoted")))
        self.widen(len(columns or ()))
        names = [name for name in columns or () if name != UNNAMED]
        frame.visible.append(
            Visible(
                label or None,
                label.casefold() if label else None,
                None if columns is None else frozenset(c.casefold() for c in names),
                names,
                table,
                loose=len(names) < len(columns or ()),
            )
        )

    def _column_aliases(self, alias: exp.Expr | None) -> list[str]:
        """The names in ``AS t(a, b)``."""
        names = []
        for column in alias.args.get("columns") or () if alias is not None else ():
            place = column.this if isinstance(column, exp.ColumnDef) else column
            quoted = bool(place.args.get("quoted"))
            names.append(self._rules.server_name(column.name, quoted=quoted))
        return names

    @staticmethod
    def _renamed(columns: Sequence[str] | None, named: list[str]) -> Columns:
        """Columns of which the first ones got other names."""
        if not named:
            return None if columns is None else list(columns)
        return [*named, *(columns or ())[len(named) :]]

    def _pivots(self, node: exp.Expr, frame: Frame) -> None:
        """PIVOT and UNPIVOT make columns that only the engine knows."""
        pivots = node.args.get("pivots") or ()
        if not pivots:
            return
        if frame.redacted:
            raise Refused("PIVOT is not possible here", "write GROUP BY")
        for pivot in pivots:
            frame.visible[-1].columns, frame.visible[-1].table = None, None
            if pivot.alias:
                frame.visible[-1].label = pivot.alias
                frame.visible[-1].alias = pivot.alias.casefold()

    def field(self, column: exp.Column, name: exp.Identifier, frame: Frame) -> bool:
        """True when ``(row).name`` reads a known column, and cannot call a function."""
        if column.table or not self._rules.whole_rows:
            return False
        folded = column.name.casefold()
        for seen in frame.chain():
            rows = [v for v in seen.visible if v.alias == folded]
            if rows:
                return name.name.casefold() in (rows[0].columns or ()) and self._take(name, rows)
        return False


def _sql_names(node: exp.Expr) -> Sequence[str]:
    if isinstance(node, exp.Anonymous):
        return [node.name]
    if isinstance(node, (exp.GenerateSeries, exp.ExplodingGenerateSeries)):
        return ["generate_series"]
    return [*type(node).sql_names(), node.key] if isinstance(node, exp.Func) else [node.key]
