"""Rivals without a language model that look at joins: a walk over them, or a greedy choice.

Both take the scores of a base, and dbrag's join graph (declared keys and inferred edges).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dbrag.evaluation.baselines.parameters import (
    GREEDY,
    WALK,
    GreedyParameters,
    WalkParameters,
)
from dbrag.evaluation.baselines.scorers import best_first
from dbrag.evaluation.methods import Ranking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.evaluation.baselines.scorers import Scorer
    from dbrag.evaluation.methods import RetrievalMethod
    from dbrag.index.adjacency import Adjacency
    from dbrag.types import TableRef

    Array = NDArray[np.float32]


class Order(Protocol):
    """Orders all tables by the base's scores and the joins."""

    def __call__(self, scores: Array, graph: Adjacency, /) -> NDArray[np.int64]:
        """Positions ``[n_tables]``, best first."""
        ...


def pagerank_order(
    scores: Array, graph: Adjacency, parameters: WalkParameters = WALK
) -> NDArray[np.int64]:
    """Tables by how often a walk from the best ones comes by; the others by their score.

    p ← (1 - d) · e + d · W p, with e the softmax over the seeds, W a step to a random
    neighbour, d the damping (Page et al. 1999; Haveliwala 2002); over tables as in GERT.

    Args:
        scores: ``[n_tables]``.

    Returns:
        Positions ``[n_tables]``, best first.
    """
    import numpy as np

    if not len(scores):
        return np.zeros(0, np.int64)
    scaled = standard(scores).astype(np.float64)
    seeds = best_first(scores, parameters.seeds)
    likely = np.exp(parameters.sharpness * (scaled[seeds] - scaled[seeds[0]]))
    near, around = graph.around(np.sort(seeds), parameters.steps)
    start = np.zeros(len(near))
    start[np.searchsorted(near, seeds)] = likely / likely.sum()
    walk = start
    for _ in range(parameters.steps):
        walk = (1 - parameters.damping) * start + parameters.damping * around.spread(walk)
    reached = np.zeros(len(scores))
    reached[near] = walk
    return np.lexsort((-scaled, -reached)).astype(np.int64)


def greedy_order(
    scores: Array,
    graph: Adjacency,
    parameters: GreedyParameters = GREEDY,
    *,
    depth: int = 50,
) -> NDArray[np.int64]:
    """Tables chosen one after another: the largest s(c) + β · [c adjacent to a chosen one].

    Args:
        scores: ``[n_tables]``; s is scaled to deviation 1.
        depth: places that are filled so; the others follow by their score.

    Returns:
        Positions ``[n_tables]``, best first.
    """
    import numpy as np

    worth = standard(scores).astype(np.float64)
    near = np.zeros(len(worth), bool)
    chosen: list[int] = []
    for _ in range(min(depth, len(worth))):
        best = int(np.argmax(worth))
        chosen.append(best)
        joined = graph.neighbours(best)
        worth[joined[~near[joined]]] += parameters.bonus
        near[joined] = True
        worth[best] = -np.inf
    taken = np.zeros(len(worth), bool)
    taken[chosen] = True
    rest = [i for i in best_first(scores) if not taken[i]]
    return np.array([*chosen, *rest], np.int64)


def standard(scores: Array) -> Array:
    """Mean 0, deviation 1 over all tables; all 0 where they do not differ.

    A table without a score (-inf) keeps it.
    """
    import numpy as np

    known = scores[np.isfinite(scores)]
    deviation = float(known.std()) if len(known) else 0.0
    if deviation < 1e-9:
        return np.where(np.isfinite(scores), np.float32(0), scores)
    return np.asarray((scores - known.mean()) / deviation, np.float32)


def reordered(
    order: Order, scorer: Scorer, graph: Adjacency, refs: Sequence[TableRef]
) -> RetrievalMethod:
    """A method: the base's scores, ordered anew by joins."""

    def rank(question: str, k: int) -> Ranking:
        return Ranking([refs[i] for i in order(scorer.scores(question), graph)[:k]])

    return rank


ORDERS: Mapping[str, Order] = {"pagerank": pagerank_order, "greedy-join": greedy_order}
"""By the name of the method."""
