"""The join graph of an index: read source by source, when it is asked for.

Ranking goes by the positions in ``edges.npy``; columns of joins are looked at for the
few tables that are shown.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from dbrag.catalog.joins import JoinEdge, JoinGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dbrag.types import TableRef

_KEPT = 200


class LazyJoins(JoinGraph):
    """Joins never lead from one source to another. Safe to share by threads.

    Args:
        sources: those that have any.
        read: gives the join graph of a source, empty where there is none.
    """

    def __init__(self, sources: Sequence[str], read: Callable[[str], JoinGraph]) -> None:
        super().__init__(())
        self._sources = sources
        self._read = read
        self._graphs: dict[str, JoinGraph] = {}
        self._lock = threading.Lock()

    def of(self, source: str) -> JoinGraph:
        """The graph of one source."""
        with self._lock:
            graph = self._graphs.get(source)
        if graph is None:
            graph = self._read(source)
            with self._lock:
                while len(self._graphs) >= _KEPT:
                    del self._graphs[next(iter(self._graphs))]
                self._graphs[source] = graph
        return graph

    @property
    def edges(self) -> tuple[JoinEdge, ...]:
        """All edges, as :meth:`JoinGraph.edges`; reads everything."""
        return JoinGraph(e for source in self._sources for e in self.of(source).edges).edges

    def neighbours(self, ref: TableRef) -> frozenset[TableRef]:
        """Tables that join ``ref`` directly, itself left out."""
        return self.of(ref.source).neighbours(ref)

    def between(self, a: TableRef, b: TableRef) -> tuple[JoinEdge, ...]:
        """The edges of two tables, in either direction; of a table with itself if equal."""
        return self.of(a.source).between(a, b)
