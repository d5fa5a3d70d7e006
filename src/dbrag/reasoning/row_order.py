"""The order of rows within a chain of steps.

Only LIMIT and the last step give ORDER BY a meaning. A step that is sorted for a later
one hands its ORDER BY on to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dbrag.reasoning.blocks import Block, is_star
from dbrag.reasoning.step_columns import first_select
from dbrag.reasoning.step_names import names_read

_CLAUSES = ("joins", "laterals", "group", "having", "distinct", "qualify", "windows", "pivots")
"""A SELECT without them passes rows on in the order in which they come."""
_AS_THEY_COME = (exp.GroupConcat, exp.ArrayAgg, exp.First, exp.Last, exp.JSONArrayAgg)
_AS_THEY_COME_NAMES = frozenset(
    {"json_group_array", "json_group_object", "jsonb_group_array", "string_agg", "json_agg"}
    | {"jsonb_agg", "list", "first", "last", "json_arrayagg"}
)
"""Aggregates whose result depends on the order of rows."""


def move_order(steps: Sequence[tuple[str, exp.Query]], dialect: str) -> None:
    """Take ORDER BY without LIMIT out of all steps but the last, in place.

    A step that reads the sorted one alone and has no ORDER BY gets it. It stays where it
    cannot be handed on to one that takes rows as they come; but not in T-SQL, which has no
    ORDER BY without TOP in a step.

    Args:
        steps: name → query, in order; each may read those before it.
    """
    for place, (name, query) in enumerate(steps[:-1]):
        order = query.args.get("order")
        if order is None or _keeps(query):
            continue
        later = [other for _, other in steps[place + 1 :] if name.casefold() in names_read(other)]
        # Each is tried: all that can have the order get it.
        served = [_serve(query, order, reader, name) for reader in later]
        if all(served) or dialect == "tsql":
            query.set("order", None)


def _keeps(query: exp.Query) -> bool:
    """Whether ORDER BY says which rows there are."""
    distinct = query.args.get("distinct")
    first_of = isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None
    return first_of or any(query.args.get(part) is not None for part in ("limit", "offset"))


def _serve(query: exp.Query, order: exp.Order, reader: exp.Query, name: str) -> bool:
    """Hand the order on to a reader if it wants it; False if it wants it and cannot have it."""
    inside = any(_depends(node) for node in reader.walk() if node is not reader)
    if not isinstance(reader, exp.Select) or not _passes(reader, name):
        return not (inside or _depends(reader))
    if reader.args.get("order") is None:
        keys = _keys(query, order, reader.args["from_"].this)
        if keys is None:
            return False
        reader.set("order", exp.Order(expressions=keys))
    return not inside


def _passes(reader: exp.Select, name: str) -> bool:
    """Whether its rows are those of one step, some left out."""
    source = reader.args.get("from_")
    entry = source.this if source is not None else None
    if not isinstance(entry, exp.Table) or entry.db or entry.name.casefold() != name.casefold():
        return False
    if entry.args.get("joins") or any(reader.args.get(clause) for clause in _CLAUSES):
        return False
    return not any(isinstance(n, exp.AggFunc | exp.Window) for n in Block(reader, "").walk())


def _depends(node: exp.Expr) -> bool:
    """Whether it takes rows as they come: LIMIT, a window, an aggregate without an order."""
    if isinstance(node, exp.Query):
        cut = node.args.get("limit") is not None or node.args.get("offset") is not None
        return cut and node.args.get("order") is None
    if isinstance(node, exp.Window):
        return node.args.get("order") is None and not isinstance(node.this, exp.Count | exp.Sum)
    named = isinstance(node, exp.Anonymous) and node.name.lower() in _AS_THEY_COME_NAMES
    return (named or isinstance(node, _AS_THEY_COME)) and node.find(exp.Order) is None


def _keys(query: exp.Query, order: exp.Order, entry: exp.Table) -> list[exp.Ordered] | None:
    """What a reader of ``entry`` has to sort by; None where a key is no result column."""
    alias = entry.args.get("alias")
    called = alias.this if alias is not None else entry.this
    keys = []
    for ordered in order.expressions:
        name = _output(query, ordered.this)
        if name is None:
            return None
        key = ordered.copy()
        key.set("this", exp.Column(this=name.copy(), table=called.copy()))
        keys.append(key)
    return keys


def _output(query: exp.Query, key: exp.Expr) -> exp.Identifier | None:
    """The name of the result column that a key of ORDER BY means."""
    select = first_select(query)
    items = list(select.expressions) if select is not None else []
    named = [item for item in items if isinstance(item, exp.Alias | exp.Column)]
    found = None
    if isinstance(key, exp.Literal) and not key.is_string:
        place = int(key.name) - 1 if key.name.isdigit() else -1
        before = items[: place + 1]
        if 0 <= place < len(items) and not any(map(is_star, before)):
            found = _named(before[-1])
    elif isinstance(key, exp.Column) and not key.table and _like(key.name, named):
        found = _named(_like(key.name, named)[0])
    else:
        same = [item for item in named if item.unalias() == key]
        found = _named(same[0]) if same else _starred(select, query, key)
    if found is None or len(_like(found.name, named)) > 1:
        return None
    return found


def _named(item: exp.Expr) -> exp.Identifier | None:
    name = item.args.get("alias") if isinstance(item, exp.Alias) else item.this
    is_name = isinstance(item, exp.Alias | exp.Column) and isinstance(name, exp.Identifier)
    return name if is_name else None


def _like(name: str, items: Sequence[exp.Expr]) -> list[exp.Expr]:
    return [i for i in items if i.alias_or_name.casefold() == name.casefold() and not is_star(i)]


def _starred(select: exp.Select | None, query: exp.Query, key: exp.Expr) -> exp.Identifier | None:
    """The name of a column that ``*`` over one entry of FROM brings along."""
    if select is None or select is not query or not isinstance(key, exp.Column):
        return None
    source = select.args.get("from_")
    entry = source.this if source is not None else None
    if not isinstance(entry, exp.Table | exp.Subquery):
        return None
    if select.args.get("joins") or entry.args.get("joins"):
        return None
    return next((_identifier_of(key) for item in select.expressions if is_star(item)), None)


def _identifier_of(column: exp.Column) -> exp.Identifier | None:
    return column.this if isinstance(column.this, exp.Identifier) else None
