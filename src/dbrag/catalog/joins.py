"""Which tables join which: a graph over tables with the columns of each join."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dbrag.types import Table, TableRef


@dataclass(frozen=True, slots=True)
class JoinEdge:
    """``left.left_columns[i] = right.right_columns[i]``; ``left`` holds the foreign key."""

    left: TableRef
    left_columns: tuple[str, ...]
    right: TableRef
    right_columns: tuple[str, ...]
    declared: bool = True


class JoinGraph:
    """Tables as nodes, possible joins as edges; every answer is in a fixed order."""

    def __init__(self, edges: Iterable[JoinEdge]) -> None:
        unique = dict.fromkeys(edges)
        self._edges = tuple(sorted(unique, key=_order))
        between: dict[tuple[TableRef, TableRef], list[JoinEdge]] = {}
        neighbours: dict[TableRef, set[TableRef]] = {}
        for edge in self._edges:
            between.setdefault((edge.left, edge.right), []).append(edge)
            if edge.left != edge.right:
                between.setdefault((edge.right, edge.left), []).append(edge)
                neighbours.setdefault(edge.left, set()).add(edge.right)
                neighbours.setdefault(edge.right, set()).add(edge.left)
        self._between = {pair: tuple(found) for pair, found in between.items()}
        self._neighbours = {ref: frozenset(found) for ref, found in neighbours.items()}

    @classmethod
    def from_tables(cls, tables: Iterable[Table]) -> JoinGraph:
        """The graph of the declared foreign keys."""
        return cls(
            JoinEdge(table.ref, key.columns, key.target, key.target_columns)
            for table in tables
            for key in table.foreign_keys
        )

    @property
    def edges(self) -> tuple[JoinEdge, ...]:
        """All edges, declared ones before others of the same tables."""
        return self._edges

    def neighbours(self, ref: TableRef) -> frozenset[TableRef]:
        """Tables that join ``ref`` directly, itself left out."""
        return self._neighbours.get(ref, frozenset())

    def between(self, a: TableRef, b: TableRef) -> tuple[JoinEdge, ...]:
        """The edges of two tables, in either direction; of a table with itself if equal."""
        return self._between.get((a, b), ())

    def path(self, refs: Iterable[TableRef]) -> tuple[JoinEdge, ...]:
        """Edges of a small tree that connects ``refs``, through other tables if need be.

        Shortest-path heuristic for Steiner trees (Takahashi and Matsuyama, 1980): the tree
        starts at one table and takes in the nearest missing one along a shortest path; at
        most twice the fewest edges. Every start is tried. Tables that no path reaches stay
        apart: then the result is a forest.
        """
        wanted = sorted(set(refs), key=str)
        trees = [self._tree(start, wanted) for start in wanted]
        return min(trees, key=lambda edges: (len(edges), [_order(e) for e in edges]), default=())

    def _tree(self, start: TableRef, wanted: list[TableRef]) -> tuple[JoinEdge, ...]:
        reached = {start}
        missing = set(wanted) - reached
        edges: dict[JoinEdge, None] = {}
        while missing:
            route = self._route(reached, missing)
            if not route:
                # Another component: go on from there.
                reached.add(min(missing, key=str))
            for a, b in pairwise(route):
                edges[self.between(a, b)[0]] = None
            reached.update(route)
            missing -= reached
        return tuple(sorted(edges, key=_order))

    def _route(self, reached: set[TableRef], missing: set[TableRef]) -> list[TableRef]:
        """A shortest path from ``reached`` to one of ``missing``, empty if there is none."""
        before: dict[TableRef, TableRef | None] = dict.fromkeys(sorted(reached, key=str))
        queue = deque(before)
        while queue:
            place = queue.popleft()
            if place in missing:
                return _back(place, before)
            for other in sorted(self.neighbours(place), key=str):
                if other not in before:
                    before[other] = place
                    queue.append(other)
        return []


def _back(place: TableRef, before: Mapping[TableRef, TableRef | None]) -> list[TableRef]:
    route = [place]
    while (previous := before[route[-1]]) is not None:
        route.append(previous)
    return route[::-1]


def _order(edge: JoinEdge) -> tuple[object, ...]:
    return (
        not edge.declared,
        str(edge.left),
        str(edge.right),
        edge.left_columns,
        edge.right_columns,
    )
