"""The SELECTs of a statement, what each reads, and where a column comes from.

A block is one SELECT. The outermost has no label; the others are told apart by the step
or query that they stand in. Nothing here asks a database or changes the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from dbrag.types import Table


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a FROM: a table, or a query or function under a name.

    Attributes:
        alias: what the block calls it; empty where it has no name.
        table: None for anything but a table.
        join: how it came in; None for the first.
        columns: result columns of a query, folded; None where they are not known.
    """

    alias: str
    table: Table | None
    join: exp.Join | None = None
    columns: frozenset[str] | None = None

    def has(self, name: str) -> bool:
        """Whether it surely has a column of that name, letter case ignored."""
        if self.table is not None:
            return self.table.column(name) is not None
        return self.columns is not None and name.casefold() in self.columns


@dataclass(frozen=True, slots=True)
class Place:
    """Where a column comes from; ``name`` as the table has it."""

    entry: Entry
    name: str


@dataclass(slots=True)
class Block:
    """One SELECT with its FROM.

    ``label`` says where it stands: empty, ``step old``, ``query 2``, ``step old, subquery``.
    """

    select: exp.Select
    label: str
    outer: Block | None = None
    entries: list[Entry] = field(default_factory=list)

    def place(self, column: exp.Column) -> Place | None:
        """The entry that a column belongs to, here or in a query around; None if unknown."""
        qualifier = column.table.casefold()
        block: Block | None = self
        while block is not None:
            for entry in block.entries:
                if entry.alias.casefold() == qualifier if qualifier else entry.has(column.name):
                    return _placed(entry, column.name)
            loose = [e for e in block.entries if e.table is None and e.columns is None]
            if not qualifier and len(loose) == 1:
                return Place(loose[0], column.name)
            block = block.outer
        return None

    def output_named(self, column: exp.Column) -> exp.Expr | None:
        """What stands behind the name of a result column, None if there is no such name."""
        if column.table:
            return None
        for item in self.select.expressions:
            if isinstance(item, exp.Alias) and item.alias.casefold() == column.name.casefold():
                found: exp.Expr = item.this
                return found
        return None

    def walk(self, node: exp.Expr | None = None) -> Iterator[exp.Expr]:
        """Every node of this block or of a part of it; of a query inside only its root."""
        stack = [self.select if node is None else node]
        while stack:
            place = stack.pop()
            yield place
            if place is not self.select and is_query(place):
                continue
            below = [e for e in place.iter_expressions() if not isinstance(e, exp.With)]
            stack.extend(reversed(below))


@dataclass(frozen=True)
class Statement:
    """A statement taken apart.

    Attributes:
        blocks: in reading order: steps first, subqueries before the query around them.
        sets: set operations with the label of the whole and the number of the query that
            comes in.
        tails: what may carry ORDER BY and LIMIT: (label, node, its block if it is one).
        labels: ``id`` of each query inside → its label.
    """

    tree: exp.Expr
    blocks: tuple[Block, ...]
    sets: tuple[tuple[str, exp.SetOperation, int], ...]
    tails: tuple[tuple[str, exp.Expr, Block | None], ...]
    labels: dict[int, str]

    @property
    def flat(self) -> Block | None:
        """The outermost SELECT where it reads tables alone: no step, no query in its FROM."""
        block = self.blocks[-1] if self.blocks else None
        if block is None or block.select is not self.tree or block.select.args.get("with_"):
            return None
        plain = block.entries and all(entry.table is not None for entry in block.entries)
        return block if plain else None


def take_apart(tree: exp.Expr, tables: Sequence[Table]) -> Statement:
    """The blocks of a parsed statement over these tables."""
    reader = _Reader(tables)
    reader.query(tree, "", None)
    return Statement(
        tree, tuple(reader.blocks), tuple(reader.sets), tuple(reader.tails), reader.labels
    )


def is_query(node: exp.Expr) -> bool:
    """Whether rows come out of it; parentheses around tables and joins are none."""
    return isinstance(bare(node), exp.Select | exp.SetOperation)


def is_star(item: exp.Expr) -> bool:
    """``*`` or ``t.*``."""
    return isinstance(item, exp.Star) or (
        isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
    )


def bare(node: exp.Expr) -> exp.Expr:
    """A query without the parentheses around it."""
    while isinstance(node, exp.Subquery | exp.Paren) and isinstance(node.this, exp.Query):
        node = node.this
    return node


class _Reader:
    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = tables
        self._subqueries: Counter[str] = Counter()
        self.blocks: list[Block] = []
        self.sets: list[tuple[str, exp.SetOperation, int]] = []
        self.tails: list[tuple[str, exp.Expr, Block | None]] = []
        self.labels: dict[int, str] = {}

    def query(self, node: exp.Expr, label: str, outer: Block | None) -> None:
        self._steps(node, label, outer)
        while node is not bare(node):
            self._tail(node, label, outer)
            node = node.this
            self._steps(node, label, outer)
        self.labels[id(node)] = label
        if isinstance(node, exp.SetOperation):
            operations = _operations(node)
            for number, part in enumerate([operations[0].this, *_seconds(operations)], 1):
                self.query(part, _join(label, f"query {number}"), outer)
            self.sets += [(label, operation, n) for n, operation in enumerate(operations, 2)]
            self._tail(node, label, outer)
        elif isinstance(node, exp.Select):
            self._select(node, label, outer)

    def _steps(self, node: exp.Expr, label: str, outer: Block | None) -> None:
        with_ = node.args.get("with_")
        for cte in with_.expressions if isinstance(with_, exp.With) else ():
            self.query(cte.this, _join(label, f"step {cte.alias}"), outer)

    def _tail(self, node: exp.Expr, label: str, outer: Block | None) -> None:
        parts = [node.args.get(key) for key in ("order", "limit", "offset")]
        for part in parts:
            if part is not None:
                self._inside(part, Block(exp.Select(), label, outer))
        if any(parts):
            self.tails.append((label, node, None))

    def _select(self, node: exp.Select, label: str, outer: Block | None) -> None:
        block = Block(node, label, outer)
        source = node.args.get("from_")
        if source is not None:
            self._entries(source.this, None, block)
        for join in node.args.get("joins") or ():
            self._entries(join.this, join, block)
        for lateral in node.args.get("laterals") or ():
            block.entries.append(Entry(lateral.alias_or_name, None))
        self._inside(node, block)
        self.blocks.append(block)
        self.tails.append((label, node, block))

    def _entries(self, node: exp.Expr, join: exp.Join | None, block: Block) -> None:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            block.entries.append(self._table(node, join))
        elif is_query(node):
            block.entries.append(Entry(node.alias_or_name, None, join, _outputs(node)))
        elif isinstance(node, exp.Subquery | exp.Paren) and isinstance(node.this, exp.Expr):
            self._entries(node.this, join, block)
        else:
            block.entries.append(Entry(node.alias_or_name, None, join))
        for inner in node.args.get("joins") or ():
            self._entries(inner.this, inner, block)

    def _table(self, node: exp.Table, join: exp.Join | None) -> Entry:
        cte = None if node.db else cte_in_sight(node, node.name)
        if cte is not None:
            named = frozenset(column.name.casefold() for column in cte.args["alias"].columns)
            return Entry(node.alias_or_name, None, join, named or _outputs(cte.this))
        name, schema = node.name.casefold(), node.db.casefold()
        found = [table for table in self._tables if table.ref.name.casefold() == name]
        if len(found) > 1 and schema:
            found = [table for table in found if schema in _prefixes(table)]
        return Entry(node.alias_or_name, found[0] if found else None, join)

    def _inside(self, node: exp.Expr, block: Block) -> None:
        """Look into the queries within a part of a block."""
        for inner in block.walk(node):
            if inner is not block.select and is_query(inner):
                derived = _derived_name(inner)
                own = f"query {derived}" if derived else self._numbered(block.label)
                self.query(inner, _join(block.label, own), block)

    def _numbered(self, label: str) -> str:
        self._subqueries[label] += 1
        number = self._subqueries[label]
        return "subquery" if number == 1 else f"subquery {number}"


def _derived_name(query: exp.Expr) -> str:
    """The name of a query that stands in FROM, else nothing."""
    if isinstance(query.parent, exp.Lateral):
        return query.parent.alias_or_name
    return query.alias_or_name if isinstance(query.parent, exp.From | exp.Join) else ""


def _placed(entry: Entry, name: str) -> Place:
    column = entry.table.column(name) if entry.table is not None else None
    return Place(entry, column.name if column is not None else name)


def _join(label: str, own: str) -> str:
    return f"{label}, {own}" if label else own


def _operations(node: exp.Expr) -> list[exp.SetOperation]:
    """The operations of a chain, which leans to the left, in the order they are written."""
    found = []
    while isinstance(node, exp.SetOperation):
        found.append(node)
        node = node.this
    return found[::-1]


def _seconds(operations: Sequence[exp.SetOperation]) -> list[exp.Expr]:
    return [operation.expression for operation in operations]


def _outputs(node: exp.Expr) -> frozenset[str] | None:
    """Folded names of the result columns of a query; None with a star in it."""
    node = bare(node)
    while isinstance(node, exp.SetOperation):
        node = bare(node.this)
    if not isinstance(node, exp.Select) or any(is_star(item) for item in node.expressions):
        return None
    return frozenset(item.alias_or_name.casefold() for item in node.expressions)


def cte_in_sight(node: exp.Expr, name: str) -> exp.CTE | None:
    """The WITH entry that a name means where ``node`` stands; in its own body only a
    recursive one is seen."""
    name = name.casefold()
    place: exp.Expr | None = node
    inside: exp.Expr | None = None
    while place is not None:
        with_ = place.args.get("with_")
        recursive = isinstance(with_, exp.With) and with_.args.get("recursive")
        for cte in with_.expressions if isinstance(with_, exp.With) else ():
            hidden = cte is inside and not recursive
            if isinstance(cte, exp.CTE) and cte.alias.casefold() == name and not hidden:
                return cte
        inside = place if isinstance(place, exp.CTE) else inside
        place = place.parent
    return None


def _prefixes(table: Table) -> tuple[str, str]:
    return (table.ref.schema or "main").casefold(), table.ref.source.casefold()
