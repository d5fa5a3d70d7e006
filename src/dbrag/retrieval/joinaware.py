"""Joins in the ranking: a table is likelier when what it joins is likely.

A question that needs three tables rarely says so of all three: the one in between is
found through its neighbours in the join graph. Three ways, compared in
``bench/retrieval_weights.py``; personalised PageRank is the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.index.best import top

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.adjacency import Adjacency

    Array = NDArray[np.float32]

_SEEDS = 20
_DAMPING = 0.8
_SHARPNESS = 1.5
_STEPS = 12
"""30 steps gave the same ranking: what is left of the walk by then is 0.8^12, 7%."""
_FLOOR = 1e-3
_DEPTH = 15
_BONUS = 1.0


def personalised_pagerank(scores: Array, graph: Adjacency) -> Array:
    """How often a walk that starts at the likeliest tables comes by, as a log, from 0 up.

    p ← (1 - d) · e + d · W p, with e the softmax of the 20 best scores times 1.5, W a
    step to a random neighbour, d = 0.8 (Page et al. 1999; Haveliwala 2002); the part is
    ln((p + 0.001) / 0.001). Over tables as in GERT.

    Args:
        scores: ``[n_tables]``.
    """
    import numpy as np

    seeds = top(scores, _SEEDS)
    likely = np.exp(_SHARPNESS * (scores[seeds] - scores[seeds[0]]).astype(np.float64))
    near, around = graph.around(seeds, _STEPS)
    start = np.zeros(len(near))
    start[np.searchsorted(near, seeds)] = likely / likely.sum()
    walk = start
    for _ in range(_STEPS):
        walk = (1 - _DAMPING) * start + _DAMPING * around.spread(walk)
    part = np.zeros(len(scores), np.float32)
    part[near] = np.log((walk + _FLOOR) / _FLOOR)
    return part


def best_neighbour(scores: Array, graph: Adjacency) -> Array:
    """The best score among the tables that join each table; its own where none does.

    Args:
        scores: ``[n_tables]``.
    """
    return graph.best(scores)


def greedy(scores: Array, graph: Adjacency) -> Array:
    """What lifts a table that joins one already chosen: s(c) + 1 · [c adjacent to chosen].

    The 15 best places are filled one after another; a lifted table never passes one that
    was chosen before it.

    Args:
        scores: ``[n_tables]``.
    """
    import numpy as np

    lifted = scores.copy()
    best = top(scores, 4 * _DEPTH)
    open_ = dict.fromkeys(best.tolist())
    near: set[int] = set()
    last = np.float32(np.inf)
    for _ in range(min(_DEPTH, len(open_))):
        worth = {i: float(scores[i]) + _BONUS * (i in near) for i in open_}
        chosen = max(worth, key=lambda i: worth[i])
        last = min(np.float32(worth[chosen]), np.nextafter(last, np.float32(-np.inf)))
        lifted[chosen] = last
        near.update(graph.neighbours(chosen).tolist())
        del open_[chosen]
    return np.asarray(lifted - scores, np.float32)


def group_best(scores: Array, groups: NDArray[np.int32]) -> Array:
    """The best score in the group that each table is in.

    Args:
        scores: ``[n_tables]``.
        groups: ``[n_tables]``, numbers from 0; a table with -1 is a group of its own.
    """
    import numpy as np

    best = scores.copy()
    grouped = groups >= 0
    if grouped.any():
        of_group = np.full(int(groups.max()) + 1, -np.inf, np.float32)
        np.maximum.at(of_group, groups[grouped], scores[grouped])
        best[grouped] = of_group[groups[grouped]]
    return best


JOIN_RANKINGS: dict[str, tuple[Callable[[Array, Adjacency], Array] | None, float]] = {
    "pagerank": (personalised_pagerank, 0.5),
    "neighbour": (best_neighbour, 0.3),
    "greedy": (greedy, 1.0),
    "off": (None, 0.0),
}
"""What ``join_ranking`` can be: the part, and the weight it was best with on ``spider/train``."""
