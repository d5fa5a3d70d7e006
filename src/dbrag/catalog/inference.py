"""Joins where no keys are declared, guessed from values and names.

Candidates by sketches (``candidates``), each weighed by a logistic model over what the
two columns show (``pairs``), the best target of each column kept. The weights were fitted
with the declared keys of Spider's training databases as the truth, where a join that
nobody declared counts as wrong; so a confidence of 0.9 is right at least nine times in
ten (``bench/join_inference.py --fit``).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dbrag.catalog.candidates import Candidates
from dbrag.catalog.joins import JoinEdge
from dbrag.catalog.pairs import Pair, beside_rivals, compare
from dbrag.catalog.parts import parts_of
from dbrag.logistic import sigmoid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dbrag.catalog.candidates import ColumnAt
    from dbrag.catalog.sketches import TableSketch
    from dbrag.types import TableRef

VERSION = 3
"""Raised when the same sketches would give other edges."""

THRESHOLD = 0.2
"""Least confidence of an edge."""
ACROSS_PARTS = 0.9
"""The same between parts of a server that stand for databases of their own."""
ISOLATED_THRESHOLD = 0.03
"""The same for a table that joins nothing else where most tables do; its edge gets the
confidence ``THRESHOLD``. On the training databases 5 of 7 such edges are declared."""

INTERCEPT = -13.61
WEIGHTS: Mapping[str, float] = {
    "matched": -0.38,
    "table_in": 1.92,
    "full": 0.73,
    "same_name": 0.88,
    "same_generic": 5.95,
    "generic": -4.59,
    "suffix": -0.14,
    "own": 0.02,
    "own_key": -2.80,
    "key_of_table": -1.57,
    "key_unmatched": -1.60,
    "contained": 10.71,
    "partly": -4.22,
    "unknown": 7.96,
    "scattered": -0.27,
    "text": -0.19,
    "cover": 0.92,
    "to_primary": 3.12,
    "small": -0.81,
    "self": -4.05,
    "sounds_like_key": -0.75,
    "to_key_name": 0.56,
    "best_name": 0.99,
    "rivals": -1.34,
}
GIVEN_WEIGHTS: Mapping[str, float] = {
    "role": 5.0,
    "named_values": 3.0,
    "measure": -5.0,
}
"""Set by hand, where Spider's keys say too little: all 12 columns like ``manager_id`` of the
training databases refer to their own table, but only two declare it; and hundreds of texts
found in a column that the name names are no chance, also where it is not the primary key;
and what is called a quantity or a price refers to nothing."""


def infer_joins(tables: Iterable[TableSketch]) -> tuple[JoinEdge, ...]:
    """The joins of the tables of one source, declared keys not looked at; best first.

    At most one target for each column, so at most as many edges as columns. A pair of
    columns that could refer to each other becomes one edge. Keys of several columns are
    not guessed, nor are parts of them ever referred to, unless unique by themselves.
    """
    tables = list(tables)
    parts = parts_of(tables)
    best = _best_targets(weighed_pairs(tables), parts)
    chosen = _once([one for one in best if one[0] >= THRESHOLD])
    chosen += _of_isolated(tables, best, chosen)
    edges = [_edge(confidence, pair) for confidence, pair in chosen]
    return tuple(sorted(edges, key=_rank))


Weighed = tuple[float, Pair]


def weighed_pairs(tables: Sequence[TableSketch]) -> list[list[Weighed]]:
    """For every column its candidates with their confidence."""
    return [
        [(confidence(features), pair) for features, pair in zip(rows, pairs, strict=True)]
        for pairs in compared(tables)
        for rows in [beside_rivals(pairs)]
    ]


def compared(tables: Sequence[TableSketch]) -> list[list[Pair]]:
    """For every column the pairs that may be joins at all."""
    of_column: dict[int, list[Pair]] = defaultdict(list)
    for column, key in Candidates(tables).pairs():
        pair = compare(column, key)
        if pair is not None:
            of_column[id(column)].append(pair)
    return list(of_column.values())


def confidence(features: Mapping[str, float]) -> float:
    """Probability of a declared key, 0..1: logistic regression."""
    x = INTERCEPT
    for weights in (WEIGHTS, GIVEN_WEIGHTS):
        x += sum(weight * features[name] for name, weight in weights.items())
    return sigmoid(x)


def _best_targets(
    columns: Iterable[Sequence[Weighed]], parts: Mapping[TableRef, str]
) -> list[Weighed]:
    best = []
    for weighed in columns:
        allowed = [
            (confidence, pair)
            for confidence, pair in weighed
            if confidence >= ACROSS_PARTS
            or parts[pair.column.table.ref] == parts[pair.key.table.ref]
        ]
        if allowed:
            best.append(min(allowed, key=lambda one: (-one[0], _names(one[1]))))
    return best


def _once(weighed: list[Weighed]) -> list[Weighed]:
    """Of two columns that refer to each other the likelier direction."""
    seen = set()
    kept = []
    for confidence, pair in sorted(weighed, key=lambda one: (-one[0], _names(one[1]))):
        ends = frozenset((id(pair.column.column), id(pair.key.column)))
        if ends not in seen:
            seen.add(ends)
            kept.append((confidence, pair))
    return kept


def _of_isolated(
    tables: Sequence[TableSketch], best: Sequence[Weighed], chosen: Sequence[Weighed]
) -> list[Weighed]:
    """Edges of the tables that have none, in a source whose tables mostly have one."""
    linked = {at.table.ref for _, pair in chosen if not _is_self(pair) for at in _ends(pair)}
    if 2 * len(linked) < len(tables):
        return []
    return _once(
        [
            (THRESHOLD, pair)
            for confidence, pair in best
            if confidence >= ISOLATED_THRESHOLD
            and pair.column.table.ref not in linked
            and not _is_self(pair)
        ]
    )


def _ends(pair: Pair) -> tuple[ColumnAt, ColumnAt]:
    return pair.column, pair.key


def _is_self(pair: Pair) -> bool:
    return pair.column.table.ref == pair.key.table.ref


def _names(pair: Pair) -> tuple[str, ...]:
    return (
        str(pair.column.table.ref),
        pair.column.column.name,
        str(pair.key.table.ref),
        pair.key.column.name,
    )


def _edge(confidence: float, pair: Pair) -> JoinEdge:
    return JoinEdge(
        left=pair.column.table.ref,
        left_columns=(pair.column.column.name,),
        right=pair.key.table.ref,
        right_columns=(pair.key.column.name,),
        declared=False,
        confidence=min(round(confidence, 3), 0.999),
        evidence=evidence(pair),
    )


def _rank(edge: JoinEdge) -> tuple[object, ...]:
    return -edge.confidence, str(edge.left), edge.left_columns, str(edge.right), edge.right_columns


def evidence(pair: Pair) -> str:
    """``all 58 values found in a primary key; the name fits``: why it is called a join."""
    column, key = pair.column.column, pair.key
    declared = key.table.primary_key == (key.column.name,)
    what = "a primary key" if declared else "a column without repetitions"
    if pair.contained is None:
        found = f"no values to compare with {what}"
    else:
        few = f"{min(99.9, 100 * pair.contained):.3g}% of {column.distinct:,} values"
        whole = "the only value" if column.distinct == 1 else f"all {column.distinct:,} values"
        found = f"{whole if pair.contained == 1 else few} found in {what}"
        if key.table.share < 1:
            found += f", estimated from {key.table.share:.1%} of its rows"
    if pair.features["same_name"]:
        return f"{found}; equal names"
    if pair.features["matched"] >= 1:
        return f"{found}; the name fits"
    return f"{found}; the name fits partly" if pair.features["matched"] else found
