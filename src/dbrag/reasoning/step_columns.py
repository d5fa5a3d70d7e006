"""Names of a step's result columns, known without running it, and made unique."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from dbrag.reasoning.blocks import bare, cte_in_sight, is_star

ColumnsOf = Callable[[exp.Table], Sequence[str] | None]
"""The columns of what an entry of FROM names, None where they are not known."""


def unique(names: Sequence[str]) -> list[str]:
    """The names, those that stand before them already with a number: ``id``, ``id_2``.

    Letter case does not tell names apart; empty ones (not known) stay.
    """
    taken = {name.casefold() for name in names}
    seen: set[str] = set()
    found = []
    for name in names:
        new, number = name, 1
        if name and name.casefold() in seen:
            while new.casefold() in taken:
                number += 1
                new = f"{name}_{number}"
            taken.add(new.casefold())
        seen.add(new.casefold())
        found.append(new)
    return found


def output_names(query: exp.Expr, columns_of: ColumnsOf) -> list[str] | None:
    """The names of a query's columns in order, duplicates included; None: not known.

    Empty for an expression without a name, whose name only the engine knows.
    """
    select = first_select(query)
    if select is None:
        return None
    names: list[str] = []
    for item in select.expressions:
        if is_star(item):
            more = _star(select, item, columns_of)
            if more is None:
                return None
            names += more
        elif isinstance(item, exp.Alias | exp.Column):
            names.append(item.alias_or_name)
        elif item.find(exp.Star, exp.Columns, exp.Explode, exp.Unnest) and not item.find(exp.Count):
            return None  # may bring several columns
        else:
            names.append("")
    return names


def first_select(query: exp.Expr) -> exp.Select | None:
    """The SELECT that names the columns of a query."""
    query = bare(query)
    while isinstance(query, exp.SetOperation):
        query = bare(query.this)
    return query if isinstance(query, exp.Select) else None


def _star(select: exp.Select, item: exp.Expr, columns_of: ColumnsOf) -> list[str] | None:
    star = item.this if isinstance(item, exp.Column) else item
    if any(star.args.get(part) for part in ("except_", "replace", "rename")):
        return None
    source = select.args.get("from_")
    joins = select.args.get("joins") or []
    wanted = item.table.casefold() if isinstance(item, exp.Column) else ""
    merged = any(j.args.get("using") or j.method or j.kind in ("SEMI", "ANTI") for j in joins)
    if source is None or select.args.get("laterals") or (merged and not wanted):
        return None  # engines differ in where merged columns stand
    names: list[str] = []
    for entry in (source.this, *(join.this for join in joins)):
        if wanted and entry.alias_or_name.casefold() != wanted:
            continue
        more = _entry_columns(entry, columns_of)
        if more is None:
            return None
        names += more
    return names


def _entry_columns(entry: exp.Expr, columns_of: ColumnsOf) -> Sequence[str] | None:
    alias = entry.args.get("alias")
    if entry.args.get("joins") or entry.args.get("pivots"):
        return None
    if isinstance(alias, exp.TableAlias) and alias.columns:
        return [column.name for column in alias.columns]
    if isinstance(entry, exp.Table) and isinstance(entry.this, exp.Identifier):
        deeper = None if entry.db else cte_in_sight(entry, entry.name)
        return columns_of(entry) if deeper is None else output_names(deeper.this, columns_of)
    if isinstance(entry, exp.Subquery) and isinstance(bare(entry), exp.Query):
        return output_names(entry, columns_of)
    return None
