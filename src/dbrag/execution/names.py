"""Does every name of a query exist? Found before anything runs.

SQLite itself is no help: a double-quoted name that it does not know silently becomes a
string. So each query is walked with the sources it can see, as SQLite's documentation
of name lookup has it: own FROM, then aliases of the own result, then the queries
around it. What can be put right without guessing is: ``source.table``, a name and its
table quoted as one, text in double quotes, and in other engines letter case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from dbrag.errors import Refused
from dbrag.execution.entries import Entries
from dbrag.execution.parts import text_of
from dbrag.execution.scope import Columns, Cte, Frame, Unknown, output_columns
from dbrag.execution.stars import check_stars

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbrag.execution.dialects import Rules
    from dbrag.execution.schema import Schema

# DuckDB's functions that take a function; elsewhere ``->`` reads a value of JSON.
_TAKE_FUNCTIONS = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "list_", "array_")
    for name in ("transform", "apply", "filter", "reduce")
) | {"columns", "arrayfilter", "invoke"}
_NAMED = (exp.Alias, exp.TableAlias, exp.Aliases, exp.PivotAlias)


class Names(Entries):
    """Walks a query; afterwards holds what it found.

    Attributes:
        used: tables the query reads, in order of appearance.
        unknown: names that do not exist.
        edits: start of a word → what must stand there instead (None: nothing).
        recursive: WITH entries that read themselves.
        arrows: where functions without a name start (``x -> x + 1``) and their last
            variable does.
    """

    def __init__(
        self,
        schema: Schema,
        rules: Rules,
        ctes: Mapping[str, Sequence[str] | None],
        functions: frozenset[str] = frozenset(),
        lambdas: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(schema, rules, functions)
        self.recursive: list[exp.CTE] = []
        self.arrows: dict[int, int] = {}
        self._lambdas = lambdas
        self._given = {
            name.casefold(): Cte(
                None, columns=None if columns is None else list(columns), name=name
            )
            for name, columns in ctes.items()
        }

    def walk(self, root: exp.Expr) -> None:
        """Look at the whole query.

        Raises:
            Refused: it reads an internal table or a table-valued function, or whole rows
                of which a part may not be read.
        """
        self._query(root, None, self._given)
        if not self.unknown:
            self._check_seen(root)
        self._settle_rest(root)

    def _check_seen(self, root: exp.Expr) -> None:
        """No query, table or column may stand where it is not looked up."""
        for node in root.find_all(exp.Table, exp.Select, exp.Column, exp.Values):
            if id(node) in self._seen or (isinstance(node, exp.Column) and _is_no_column(node)):
                continue
            written = text_of(node, self._rules.name)[:40]
            raise Refused(f"{written!r} cannot be looked up in this place", "write a plain SELECT")

    def _settle_rest(self, root: exp.Expr) -> None:
        """Names that are not looked up (aliases, fields), and the redacted among them."""
        hidden = {
            column.casefold() for table in self.used.values() for column in table.redacted
        } - {""}
        for node in root.find_all(exp.Identifier):
            start = node.meta.get("start", -1)
            if node.name.casefold() in hidden and start not in self._sure:
                if not isinstance(node.parent, _NAMED):
                    self.note(node, Unknown("column", node.name, ()))
                continue
            if start in self.edits or isinstance(node.parent, (exp.PropertyEQ, exp.DataType)):
                continue
            quoted = bool(node.args.get("quoted"))
            self.settle(node, self._rules.server_name(node.name, quoted=quoted))

    # -- queries ---------------------------------------------------------------

    def _query(
        self, node: exp.Expr, outer: Frame | None, scope: Mapping[str, Cte]
    ) -> tuple[Columns, list[Frame]]:
        """Result columns of a query, and the frames of its SELECTs."""
        scope = self._with(node, outer, scope)
        self._seen.add(id(node))
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
                return self._rules.values_columns(width), [frame]
        raise Refused(f"{node.key.upper()} is no query", "write one SELECT")

    def _with(
        self, node: exp.Expr, outer: Frame | None, scope: Mapping[str, Cte]
    ) -> Mapping[str, Cte]:
        clause = node.args.get("with_")
        if clause is None:
            return scope
        own = {}
        for cte in clause.expressions:
            alias = cte.args["alias"].this
            name = self._rules.server_name(cte.alias, quoted=bool(alias.args.get("quoted")))
            own[cte.alias.casefold()] = Cte(cte, outer, name=name)
        inner = {**scope, **own}
        for entry in own.values():
            entry.scope = inner
        for entry in own.values():
            self._cte_columns(entry)
        return inner

    def _cte_columns(self, cte: Cte) -> Columns:
        if cte.node is None or cte.state == "done":
            return cte.columns
        if cte.state == "open":
            if cte.node not in self.recursive:
                self.recursive.append(cte.node)
            return cte.columns
        cte.state = "open"
        named = self._column_aliases(cte.node.args["alias"])
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
        cte.columns = self._renamed(columns, named)
        cte.state = "done"
        return cte.columns

    def _set_operation(
        self, node: exp.SetOperation, outer: Frame | None, scope: Mapping[str, Cte]
    ) -> tuple[Columns, list[Frame]]:
        # Long chains lean to the left: walked in a loop, not by recursion.
        parts: list[exp.Expr] = []
        place: exp.Expr = node
        self._seen.add(id(node))
        by_name = False
        while isinstance(place, exp.SetOperation):
            by_name = by_name or bool(place.args.get("by_name"))
            parts.append(place.expression)
            place = place.this
            if place.args.get("with_") is not None:
                scope = self._with(place, outer, scope)
        results = [self._query(part, outer, scope) for part in [place, *reversed(parts)]]
        frames = [frame for _, inner in results for frame in inner]
        names = [name for columns, _ in results for name in columns or ()]
        self._expressions(node, ("order", "limit", "offset"), frames, names, scope)
        return (names if by_name else results[0][0]), frames

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
        for inner in frames:
            for aliases in inner.aliases.values():
                for alias in aliases:
                    frame.name(alias)
        for name in names or ():
            frame.name(name)
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
        for item in node.expressions:
            if isinstance(item, exp.Alias) and isinstance(item.args["alias"], exp.Identifier):
                alias = item.args["alias"]
                quoted = bool(alias.args.get("quoted"))
                frame.name(self._rules.server_name(alias.name, quoted=quoted))
        for expression in pending:
            self._expression(expression, frame, scope)
        for name, part in node.args.items():
            if name in ("with_", "from_", "joins", "laterals") or not part:
                continue
            for item in part if isinstance(part, list) else [part]:
                if isinstance(item, exp.Expr):
                    self._expression(item, frame, scope)
        if frame.redacted:
            check_stars(node, frame, self.edits, self._rules)
        columns = output_columns(node, frame, self._rules)
        self.widen(len(columns or ()))
        return columns, [frame]

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
                if not isinstance(place.this, exp.Identifier):
                    stack.extend(place.this.iter_expressions())
                continue
            if isinstance(place, exp.Dot):
                if self._rules.own_words:
                    self.note(place, Unknown("column", text_of(place, self._rules.name), ()))
                    continue
                if not self._rules.fields:
                    self._composite(place, frame)
                stack.extend(e for e in place.iter_expressions() if _is_looked_up(e))
                continue
            if isinstance(place, exp.In) and isinstance(place.args.get("field"), exp.Column):
                stack += self._in_table(place, place.args["field"], scope)
                continue
            if isinstance(place, (exp.Comprehension, exp.Lambda)):
                self._variables(place, frame, scope)
                continue
            if isinstance(place, exp.Collate):
                stack.append(place.this)
                continue
            if isinstance(place, (exp.PropertyEQ, exp.Kwarg)):
                stack.append(place.expression)
                continue
            stack.extend(reversed(list(place.iter_expressions())))

    def _variables(
        self, node: exp.Comprehension | exp.Lambda, frame: Frame, scope: Mapping[str, Cte]
    ) -> None:
        """``x -> x + 1``, or what sqlglot takes for that: ``f(data -> 'key')``."""
        places = node.expressions if isinstance(node, exp.Lambda) else [node.args["expression"]]
        names = [name for place in places for name in place.find_all(exp.Identifier)]
        self._seen.update(id(name.parent) for name in names if isinstance(name.parent, exp.Column))
        if isinstance(node, exp.Lambda) and not self._is_function(node, names):
            for name in (*names, *_bare_names(node.this)):
                self.column(exp.Column(this=name.copy()), frame)
            self._expression(node.this, frame, scope)
            return
        # Its own variables hide columns: each is a column of one more frame.
        inner = Frame(frame)
        self._add(inner, None, [name.name for name in names])
        for part in node.iter_expressions():
            self._expression(part, inner, scope)

    def _is_function(self, node: exp.Lambda, names: Sequence[exp.Identifier]) -> bool:
        if not self._rules.fields or not names:
            return False
        start = names[0].meta.get("start", -1)
        parent = node.parent
        if start in self._lambdas:
            return True
        taker = parent.name if isinstance(parent, exp.Anonymous) else getattr(parent, "key", "")
        if taker.lower() not in _TAKE_FUNCTIONS:
            return False
        self.arrows[start] = names[-1].meta.get("start", -1)
        return True

    def _in_table(
        self, node: exp.In, target: exp.Column, scope: Mapping[str, Cte]
    ) -> list[exp.Expr]:
        """``x IN t``: in SQLite the rows of a table of one column, elsewhere a list."""
        if not self._rules.own_words:
            return [target, node.this]
        self._seen.add(id(target))
        if not (target.table or target.name.casefold() in scope):
            table = self.known(target.this, target.name)
            if table is not None and table.redacted:
                raise Refused(f"{target.name!r} cannot be read as a whole", "name its columns")
        return [node.this]

    def _composite(self, node: exp.Dot, frame: Frame) -> None:
        """``(value).field``: PostgreSQL also calls functions so, ``(path).pg_ls_dir``."""
        inner, name = node.this.unnest(), node.expression
        if isinstance(name, exp.Identifier):
            if isinstance(inner, exp.Column) and self.field(inner, name, frame):
                return
            raise Refused(
                f"'(…).{name.name}' may call a function",
                f"write to_jsonb(…) ->> '{name.name}' for a field of a value",
            )
        if all(isinstance(part, exp.Identifier) for part in node.this.flatten()):
            return  # schema.function(): ``calls`` has looked at it
        self.note(node, Unknown("column", text_of(name, self._rules.name), ()))


def _is_looked_up(node: exp.Expr) -> bool:
    return not isinstance(node, exp.Identifier)


def _is_no_column(node: exp.Column) -> bool:
    """What sqlglot makes a column of: a collation, a new column of PIVOT, a name of a field."""
    parent = node.parent
    if isinstance(parent, (exp.PropertyEQ, exp.Kwarg)):
        return node.arg_key == "this"
    if isinstance(parent, exp.Collate):
        return node.arg_key == "expression"
    return node.find_ancestor(exp.Pivot, exp.Query) is not None and isinstance(
        node.find_ancestor(exp.Pivot, exp.Query), exp.Pivot
    )


def _bare_names(node: exp.Expr) -> list[exp.Identifier]:
    """Names that sqlglot has taken out of their columns, as variables of a function."""
    found = node.find_all(exp.Identifier)
    inside = (exp.Column, exp.Alias, exp.TableAlias, exp.Table)
    return [name for name in found if not isinstance(name.parent, inside)]
