"""How the shown tables are joined, as a prompt spells it out.

Declared keys between shown tables stand in their CREATE TABLE text. Told beside them are
the other joins of a small tree that connects the tables, through tables that are not shown
if need be, and where a pair of tables (or a table with itself) can be joined in several
ways, each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.index.words import stems
from dbrag.reasoning.names import need_schemas, table_shown
from dbrag.reasoning.names import shown as shown_name
from dbrag.types import Table, TableRef

MOST = 12
"""Joins told in one prompt."""
MOST_WAYS = 3
"""Ways told to join one pair of the tree; between shown tables all declared ones are."""


def joins_told(
    graph: JoinGraph, refs: Iterable[TableRef], question: str = ""
) -> tuple[JoinEdge, ...]:
    """The joins between ``refs``: all declared ones; those of the tree that connects the
    tables, with the other sure ones of each pair; and of inferred ones of a table with
    itself those that the question speaks of."""
    wanted = sorted(set(refs), key=str)
    path = graph.path(wanted)
    found = dict.fromkeys(path)
    for place, a in enumerate(wanted):
        for b in wanted[place:]:
            between = graph.between(a, b)
            found |= dict.fromkeys(edge for edge in between if edge.declared)
    for edge in path:
        found |= dict.fromkeys(graph.sure(edge.left, edge.right)[:MOST_WAYS])
    asked = set(stems(question))
    for ref in wanted:
        loops = graph.sure(ref, ref)
        if not any(edge.declared for edge in loops):
            found |= dict.fromkeys(e for e in loops[:MOST_WAYS] if _speaks_of(e, asked))
    return tuple(sorted(found, key=_order))


def _speaks_of(edge: JoinEdge, asked: Set[str]) -> bool:
    """Whether the question says what tells the columns apart: "parent" of ``parent_id``, ``id``."""
    left, right = (
        {s for name in c for s in stems(name)} for c in (edge.left_columns, edge.right_columns)
    )
    return not asked.isdisjoint(left - right)


def join_hints(tables: Sequence[Table], joins: Sequence[JoinEdge], dialect: str) -> list[str]:
    """Joins that the CREATE TABLE text does not already declare, one text for each pair.

    Several ways to join one pair are told apart, and inferred ones then marked as likely.
    """
    shown = {table.ref for table in tables}
    declared = {
        (table.ref, key.target, key.columns)
        for table in tables
        for key in table.foreign_keys
        if key.target in shown
    }
    qualified = need_schemas(shown | {r for e in joins for r in (e.left, e.right)}, dialect)
    pairs: dict[frozenset[TableRef], list[JoinEdge]] = {}
    for edge in joins:
        forward = (edge.left, edge.right, edge.left_columns) in declared
        if not forward and (edge.right, edge.left, edge.right_columns) not in declared:
            pairs.setdefault(frozenset((edge.left, edge.right)), []).append(edge)
    return [_pair_text(edges, dialect, qualified) for edges in list(pairs.values())[:MOST]]


def _pair_text(edges: Sequence[JoinEdge], dialect: str, qualified: bool) -> str:
    texts = [_edge_text(edge, dialect, qualified) for edge in edges]
    if len(edges) == 1:
        return texts[0]
    marks = [" (likely)" if not edge.declared else "" for edge in edges]
    return " or, with another meaning, ".join(map("".join, zip(texts, marks, strict=True)))


def _edge_text(edge: JoinEdge, dialect: str, qualified: bool) -> str:
    one, two = (table_shown(ref, dialect, qualified) for ref in (edge.left, edge.right))
    pairs = zip(edge.left_columns, edge.right_columns, strict=True)
    if edge.left == edge.right:
        two = f"another {two}"
    return " AND ".join(
        f"{one}.{shown_name(left, dialect)} = {two}.{shown_name(right, dialect)}"
        for left, right in pairs
    )


def _order(edge: JoinEdge) -> tuple[object, ...]:
    return (
        not edge.declared,
        -edge.confidence,
        str(edge.left),
        str(edge.right),
        edge.left_columns,
        edge.right_columns,
    )
