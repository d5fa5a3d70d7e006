from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dbrag.retrieval.joinaware import best_neighbour, component_best

EDGES = np.array([[0, 1], [1, 0], [1, 2], [2, 1]], np.int32)


def test_best_neighbour() -> None:
    scores = np.array([3, 1, 2, 7], np.float32)
    assert best_neighbour(scores, EDGES).tolist() == [1, 3, 1, 7]  # table 3 joins nothing
    assert best_neighbour(scores, np.zeros((0, 2), np.int32)).tolist() == scores.tolist()


def test_component_best() -> None:
    scores = np.array([3, 1, 2, -7], np.float32)
    assert component_best(scores, np.array([0, 0, 0, 1], np.int32)).tolist() == [3, 3, 3, -7]
    assert component_best(scores[:0], np.zeros(0, np.int32)).tolist() == []


@given(st.lists(st.floats(-9, 9, width=32), min_size=4, max_size=4))
def test_bounds(values: list[float]) -> None:
    scores = np.array(values, np.float32)
    near = best_neighbour(scores, EDGES)
    around = component_best(scores, np.array([0, 0, 0, 1], np.int32))
    assert (around >= scores).all()
    assert (around >= near).all()
