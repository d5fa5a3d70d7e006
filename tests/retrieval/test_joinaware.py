from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.index.adjacency import Adjacency
from dbrag.retrieval.joinaware import (
    JOIN_RANKINGS,
    best_neighbour,
    greedy,
    group_best,
    personalised_pagerank,
)

NO_EDGES = np.zeros((0, 2), np.int32)
CHAIN = Adjacency(np.array([[0, 1], [1, 0], [1, 2], [2, 1]], np.int32), 4)
"""0 - 1 - 2, and 3 alone."""


def scores_of(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[np.ndarray, Adjacency]:
    n = draw(st.integers(1, 9))
    tables = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(tables, tables).filter(lambda pair: pair[0] != pair[1])))
    edges = sorted({*pairs, *((b, a) for a, b in pairs)})
    scores = draw(st.lists(st.floats(-9, 9, width=32), min_size=n, max_size=n))
    graph = Adjacency(np.array(edges, np.int32).reshape(len(edges), 2), n)
    return np.array(scores, np.float32), graph


def test_best_neighbour() -> None:
    scores = scores_of(3, 1, 2, 7)
    assert best_neighbour(scores, CHAIN).tolist() == [1, 3, 1, 7]  # table 3 joins nothing
    assert best_neighbour(scores, Adjacency(NO_EDGES, 4)).tolist() == scores.tolist()


def test_group_best() -> None:
    groups = np.array([0, 1, 0, -1], np.int32)
    assert group_best(scores_of(3, 1, 5, -7), groups).tolist() == [5, 1, 5, -7]
    assert group_best(scores_of(1, 2), np.array([-1, -1], np.int32)).tolist() == [1, 2]


def test_pagerank_lifts_the_table_in_between() -> None:
    part = personalised_pagerank(scores_of(5, 0, 5, 0), CHAIN)
    assert part[1] > part[3]
    assert part[1] > 0


def test_pagerank_of_one_seed_by_hand() -> None:
    # The walk from 0 over 0 - 1: p0 = 0.2 + 0.8 p1, p1 = 0.8 p0, cut after 12 steps.
    graph = Adjacency(np.array([[0, 1], [1, 0]], np.int32), 2)
    part = personalised_pagerank(scores_of(100, 0), graph)
    expected = np.array([0.2 / (1 - 0.64), 0.16 / (1 - 0.64)])
    assert np.exp(part) * 1e-3 - 1e-3 == pytest.approx(expected, abs=0.07)


def test_greedy_takes_what_joins_the_chosen_first() -> None:
    scores = scores_of(5, 3.5, 1, 4)
    order = np.argsort(-(scores + greedy(scores, CHAIN)), kind="stable")
    assert order.tolist() == [0, 1, 3, 2]  # 1 is lifted to 4.5, 2 only to 2


def test_neighbours() -> None:
    assert CHAIN.neighbours(1).tolist() == [0, 2]
    assert CHAIN.neighbours(3).tolist() == []


@given(graphs(), st.data(), st.integers(0, 4))
def test_the_walk_around_some_tables_is_that_of_the_whole_graph(
    case: tuple[np.ndarray, Adjacency], data: st.DataObject, steps: int
) -> None:
    _, graph = case
    tables = st.integers(0, graph.n_tables - 1)
    seeds = np.array(data.draw(st.lists(tables, min_size=1, unique=True)))
    start = np.zeros(graph.n_tables)
    start[seeds] = 1 / len(seeds)
    near, around = graph.around(seeds, steps)
    assert around.n_tables == len(near)
    whole, part = start, start[near]
    for _ in range(steps):
        whole, part = graph.spread(whole), around.spread(part)
    assert part == pytest.approx(whole[near])
    assert part.sum() == pytest.approx(1)


@given(graphs())
def test_a_walk_loses_nothing(case: tuple[np.ndarray, Adjacency]) -> None:
    scores, graph = case
    shares = np.exp(scores.astype(float))
    assert graph.spread(shares).sum() == pytest.approx(shares.sum())


@given(graphs())
def test_greedy_keeps_the_order_of_its_choices(case: tuple[np.ndarray, Adjacency]) -> None:
    scores, graph = case
    lift = greedy(scores, graph)
    assert (lift >= -1e-5).all()
    assert lift.max() <= 1 + 1e-5


@given(graphs(), st.sampled_from([name for name, (f, _) in JOIN_RANKINGS.items() if f]))
def test_same_scores_same_parts(case: tuple[np.ndarray, Adjacency], ranking: str) -> None:
    scores, graph = case
    part, _ = JOIN_RANKINGS[ranking]
    assert part is not None
    first, second = part(scores, graph), part(scores.copy(), graph)
    assert first.dtype == np.float32
    assert first.tolist() == second.tolist()
    assert np.isfinite(first).all()


@given(graphs(), st.lists(st.integers(0, 2**63), min_size=9, max_size=9))
def test_either_is_the_union_with_the_neighbours(
    case: tuple[np.ndarray, Adjacency], values: list[int]
) -> None:
    _, graph = case
    bits = np.array(values[: graph.n_tables], np.uint64)
    found = graph.either(bits)
    for i in range(graph.n_tables):
        expected = int(bits[i])
        for j in graph.neighbours(i):
            expected |= int(bits[j])
        assert int(found[i]) == expected
