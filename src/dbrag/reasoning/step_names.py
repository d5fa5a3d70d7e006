"""The names by which a query reads tables and steps."""

from __future__ import annotations

from sqlglot import exp

from dbrag.reasoning.blocks import cte_in_sight


def name_read(node: exp.Expr) -> exp.Identifier | None:
    """The unqualified name in an entry of FROM, or in SQLite's ``x IN name``."""
    if isinstance(node, exp.In):
        field = node.args.get("field")
        name = field.this if isinstance(field, exp.Column) and not field.table else None
    else:
        name = node.this if isinstance(node, exp.Table) and not node.db else None
    return name if isinstance(name, exp.Identifier) else None


def names_read(query: exp.Expr) -> set[str]:
    """Folded names of everything that a query reads and that is not a WITH of its own."""
    found = set()
    for node in query.find_all(exp.Table, exp.In):
        name = name_read(node)
        if name is not None and cte_in_sight(node, name.name) is None:
            found.add(name.name.casefold())
    return found
