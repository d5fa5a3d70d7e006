"""The graph of joins."""

from __future__ import annotations

import random

import pytest

from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.types import Column, ForeignKey, Table, TableRef


def ref(name: str) -> TableRef:
    return TableRef("db", None, name)


def table(name: str, *keys: ForeignKey) -> Table:
    return Table(ref(name), (Column("id"),), foreign_keys=keys)


def key(target: str, column: str = "") -> ForeignKey:
    return ForeignKey((column or f"{target}_id",), ref(target), ("id",))


def shop() -> JoinGraph:
    """line → order → customer → city ← store; line → product; staff → staff; alone."""
    return JoinGraph.from_tables(
        [
            table("line", key("order"), key("product")),
            table("order", key("customer")),
            table("customer", key("city")),
            table("store", key("city")),
            table("staff", key("staff", "boss")),
            table("city"),
            table("product"),
            table("alone"),
        ]
    )


def names(edges: tuple[JoinEdge, ...]) -> list[str]:
    return [f"{edge.left.name}-{edge.right.name}" for edge in edges]


def test_edges_come_from_declared_keys() -> None:
    graph = shop()
    assert len(graph.edges) == 6
    assert JoinEdge(ref("line"), ("order_id",), ref("order"), ("id",), True) in graph.edges
    assert graph.edges == JoinGraph(reversed(graph.edges)).edges


def test_neighbours_in_both_directions() -> None:
    graph = shop()
    assert graph.neighbours(ref("order")) == {ref("line"), ref("customer")}
    assert graph.neighbours(ref("city")) == {ref("customer"), ref("store")}
    assert graph.neighbours(ref("staff")) == frozenset()
    assert graph.neighbours(ref("nowhere")) == frozenset()


def test_between_two_tables() -> None:
    graph = shop()
    assert graph.between(ref("order"), ref("line")) == graph.between(ref("line"), ref("order"))
    assert names(graph.between(ref("order"), ref("line"))) == ["line-order"]
    assert names(graph.between(ref("staff"), ref("staff"))) == ["staff-staff"]
    assert graph.between(ref("order"), ref("city")) == ()


def test_several_keys_between_two_tables_are_all_there() -> None:
    graph = JoinGraph.from_tables([table("trip", key("city", "start"), key("city", "end"))])
    assert [e.left_columns for e in graph.between(ref("city"), ref("trip"))] == [
        ("end",),
        ("start",),
    ]
    assert len(graph.path([ref("city"), ref("trip")])) == 1


def test_declared_edges_come_before_inferred_ones() -> None:
    inferred = JoinEdge(ref("a"), ("a_id",), ref("b"), ("id",), declared=False)
    declared = JoinEdge(ref("b"), ("z",), ref("a"), ("z",))
    graph = JoinGraph([inferred, declared, inferred])
    assert graph.between(ref("a"), ref("b")) == (declared, inferred)
    assert graph.path([ref("a"), ref("b")]) == (declared,)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], []),
        (["line"], []),
        (["line", "order"], ["line-order"]),
        (["line", "customer"], ["line-order", "order-customer"]),
        (
            ["store", "product"],
            ["customer-city", "line-order", "line-product", "order-customer", "store-city"],
        ),
        (["line", "product", "customer"], ["line-order", "line-product", "order-customer"]),
        (["line", "order", "alone"], ["line-order"]),
        (["alone", "staff"], []),
        (["nowhere", "line", "order"], ["line-order"]),
    ],
)
def test_paths(wanted: list[str], expected: list[str]) -> None:
    graph = shop()
    assert sorted(names(graph.path(map(ref, wanted)))) == expected
    assert graph.path(map(ref, reversed(wanted))) == graph.path(map(ref, wanted))


def test_a_path_is_a_tree_that_connects_and_does_not_depend_on_the_order_of_edges() -> None:
    shuffle = random.Random(0)
    for _ in range(30):
        count = shuffle.randint(2, 12)
        edges = [
            JoinEdge(ref(f"t{i}"), ("a",), ref(f"t{shuffle.randrange(i)}"), ("b",))
            for i in range(1, count)
        ]
        extra = [
            JoinEdge(
                ref(f"t{shuffle.randrange(count)}"),
                ("c",),
                ref(f"t{shuffle.randrange(count)}"),
                ("d",),
            )
            for _ in range(count)
        ]
        wanted = [ref(f"t{shuffle.randrange(count)}") for _ in range(3)]
        path = JoinGraph(edges + extra).path(wanted)
        mixed = edges + extra
        shuffle.shuffle(mixed)
        assert JoinGraph(mixed).path(wanted) == path
        nodes = {node for edge in path for node in (edge.left, edge.right)} | set(wanted)
        assert len(path) == len(nodes) - 1
        reached = {wanted[0]}
        for _ in path:
            for edge in path:
                if reached & {edge.left, edge.right}:
                    reached |= {edge.left, edge.right}
        assert set(wanted) <= reached


def test_a_path_prefers_certain_edges() -> None:
    def weak(a: str, b: str, confidence: float) -> JoinEdge:
        return JoinEdge(ref(a), ("x",), ref(b), ("y",), False, confidence)

    direct = weak("a", "c", 0.9)
    detour = [
        JoinEdge(ref("a"), ("k",), ref("b"), ("k",)),
        JoinEdge(ref("b"), ("k",), ref("c"), ("k",)),
    ]
    assert JoinGraph([direct, *detour]).path([ref("a"), ref("c")]) == (direct,)
    two = [weak("a", "m", 0.3), weak("m", "c", 0.3), weak("a", "n", 0.8), weak("n", "c", 0.8)]
    assert names(JoinGraph(two).path([ref("a"), ref("c")])) == names((two[2], two[3]))
    doubtful, certain = weak("a", "b", 0.3), weak("a", "b", 0.8)
    assert JoinGraph([doubtful, certain]).path([ref("a"), ref("b")]) == (certain,)


def test_what_is_inferred_is_never_certain() -> None:
    assert JoinEdge(ref("a"), ("x",), ref("b"), ("y",), False, 0.999).percent == "99%"
    assert JoinEdge(ref("a"), ("x",), ref("b"), ("y",)).percent == "100%"


def test_an_edge_as_text() -> None:
    edge = JoinEdge(ref("a"), ("x", "y"), ref("b"), ("u", "v"))
    assert str(edge) == f"{ref('a')}.x = {ref('b')}.u and {ref('a')}.y = {ref('b')}.v"


def test_the_only_shortest_route() -> None:
    graph = shop()
    assert [place.name for place in graph.only_route({ref("line")}, ref("city"))] == [
        *("line", "order", "customer", "city")
    ]
    assert graph.only_route({ref("city"), ref("order")}, ref("customer")) == []  # from either
    assert graph.only_route({ref("line")}, ref("alone")) == []
    assert graph.only_route({ref("alone")}, ref("alone")) == [ref("alone")]


def test_two_routes_as_short_as_each_other_are_none() -> None:
    graph = JoinGraph.from_tables(
        [table("a", key("b"), key("c")), table("b", key("d")), table("c", key("d")), table("d")]
    )
    assert graph.only_route({ref("a")}, ref("d")) == []
    assert graph.only_route({ref("a"), ref("b")}, ref("d")) == [ref("b"), ref("d")]
