"""The tables that an answer may use, as the user says (``--tables``, ``--exclude``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.types import Table, TableRef


@dataclass(frozen=True, slots=True)
class Allowed:
    """``only`` these tables (empty: any), and none of ``excluded``.

    Every stage keeps to it: what was learned, the joins on the way, and the guard, for
    which other tables do not exist.
    """

    only: tuple[TableRef, ...] = ()
    excluded: frozenset[TableRef] = frozenset()

    def __contains__(self, ref: object) -> bool:
        return ref not in self.excluded and (not self.only or ref in self.only)

    @property
    def limited(self) -> bool:
        """Whether there is a table that may not be used."""
        return bool(self.only or self.excluded)

    def tables(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Those of ``tables`` that may be used; the same object where there is no limit."""
        if not self.limited:
            return tables
        return tuple(table for table in tables if table.ref in self)

    def joins(self, graph: JoinGraph) -> JoinGraph:
        """The joins between tables that may be used; the same object where there is no limit."""
        return _Within(graph, self) if self.limited else graph


EVERYTHING = Allowed()


class _Within(JoinGraph):
    """Another graph without the tables that may not be used; nothing of it is copied."""

    def __init__(self, graph: JoinGraph, allowed: Allowed) -> None:
        super().__init__(())
        self._graph = graph
        self._allowed = allowed

    @property
    def edges(self) -> tuple[JoinEdge, ...]:
        """All edges, as :meth:`JoinGraph.edges`."""
        allowed = self._allowed
        return tuple(e for e in self._graph.edges if e.left in allowed and e.right in allowed)

    def neighbours(self, ref: TableRef) -> frozenset[TableRef]:
        """Tables that join ``ref`` directly, itself left out."""
        if ref not in self._allowed:
            return frozenset()
        return frozenset(other for other in self._graph.neighbours(ref) if other in self._allowed)

    def between(self, a: TableRef, b: TableRef) -> tuple[JoinEdge, ...]:
        """The edges of two tables, in either direction; of a table with itself if equal."""
        return self._graph.between(a, b) if a in self._allowed and b in self._allowed else ()
