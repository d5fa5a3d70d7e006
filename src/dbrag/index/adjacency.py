"""Which tables join which, as arrays over the positions of tables in the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class Adjacency:
    """The join graph for sums and maxima over neighbours.

    Args:
        edges: ``[n_edges, 2]``, both directions, sorted by the first table.
        n_tables: tables of the catalog, joined or not.

    Attributes:
        edges: as given.
        n_tables: as given.
    """

    def __init__(self, edges: NDArray[np.int32], n_tables: int) -> None:
        import numpy as np

        self.edges = edges
        self._from = np.ascontiguousarray(edges[:, 0])
        self._to = np.ascontiguousarray(edges[:, 1])
        self.n_tables = n_tables
        degree = np.bincount(self._from, minlength=n_tables)
        self._alone = (degree == 0).astype(np.float64)
        self._part = 1 / np.maximum(degree, 1)
        self._joined = np.flatnonzero(degree)
        self._starts = np.searchsorted(self._from, self._joined)

    def neighbours(self, table: int) -> NDArray[np.int32]:
        """Positions of the tables that join ``table``."""
        import numpy as np

        low, high = np.searchsorted(self._from, np.array([table, table + 1], np.int32))
        return self._to[low:high]

    def around(self, tables: NDArray[np.int64], steps: int) -> tuple[NDArray[np.int64], Adjacency]:
        """The part of the graph within so many joins of some tables: positions, and the graph.

        A walk of ``steps`` from these tables is the same there as in the whole graph: the
        outermost tables are reached, never left.
        """
        import numpy as np

        nodes = frontier = np.unique(tables)
        for _ in range(steps):
            frontier = np.setdiff1d(self._to[self._edges_from(frontier)], nodes)
            if not len(frontier):
                break
            nodes = np.union1d(nodes, frontier)
        edges = self._edges_from(nodes)
        ends = np.stack([self._from[edges], self._to[edges]], axis=1)
        inside = np.searchsorted(nodes, ends)
        kept = nodes[np.minimum(inside[:, 1], len(nodes) - 1)] == ends[:, 1]
        return nodes, Adjacency(inside[kept].astype(np.int32), len(nodes))

    def _edges_from(self, tables: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of the edges that start at any of some tables, in order."""
        import numpy as np

        low = np.searchsorted(self._from, tables.astype(np.int32), "left")
        high = np.searchsorted(self._from, tables.astype(np.int32), "right")
        sizes = high - low
        before = np.cumsum(sizes) - sizes
        return np.repeat(low - before, sizes) + np.arange(sizes.sum())

    def best(self, scores: Array) -> Array:
        """The best of the neighbours' ``scores [n_tables]``; its own where a table has none."""
        import numpy as np

        best = scores.copy()
        if len(self._joined):
            best[self._joined] = np.maximum.reduceat(scores[self._to], self._starts)
        return best

    def either(self, bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Each table's ``bits [n_tables]`` or those of any neighbour."""
        import numpy as np

        found = bits.copy()
        if len(self._joined):
            found[self._joined] |= np.bitwise_or.reduceat(bits[self._to], self._starts)
        return found

    def spread(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """One step of a random walk from ``shares [n_tables]``; it stays where no edge leaves."""
        import numpy as np

        kept: NDArray[np.float64] = shares * self._alone
        if len(self._joined):
            # Edges go both ways: what a table is sent is what its neighbours share out.
            sent = (shares * self._part)[self._to]
            kept[self._joined] += np.add.reduceat(sent, self._starts)
        return kept
