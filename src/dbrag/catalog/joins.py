"""Which tables join which: a graph over tables with the columns of each join."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from dbrag.types import Table, TableRef


LIKELY = 0.5
"""Confidence from which an inferred edge is rather right than wrong."""


@dataclass(frozen=True, slots=True)
class JoinEdge:
    """``left.left_columns[i] = right.right_columns[i]``; ``left`` holds the foreign key.

    ``confidence`` is the estimated probability of an inferred edge, 0..1, and 1 for one
    that is declared, by the database or the user; ``evidence`` tells people why.
    """

    left: TableRef
    left_columns: tuple[str, ...]
    right: TableRef
    right_columns: tuple[str, ...]
    declared: bool = True
    confidence: float = 1.0
    evidence: str = ""

    @property
    def percent(self) -> str:
        """The confidence for people: ``64%``, never 100% of what is inferred."""
        return f"{self.confidence if self.declared else min(self.confidence, 0.99):.0%}"

    def __str__(self) -> str:
        """``shop.orders.customer_id = shop.customers.id``."""
        pairs = zip(self.left_columns, self.right_columns, strict=True)
        return " and ".join(f"{self.left}.{a} = {self.right}.{b}" for a, b in pairs)


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
        """All edges, declared ones first, then the most confident."""
        return self._edges

    def neighbours(self, ref: TableRef) -> frozenset[TableRef]:
        """Tables that join ``ref`` directly, itself left out."""
        return self._neighbours.get(ref, frozenset())

    def between(self, a: TableRef, b: TableRef) -> tuple[JoinEdge, ...]:
        """The edges of two tables, in either direction; of a table with itself if equal."""
        return self._between.get((a, b), ())

    def sure(self, a: TableRef, b: TableRef) -> tuple[JoinEdge, ...]:
        """The declared edges of two tables, or else the inferred ones more likely right."""
        edges = self.between(a, b)
        declared = tuple(edge for edge in edges if edge.declared)
        return declared or tuple(edge for edge in edges if edge.confidence >= LIKELY)

    def path(self, refs: Iterable[TableRef]) -> tuple[JoinEdge, ...]:
        """Edges of a small tree that connects ``refs``, through other tables if need be.

        Shortest-path heuristic for Steiner trees (Takahashi and Matsuyama, 1980): the tree
        starts at one table and takes in the nearest missing one along a shortest path; at
        most twice the least length. Every start is tried. An edge is as long as two minus
        its confidence, so that declared ones are preferred. Tables that no path reaches
        stay apart: then the result is a forest.
        """
        wanted = sorted(set(refs), key=str)
        trees = [self._tree(start, wanted) for start in wanted]
        return min(
            trees,
            key=lambda edges: (sum(map(_length, edges)), [_order(e) for e in edges]),
            default=(),
        )

    def only_route(self, reached: Collection[TableRef], target: TableRef) -> list[TableRef]:
        """The shortest path from one of ``reached`` to ``target``, both ends included; empty
        if there is none or others are as short. Lengths as in :meth:`path`."""
        before: dict[TableRef, TableRef | None] = dict.fromkeys(reached)
        lengths, ways, done = dict.fromkeys(reached, 0), dict.fromkeys(reached, 1), set()
        queue = [(0, str(place), place) for place in lengths]
        heapq.heapify(queue)
        while queue:
            length, _, place = heapq.heappop(queue)
            if place == target:
                return _back(place, before) if ways[place] == 1 else []
            if place in done:
                continue
            done.add(place)
            for other in self.neighbours(place):
                total = length + _length(self.between(place, other)[0])
                if total < lengths.get(other, total + 1):
                    lengths[other], ways[other], before[other] = total, ways[place], place
                    heapq.heappush(queue, (total, str(other), other))
                elif total == lengths[other]:
                    ways[other] += ways[place]
        return []

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
        before: dict[TableRef, TableRef | None] = {}
        turn = count()  # of equal lengths the one found first
        queue: list[tuple[int, int, TableRef, TableRef | None]] = [
            (0, next(turn), place, None) for place in sorted(reached, key=str)
        ]
        while queue:
            length, _, place, origin = heapq.heappop(queue)
            if place in before:
                continue
            before[place] = origin
            if place in missing:
                return _back(place, before)
            for other in sorted(self.neighbours(place), key=str):
                if other not in before:
                    step = _length(self.between(place, other)[0])
                    heapq.heappush(queue, (length + step, next(turn), other, place))
        return []


def _length(edge: JoinEdge) -> int:
    """In thousandths, so that sums are exact."""
    return 2_000 - round(1_000 * edge.confidence)


def _back(place: TableRef, before: Mapping[TableRef, TableRef | None]) -> list[TableRef]:
    route = [place]
    while (previous := before[route[-1]]) is not None:
        route.append(previous)
    return route[::-1]


def _order(edge: JoinEdge) -> tuple[object, ...]:
    return (
        not edge.declared,
        -edge.confidence,
        str(edge.left),
        str(edge.right),
        edge.left_columns,
        edge.right_columns,
    )
