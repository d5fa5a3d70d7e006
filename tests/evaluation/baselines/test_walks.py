"""The walk and the greedy choice on graphs small enough to reckon by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.evaluation.baselines.parameters import GreedyParameters, WalkParameters
from dbrag.evaluation.baselines.walks import greedy_order, pagerank_order, standard
from dbrag.index.adjacency import Adjacency


def graph(n: int, *pairs: tuple[int, int]) -> Adjacency:
    both = sorted([*pairs, *((j, i) for i, j in pairs)])
    return Adjacency(np.array(both, np.int32).reshape(-1, 2), n)


@given(st.lists(st.floats(-5, 5, width=32), max_size=12), st.data())
def test_both_order_all_tables(scores: list[float], data: st.DataObject) -> None:
    n = len(scores)
    possible = [(i, j) for i in range(n) for j in range(i + 1, n)]
    pairs = data.draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    for order in (pagerank_order, greedy_order):
        found = order(np.array(scores, np.float32), graph(n, *pairs))
        assert sorted(found.tolist()) == list(range(n))


def test_without_joins_the_score_decides() -> None:
    scores = np.array([0.1, 0.9, 0.5, 0.5], np.float32)
    assert pagerank_order(scores, graph(4)).tolist() == [1, 2, 3, 0]
    assert greedy_order(scores, graph(4)).tolist() == [1, 2, 3, 0]


def test_the_walk_is_the_fixed_point() -> None:
    scores = np.array([1.0, 0.2, 0.0, 0.9, -1.0], np.float32)
    parameters = WalkParameters(seeds=2, damping=0.6, sharpness=1.5, steps=200)
    order = pagerank_order(scores, graph(5, (0, 1), (1, 2), (3, 4)), parameters)
    step = np.zeros((5, 5))
    for i, j in ((0, 1), (1, 2), (3, 4)):
        step[i, j] = step[j, i] = 1
    step /= step.sum(axis=0)
    start = np.zeros(5)
    z = standard(scores)
    start[[0, 3]] = np.exp(1.5 * (z[[0, 3]] - z[0]))
    start /= start.sum()
    exact = np.linalg.solve(np.eye(5) - 0.6 * step, 0.4 * start)
    assert order.tolist() == np.argsort(-exact).tolist()


def test_a_table_between_two_likely_ones_rises() -> None:
    scores = np.array([1.0, 0.9, 0.1, 0.5, 0.4, 0.3], np.float32)
    joined = graph(6, (0, 2), (1, 2))
    assert pagerank_order(scores, joined).tolist()[:3] == [0, 2, 1]
    assert greedy_order(scores, joined, GreedyParameters(3.0)).tolist()[:3] == [0, 2, 1]
    assert greedy_order(scores, joined, GreedyParameters(0.0)).tolist()[:3] == [0, 1, 3]


def test_the_bonus_is_given_once() -> None:
    # 3 joins two chosen tables, 4 is better by more than one bonus
    scores = np.array([3.0, 2.9, 0.0, 0.0, 1.7], np.float32)
    order = greedy_order(scores, graph(5, (0, 3), (1, 3)), GreedyParameters(1.0))
    assert order.tolist().index(4) < order.tolist().index(3)


def test_only_so_many_places_are_chosen_by_joins() -> None:
    scores = np.array([1.0, 0.9, 0.8, 0.0], np.float32)
    joined = graph(4, (0, 3))
    assert greedy_order(scores, joined, GreedyParameters(9.0), depth=2).tolist() == [0, 3, 1, 2]
    assert greedy_order(scores, joined, GreedyParameters(9.0), depth=1).tolist() == [0, 1, 2, 3]


def test_scaling_leaves_unknown_scores_alone() -> None:
    found = standard(np.array([1.0, 3.0, -np.inf], np.float32))
    assert found.tolist() == pytest.approx([-1.0, 1.0, -np.inf])
    assert standard(np.array([2.0, 2.0], np.float32)).tolist() == [0.0, 0.0]
