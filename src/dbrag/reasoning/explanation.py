"""What a program does, in plain words, from its tree alone: no model is asked.

Every filter, join, group and bound of every SELECT is told once, under the step or query
that it stands in; what cannot be put into words stays SQL. The same statement always
gives the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.reasoning.blocks import Block, Entry, Place, Statement, is_query, is_star, take_apart
from dbrag.reasoning.words import Words, conjuncts, quoted
from dbrag.types import Program, Table, TableRef

_SET_WORDS: Mapping[type[exp.Expr], str] = {
    exp.Union: "the rows of query {} are added",
    exp.Except: "rows that query {} has are taken out",
    exp.Intersect: "only rows that query {} has, too, are kept",
}
_KEPT = {
    "LEFT": "rows without one are kept",
    "RIGHT": "all rows of {} are kept",
    "FULL": "rows without a partner are kept on both sides",
}


_JOINS = ("", "INNER", "OUTER", "CROSS", "STRAIGHT")
_TOLD = frozenset(
    {"with_", "kind", "expressions", "distinct", "from_", "joins", "laterals", "where", "group"}
    | {"having", "qualify", "order", "limit", "offset", "sample", "pivots", "operation_modifiers"}
)
"""Parts of a SELECT that are put into words; any other is shown as SQL."""


@dataclass(frozen=True, slots=True)
class Account:
    """A program in words. All texts but the table and column names are sentences.

    Attributes:
        tables: in order of appearance, with their number of rows at indexing, None where
            it was not counted.
        columns: (table, column) of every column that is read, once.
        filters: conditions on rows and groups.
        joins: how tables come together.
        groups: what the rows are grouped by.
        results: what each result column holds.
        sets: set operations, and where equal rows are shown once.
        order: what the rows are sorted by.
        limit: how many rows are shown at most; None without a limit at the outside.
    """

    tables: tuple[tuple[TableRef, int | None], ...] = ()
    columns: tuple[tuple[TableRef, str], ...] = ()
    filters: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    limit: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The ``evidence`` of the JSON contract."""
        return {
            "tables": [{"table": ref.to_dict(), "rows": rows} for ref, rows in self.tables],
            "columns": [{"table": ref.to_dict(), "column": name} for ref, name in self.columns],
            "filters": list(self.filters),
            "joins": list(self.joins),
            "groups": list(self.groups),
            "results": list(self.results),
            "sets": list(self.sets),
            "order": list(self.order),
            "limit": self.limit,
        }


def evidence_of(program: Program | None, by_ref: Mapping[TableRef, Table]) -> dict[str, Any] | None:
    """The ``evidence`` of the JSON contract for a program, None where there is none."""
    if program is None:
        return None
    return account(program, [by_ref[ref] for ref in program.tables if ref in by_ref]).to_dict()


def account(program: Program, tables: Sequence[Table]) -> Account:
    """The account of an admitted program.

    Args:
        tables: those that it reads; of others nothing is known.
    """
    rows = {table.ref: table.row_count for table in tables}
    used = tuple((ref, rows.get(ref)) for ref in dict.fromkeys(program.tables))
    try:
        tree = sqlglot.parse_one(program.sql, dialect=program.dialect)
        statement = take_apart(tree, tables)
        return _Teller(statement, program.dialect).account(used)
    except (SqlglotError, RecursionError):
        return Account(used, filters=("SQL: the statement is too deep to put into words",))


class _Teller:
    def __init__(self, statement: Statement, dialect: str) -> None:
        self._statement = statement
        self._dialect = dialect
        self._columns: dict[tuple[TableRef, str], None] = {}
        self._told: dict[str, list[str]] = {
            name: [] for name in ("filters", "joins", "groups", "results", "sets", "order")
        }
        self._limit: str | None = None

    def account(self, used: tuple[tuple[TableRef, int | None], ...]) -> Account:
        for block in self._statement.blocks:
            self._block(block)
        for label, operation, number in self._statement.sets:
            self._set(label, operation, number)
        for label, node, of in self._statement.tails:
            self._tail(label, node, of)
        if not self._statement.blocks:
            self._tell(
                "results", "", self._words(Block(exp.Select(), "")).sql(self._statement.tree)
            )
        told = {name: tuple(texts) for name, texts in self._told.items()}
        return Account(used, tuple(self._columns), limit=self._limit, **told)

    def _tell(self, name: str, label: str, text: str) -> None:
        whole = f"in {label}: {text}" if label else text
        if name == "results" or whole not in self._told[name]:
            self._told[name].append(whole)

    def _words(self, block: Block) -> Words:
        return Words(block, self._dialect, self._statement.labels)

    def _block(self, block: Block) -> None:
        words, select = self._words(block), block.select
        self._read_columns(block)
        pairs: dict[int, list[str]] = {}
        rest = []
        for part in conjuncts(select.args["where"].this) if select.args.get("where") else ():
            joined = _joined(part, block)
            if joined is None:
                rest.append(part)
            else:
                pairs.setdefault(block.entries.index(joined), []).append(_equation(part, words))
        for number, entry in enumerate(block.entries[1:], 1):
            text = self._join(entry, block, words, pairs.get(number, []))
            self._tell("joins", block.label, text)
        for part in rest:
            self._tell("filters", block.label, words.condition(part))
        for part in _having(select):
            of = "for the whole group: " if _is_grouped(part, block) else ""
            self._tell("filters", block.label, of + words.condition(part))
        for part in block.walk():
            if isinstance(part, exp.TableSample | exp.Pivot | exp.Qualify):
                self._tell("filters", block.label, f"SQL: {words.sql(part).strip()}")
        for text in self._groups(block, words):
            self._tell("groups", block.label, text)
        if select.args.get("distinct"):
            on = select.args["distinct"].args.get("on")
            of = f" of equal {', '.join(map(words.value, on.expressions))}" if on else ""
            text = f"one row{of}" if on else "equal rows are shown once"
            self._tell("sets", block.label, text)
        for item in select.expressions:
            self._tell("results", block.label, self._result(item, block, words))
        for key in sorted(select.args.keys() - _TOLD):
            for part in _parts(select.args[key]):
                self._tell("sets", block.label, f"SQL: {words.sql(part).strip()}")

    def _read_columns(self, block: Block) -> None:
        for node in block.walk():
            if is_star(node) and isinstance(node.parent, exp.Select | exp.Column):
                self._star(node, block)
            elif isinstance(node, exp.Column) and not is_star(node):
                place = block.place(node)
                if place is not None:
                    self._read(place)
            elif isinstance(node, exp.Join):
                for name in node.args.get("using") or ():
                    for entry in block.entries:
                        if entry.table is not None and entry.has(name.name):
                            column = entry.table.column(name.name)
                            self._read(Place(entry, column.name if column else name.name))

    def _star(self, node: exp.Expr, block: Block) -> None:
        wanted = node.table.casefold() if isinstance(node, exp.Column) else ""
        if isinstance(node.parent, exp.Column):
            return  # the star within t.*
        for entry in block.entries:
            if entry.table is not None and wanted in ("", entry.alias.casefold()):
                for column in entry.table.columns:
                    self._read(Place(entry, column.name))

    def _read(self, place: Place) -> None:
        if place.entry.table is not None:
            self._columns[place.entry.table.ref, place.name] = None

    def _result(self, item: exp.Expr, block: Block, words: Words) -> str:
        if is_star(item):
            whole = item.table if isinstance(item, exp.Column) else ""
            named = [e for e in block.entries if e.alias.casefold() == whole.casefold()]
            of = (
                words.entry(named[0])
                if whole and named
                else ", ".join(words.entry(entry) for entry in block.entries)
            )
            star = item.this if isinstance(item, exp.Column) else item
            more = any(star.args.get(key) for key in ("except_", "replace", "rename"))
            return f"SQL: {words.sql(item)}" if more else f"all columns of {of}"
        text = words.value(item)
        return f"{quoted(item.alias)}: {text}" if isinstance(item, exp.Alias) else text

    # ---- joins ------------------------------------------------------------------

    def _join(self, entry: Entry, block: Block, words: Words, pairs: list[str]) -> str:
        join, name = entry.join, words.entry(entry)
        if join is None:
            return f"{name}, for each row"
        if join.kind.upper() not in _JOINS or join.method.upper() not in ("", "NATURAL"):
            return f"SQL: {words.sql(join).strip()}"
        conditions = [
            _equation(part, words) if _joined(part, block) else words.condition(part)
            for part in conjuncts(join.args.get("on"))
            if not (isinstance(part, exp.Boolean) and part.this)
        ]
        conditions += [f"equal {quoted(column.name)}" for column in join.args.get("using") or ()]
        if join.method.upper() == "NATURAL":
            conditions.append("the columns of the same name")
        conditions += pairs
        kept = _KEPT.get(join.side.upper(), "").format(name)
        how = f"{name} joined by {' and '.join(conditions)}"
        text = how if conditions else f"every row with every row of {name}"
        return f"{text}; {kept}" if kept else text

    # ---- groups, order, limit ---------------------------------------------------

    def _groups(self, block: Block, words: Words) -> list[str]:
        group = block.select.args.get("group")
        if group is None:
            return []
        texts = [self._key(item, block, words) for item in group.expressions]
        if any(group.args.get(key) for key in ("grouping_sets", "cube", "rollup", "totals")):
            return [f"SQL: {words.sql(group)}"]
        if group.args.get("all"):
            texts.append("all result columns that are not computed from several rows")
        return texts

    def _key(self, item: exp.Expr, block: Block | None, words: Words) -> str:
        """A key of GROUP BY or ORDER BY: a position or a result column means what is there."""
        if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets):
            return f"SQL: {words.sql(item)}"
        if isinstance(item, exp.Literal) and not item.is_string:
            outputs = block.select.expressions if block is not None else []
            number = int(item.name) if item.name.isdigit() else 0
            if 1 <= number <= len(outputs) and not any(map(is_star, outputs[:number])):
                return words.value(outputs[number - 1])
            return f"result column {item.name}"
        if isinstance(item, exp.Column) and not is_star(item):
            ordering = item.find_ancestor(exp.Order) is not None
            return words.column(item, outputs_first=ordering)
        return words.value(item)

    def _tail(self, label: str, node: exp.Expr, block: Block | None) -> None:
        words = self._words(block or Block(exp.Select(), label))
        order = node.args.get("order")
        for item in order.expressions if order is not None else ():
            down = isinstance(item, exp.Ordered) and item.args.get("desc")
            key = item.this if isinstance(item, exp.Ordered) else item
            direction = "descending" if down else "ascending"
            self._tell("order", label, f"{self._key(key, block, words)}, {direction}")
        text = _limit(node, words, ordered=order is not None)
        if text and label:
            self._tell("sets", label, text)
        elif text:
            self._limit = text

    def _set(self, label: str, operation: exp.SetOperation, number: int) -> None:
        text = _SET_WORDS.get(type(operation), f"{operation.key.upper()} with query {{}}")
        once = ", equal rows once" if operation.args.get("distinct") else ""
        self._tell("sets", label, text.format(number) + once)


def _parts(found: Any) -> list[exp.Expr]:
    many = found if isinstance(found, list) else [found]
    return [part for part in many if isinstance(part, exp.Expr)]


def _having(select: exp.Select) -> list[exp.Expr]:
    having = select.args.get("having")
    return conjuncts(having.this) if having is not None else []


def _is_grouped(part: exp.Expr, block: Block) -> bool:
    """MySQL and SQLite take HAVING for a second WHERE where nothing is grouped."""
    found = any(isinstance(node, exp.AggFunc) for node in block.walk(part))
    return found or block.select.args.get("group") is not None


def _joined(part: exp.Expr, block: Block) -> Entry | None:
    """The later of two entries of a block whose columns are equated; None if it is no join."""
    if not isinstance(part, exp.EQ):
        return None
    sides = (part.this, part.args["expression"])
    if not all(isinstance(side, exp.Column) and not is_query(side) for side in sides):
        return None
    places = [block.place(side) for side in sides]
    entries = [place.entry for place in places if place is not None]
    if len(entries) < 2 or entries[0] is entries[1]:
        return None
    own = [number for number, entry in enumerate(block.entries) if any(entry is e for e in entries)]
    return block.entries[own[-1]] if len(own) == 2 else None


def _equation(part: exp.Expr, words: Words) -> str:
    return f"{words.value(part.this)} = {words.value(part.args['expression'])}"


def _limit(node: exp.Expr, words: Words, *, ordered: bool) -> str | None:
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return None
    counted = limit.args.get("count") or limit.args.get("expression") if limit else None
    plain = limit is None or isinstance(counted, exp.Literal)
    options = limit.args.get("limit_options") if limit else None
    special = options is not None and (options.args.get("percent") or options.args.get("with_ties"))
    if (
        not plain
        or special
        or (offset is not None and not isinstance(offset.args.get("expression"), exp.Literal))
    ):
        texts = [words.sql(part).strip() for part in (limit, offset) if part is not None]
        return f"SQL: {' '.join(texts)}"
    number = f"{int(counted.name):,}" if counted is not None and counted.name.isdigit() else ""
    rows = "row" if number == "1" else f"{number} rows"
    after = words.value(offset.args["expression"]) if offset is not None else ""
    skipped = f" after the first {after}" if after and after != "0" else ""
    if not number:
        return f"all rows{skipped}"
    if ordered:
        return f"the {'next' if skipped else 'first'} {rows}{skipped}"
    return f"any {'one row' if number == '1' else rows}{skipped} (no order is given)"
