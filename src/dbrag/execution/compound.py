"""``(SELECT …) UNION (SELECT …)``: valid elsewhere, a syntax error in SQLite."""

from __future__ import annotations

from sqlglot import exp


def without_parentheses(tree: exp.Expr) -> exp.Expr | None:
    """The tree with bare queries for parenthesised ones; None if there is nothing to do.

    A parenthesised part with its own ORDER BY, LIMIT or WITH, or that is a compound
    itself, becomes ``SELECT * FROM (…)``, which means the same.
    """
    if not any(_is_bare(node) for node in tree.find_all(exp.Subquery)):
        return None
    tree = tree.copy()
    while (
        place := next((n for n in tree.find_all(exp.Subquery) if _is_bare(n)), None)
    ) is not None:
        plain = _plain(place)
        if place is tree:
            tree = plain
        else:
            place.replace(plain)
    return tree


def _is_bare(node: exp.Subquery) -> bool:
    """A parenthesised query that is the whole statement or a part of a compound."""
    if not isinstance(node.this, (exp.Query, exp.Values)):
        return False
    parent = node.parent
    return (
        parent is None
        or (isinstance(parent, exp.SetOperation) and node.arg_key in ("this", "expression"))
        or (isinstance(parent, exp.CTE) and node.arg_key == "this")
    )


def _plain(node: exp.Subquery) -> exp.Expr:
    inner: exp.Expr = node.this
    own = [name for name in ("order", "limit", "offset", "with_") if node.args.get(name)]
    ordered = any(inner.args.get(name) for name in ("order", "limit", "offset", "with_"))
    simple = isinstance(inner, exp.Select) and not ordered
    if not own and (simple or not isinstance(node.parent, exp.SetOperation)):
        return inner.copy()
    outer = exp.select("*").from_(exp.Subquery(this=inner.copy()))
    for name in own:
        outer.set(name, node.args[name].copy())
    return outer
