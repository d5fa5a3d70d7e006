from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.evaluation.metrics import (
    ANSWER_METRICS,
    EX,
    CompleteRecall,
    Recall,
    complete_recall_at_k,
    execution_match,
    recall_at_k,
    retrieval_metrics,
    row_f1,
    table_exact_match,
)


@dataclass
class T:
    columns: list[str]
    rows: list[list[Any]]


@pytest.mark.parametrize(
    ("gold", "ranked", "k", "recall", "complete"),
    [
        (["a"], ["a", "b"], 1, 1.0, 1.0),
        (["a"], ["b", "a"], 1, 0.0, 0.0),
        (["a", "b"], ["b", "c", "a"], 2, 0.5, 0.0),
        (["a", "b"], ["b", "c", "a"], 3, 1.0, 1.0),
        (["a", "b", "c"], ["c"], 5, 1 / 3, 0.0),
        (["a", "a"], ["a"], 1, 1.0, 1.0),
        (["a", "b"], ["a", "a", "b"], 2, 0.5, 0.0),
        (["a"], [], 5, 0.0, 0.0),
    ],
)
def test_recall_by_hand(
    gold: list[str], ranked: list[str], k: int, recall: float, complete: float
) -> None:
    assert recall_at_k(gold, ranked, k) == pytest.approx(recall)
    assert complete_recall_at_k(gold, ranked, k) == complete


def test_recall_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="gold"):
        recall_at_k([], ["a"], 5)


@given(st.sets(st.integers(0, 9), min_size=1), st.permutations(range(10)), st.integers(1, 9))
def test_recall_grows_with_k(gold: set[int], ranked: list[int], k: int) -> None:
    less, more = recall_at_k(gold, ranked, k), recall_at_k(gold, ranked, k + 1)
    assert 0 <= less <= more <= 1
    assert recall_at_k(gold, ranked, 10) == 1
    assert complete_recall_at_k(gold, ranked, k) == (less == 1)


def test_a_metric_prints_as_its_key() -> None:
    assert [str(m) for m in (Recall(5), CompleteRecall(15), EX)] == ["R@5", "CR@15", "EX"]
    keys = [str(m) for m in ANSWER_METRICS]
    assert keys == ["EX", "TableEM", "TableEM-values", "RowF1"]
    assert [str(m) for m in retrieval_metrics(5)] == ["R@1", "R@5", "CR@5"]
    assert {"R@5", "CR@5", "R@50", "CR@50"} <= {str(m) for m in retrieval_metrics(50)}
    assert str(retrieval_metrics(7)[-1]) == "CR@7"


def test_execution_match_ignores_names_and_column_order() -> None:
    gold = T(["name", "n"], [["x", 1], ["y", 2]])
    assert EX(T(["a", "b"], [[2.0, "y"], [1, "x"]]), gold, False) == 1.0
    assert EX(T(["a", "b"], [[2.0, "y"], [1, "x"]]), gold, True) == 0.0
    assert not execution_match([["x", 1]], gold.rows, ordered=False)


def test_table_exact_match_by_hand() -> None:
    gold = T(["Name", "n"], [["X", 1], [None, 2.5]])
    assert table_exact_match(T(["name", "N"], [["x", 1], [None, 2.5]]), gold)
    assert not table_exact_match(T(["who", "n"], [["x", 1], [None, 2.5]]), gold)
    assert table_exact_match(T(["who", "n"], [["x", 1], [None, 2.5]]), gold, names=False)
    assert not table_exact_match(T(["name", "n"], [[None, 2.5], ["x", 1]]), gold)
    assert not table_exact_match(T(["name", "n"], [["x", 1.0], [None, 2.5]]), gold)


def test_row_f1_by_hand() -> None:
    assert row_f1([["a"], ["b"]], [["a"], ["c"], ["A"]]) == pytest.approx(2 * 1 / 5)
    assert row_f1([["a"], ["a"]], [["a"]]) == pytest.approx(2 / 3)
    assert row_f1([], []) == 1
    assert row_f1([], [["a"]]) == 0
    assert row_f1([["a", "b"]], [["b", "a"]]) == 0


@given(st.lists(st.tuples(st.integers(0, 2)), max_size=6), st.lists(st.tuples(st.integers(0, 2))))
def test_row_f1_is_symmetric_and_one_only_for_equal_bags(
    a: list[tuple[int]], b: list[tuple[int]]
) -> None:
    assert row_f1(a, b) == row_f1(b, a)
    assert 0 <= row_f1(a, b) <= 1
    assert (row_f1(a, b) == 1) == (sorted(a) == sorted(b))
