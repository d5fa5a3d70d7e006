"""Joins in the ranking: a table is likelier when what it joins is likely.

A question that needs three tables rarely says so of all three: the one in between is
found through its neighbours in the graph of declared keys. The idea is that of JAR
(Chen et al. 2024) and of personalised PageRank, reduced to two maxima.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


def best_neighbour(scores: Array, edges: NDArray[np.int32]) -> Array:
    """The best score among the tables that join each table; its own where none does.

    Args:
        scores: ``[n_tables]``.
        edges: ``[n_edges, 2]``, both directions, sorted by the first table.
    """
    import numpy as np

    best = scores.copy()
    if len(edges):
        tables, starts = np.unique(edges[:, 0], return_index=True)
        best[tables] = np.maximum.reduceat(scores[edges[:, 1]], starts)
    return best


def component_best(scores: Array, components: NDArray[np.int32]) -> Array:
    """The best score of the connected part of the join graph that each table is in.

    Args:
        scores: ``[n_tables]``.
        components: ``[n_tables]``, numbers from 0.
    """
    import numpy as np

    if not len(scores):
        return scores
    best = np.full(int(components.max()) + 1, -np.inf, np.float32)
    np.maximum.at(best, components, scores)
    return np.asarray(best[components])
