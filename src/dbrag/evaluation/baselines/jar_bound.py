"""What JAR's programme is worth at least, and which tables can be in no optimum.

For a given set of tables the programme is easy: the best joins are a maximum spanning tree
(Prim 1957), the best covering columns are found by sorting. Sets are grown greedily
from each table and bettered by exchanging one table at a time; what the best of them is
worth bounds the optimum from below.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.evaluation.baselines.jar_program import Problem
    from dbrag.evaluation.baselines.parameters import JarWeights

    Array = NDArray[np.float64]

_SLACK = 1e-7
_STARTS = 3


@dataclass(frozen=True, slots=True)
class Found:
    """A set of tables, its best joins, and what both are worth in the programme."""

    tables: tuple[int, ...]
    joins: tuple[tuple[int, int], ...]
    objective: float


def best_found(problem: Problem) -> Found | None:
    """A good choice; None where no K tables are connected, so that there is none at all."""
    n, size = len(problem.scores), problem.size
    if not 1 <= size <= n:
        return None
    grown = {found.tables: found for i in range(n) if (found := _grown(problem, i))}
    best = sorted(grown.values(), key=lambda one: -one.objective)[:_STARTS]
    return max((_exchanged(problem, one) for one in best), key=lambda f: f.objective, default=None)


def worth_of(problem: Problem, tables: Collection[int]) -> Found | None:
    """The best that the programme can make of exactly these tables; None: not connected."""
    chosen = sorted(tables)
    joins = spanning_tree(problem.joins, chosen)
    if joins is None:
        return None
    weights = problem.weights
    objective = weights.tables * float(problem.scores[chosen].sum())
    objective += weights.joins * sum(float(problem.joins[pair]) for pair in joins)
    objective += coverage(problem.relevance[:, chosen], weights)
    return Found(tuple(chosen), tuple(joins), objective)


def spanning_tree(joins: Array, chosen: Sequence[int]) -> list[tuple[int, int]] | None:
    """The heaviest tree over some tables, as pairs; None where they are not connected.

    Prim's way; weights are above 0 where two tables join.

    Args:
        joins: ``[n, n]``.
    """
    reached, pairs = {chosen[0]}, []
    while len(reached) < len(chosen):
        options = [(joins[i, j], i, j) for i in reached for j in chosen if j not in reached]
        weight, i, j = max(options)
        if weight <= 0:
            return None
        reached.add(j)
        pairs.append((min(i, j), max(i, j)))
    return sorted(pairs)


def coverage(relevance: Array, weights: JarWeights) -> float:
    """What covering the sub-questions is worth with the columns of the chosen tables.

    Of each sub-question its best column counts w2 + w1 · r, any further one w1 · r; at
    most cap · Q columns in all: the most valuable ones.

    Args:
        relevance: ``[n_questions, n_chosen]``.
    """
    gains: list[float] = []
    for row in relevance.tolist():
        first, *others = sorted(row, reverse=True)
        gains.append(weights.coverage + weights.columns * first)
        gains += [weights.columns * r for r in others]
    room = weights.cap * len(relevance)
    best = sorted((gain for gain in gains if gain > 0), reverse=True)
    whole = floor(room + 1e-9)
    total = sum(best[:whole])
    if len(best) > whole:  # a cap that leaves a part of a column
        total += (room - whole) * best[whole] if room - whole > 1e-9 else 0.0
    return total


def candidates(problem: Problem, least: float) -> tuple[NDArray[np.int64], Array]:
    """Tables and joins that can be in a choice worth ``least`` or more.

    A join of i and j is left out where even the best imaginable choice with it is worth
    less: both tables and the join, the best K - 2 other tables, each counted with its
    heaviest join (in a tree with the root i every other table has one that leads to it),
    and full coverage. A table stays if one of its joins does. Again, until nothing changes.

    Returns:
        Positions ``[n_kept]`` and joins ``[n_kept, n_kept]``, 0 where left out.
    """
    import numpy as np

    weights, size = problem.weights, problem.size
    kept, joins = np.arange(len(problem.scores)), problem.joins.copy()
    if size == 1:
        return kept, np.zeros_like(joins)
    while True:
        own = weights.tables * problem.scores[kept]
        most = own[:, None] + own[None, :] + weights.joins * joins
        most += _company(own + weights.joins * joins.max(axis=1), size - 2)
        most += coverage(problem.relevance[:, kept], weights)
        stay = (joins > 0) & (most >= least - _SLACK)
        tables = stay.any(axis=1)
        if tables.all() and (stay == (joins > 0)).all():
            return np.asarray(kept, np.int64), joins
        joins = np.where(stay, joins, 0.0)[np.ix_(tables, tables)]
        kept = kept[tables]


def _company(worth: Array, places: int) -> Array:
    """The sum of the best ``places`` of ``worth [n]`` without those of i and j: ``[n, n]``."""
    import numpy as np

    n = len(worth)
    order = np.argsort(-worth, kind="stable")
    sorted_worth = np.concatenate([worth[order], np.zeros(2)])
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    first = np.minimum(rank[:, None], rank[None, :])
    second = np.maximum(rank[:, None], rank[None, :])
    # The best places: two more are looked at for those of them that are i or j.
    total = np.full((n, n), sorted_worth[:places].sum())
    one = first < places
    total += np.where(one, sorted_worth[min(places, n)] - sorted_worth[first], 0.0)
    other = one & (second <= places)
    total += np.where(other, sorted_worth[min(places + 1, n + 1)] - sorted_worth[second], 0.0)
    return np.asarray(total, np.float64)


def _grown(problem: Problem, start: int) -> Found | None:
    """From one table, each time the one that adds most; None where too few are connected."""
    import numpy as np

    weights = problem.weights
    chosen = [start]
    nearest = problem.joins[start].copy()
    while len(chosen) < problem.size:
        gain = weights.tables * problem.scores + weights.joins * nearest
        gain[nearest <= 0] = -np.inf
        gain[chosen] = -np.inf
        best = int(np.argmax(gain))
        if gain[best] == -np.inf:
            return None
        chosen.append(best)
        nearest = np.maximum(nearest, problem.joins[best])
    return worth_of(problem, chosen)


def _exchanged(problem: Problem, found: Found) -> Found:
    """Exchange one table for another as long as that makes the choice better."""
    while True:
        better = found
        for out in found.tables:
            rest = [i for i in found.tables if i != out]
            for new in range(len(problem.scores)):
                if new in found.tables:
                    continue
                other = worth_of(problem, [*rest, new])
                if other is not None and other.objective > better.objective + _SLACK:
                    better = other
        if better is found:
            return found
        found = better
