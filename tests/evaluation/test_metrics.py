from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.evaluation.metrics import (
    ANSWER_METRICS,
    EX,
    OVERLAPS,
    CompleteRecall,
    Recall,
    cell_overlap,
    column_overlap,
    complete_recall_at_k,
    execution_match,
    recall_at_k,
    retrieval_metrics,
    row_overlap,
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
    assert keys[:6] == ["EX", "TableEM", "TableEM-values", "RowP", "RowR", "RowF1"]
    assert keys[6:9] == ["ColumnP", "ColumnR", "ColumnF1"]
    assert keys[9:12] == ["ColumnP-values", "ColumnR-values", "ColumnF1-values"]
    assert keys[12:] == ["CellP", "CellR", "CellF1"]
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


GOLD = T(["City", "n"], [["Rome", 1], ["Oslo", 2], ["Oslo", 2]])
# The columns turned, one row less, one number wrong, another name.
PREDICTED = T(["count", "city"], [[1, "rome "], [3, "OSLO"]])


@pytest.mark.parametrize(
    ("predicted", "gold", "keys"),
    [
        # rows: (1, rome), (3, oslo) against (rome, 1), (oslo, 2) twice: nothing in common.
        # cells: 1, rome, oslo of 4 predicted; of the gold 6 (rome 1 oslo 2 oslo 2).
        # columns: of different lengths, none in common.
        (PREDICTED, GOLD, {"RowP": 0, "RowF1": 0, "CellP": 3 / 4, "CellR": 3 / 6, "ColumnF1": 0}),
        (PREDICTED, GOLD, {"CellF1": 2 * 3 / (4 + 6)}),
        # The right columns in another order: names and values agree.
        (
            T(["N", "city"], [[1, "Rome"], [2, "Oslo"], [2, "Oslo"]]),
            GOLD,
            {"RowF1": 0, "ColumnP": 1, "ColumnR": 1, "ColumnF1-values": 1, "CellF1": 1},
        ),
        # One of two names is another.
        (
            T(["city", "count(*)"], GOLD.rows),
            GOLD,
            {"ColumnP": 1 / 2, "ColumnR": 1 / 2, "ColumnP-values": 1, "RowF1": 1},
        ),
        # A column too many: 2 of 3 predicted, all of the gold; cells 6 of 9.
        (
            T(["city", "n", "x"], [[*row, 0] for row in GOLD.rows]),
            GOLD,
            {
                "RowP": 0,
                "ColumnP": 2 / 3,
                "ColumnR": 1,
                "ColumnF1": 0.8,
                "CellP": 6 / 9,
                "CellR": 1,
                "CellF1": 0.8,
            },
        ),
        # One row of a duplicate: bags, so 2 of 3 gold rows; columns are shorter.
        (
            T(["City", "n"], GOLD.rows[:2]),
            GOLD,
            {"RowP": 1, "RowR": 2 / 3, "RowF1": 0.8, "ColumnF1": 0, "CellR": 4 / 6},
        ),
        # Rows in another order: rows and cells are right, columns are not.
        (T(GOLD.columns, GOLD.rows[::-1]), GOLD, {"RowF1": 1, "CellF1": 1, "ColumnF1": 0}),
        # A bar in a cell is no boundary.
        (T(["a"], [["x | y"]]), T(["a", "b"], [["x", "y"]]), {"CellF1": 0, "RowF1": 0}),
        # Without rows: columns are told by their names.
        (T(["a"], []), T(["A"], []), {"RowF1": 1, "ColumnF1": 1, "ColumnF1-values": 1}),
        (T(["b"], []), T(["a"], []), {"RowF1": 1, "ColumnF1": 0, "ColumnP-values": 1}),
        (T(["a"], []), T(["a"], [[1]]), {"RowP": 0, "CellR": 0, "ColumnF1": 0}),
    ],
)
def test_rows_columns_and_cells_by_hand(predicted: T, gold: T, keys: dict[str, float]) -> None:
    metrics = {str(metric): metric for metric in ANSWER_METRICS}
    found = {key: metrics[key](predicted, gold, False) for key in keys}
    assert found == pytest.approx(keys)


TABLES = st.integers(1, 3).flatmap(
    lambda width: st.builds(
        T,
        st.lists(st.sampled_from(["a", "b", "A "]), min_size=width, max_size=width),
        st.lists(st.lists(st.integers(0, 2), min_size=width, max_size=width), max_size=4),
    )
)


@given(TABLES, TABLES)
def test_overlaps_are_shares_and_mirror_each_other(a: T, b: T) -> None:
    for formula in OVERLAPS.values():
        there, back = formula(a, b), formula(b, a)
        assert (there.precision, there.recall) == (back.recall, back.precision)
        assert 0 <= there.f1 <= 1
        assert min(there.precision, there.recall) <= there.f1 + 1e-9
        assert there.f1 <= max(there.precision, there.recall) + 1e-9
        same = formula(a, a)
        assert (same.precision, same.recall, same.f1) == (1, 1, 1)
    if table_exact_match(a, b) and all(name == name.strip() for name in a.columns):
        assert column_overlap(a, b).f1 == row_overlap(a, b).f1 == cell_overlap(a, b).f1 == 1


@given(TABLES, st.randoms())
def test_what_order_does_not_change(table: T, random: Any) -> None:
    rows, places = list(table.rows), list(range(len(table.columns)))
    random.shuffle(rows)
    random.shuffle(places)
    assert row_overlap(T(table.columns, rows), table).f1 == 1
    turned = T([table.columns[i] for i in places], [[r[i] for i in places] for r in table.rows])
    assert column_overlap(turned, table).f1 == 1
    assert cell_overlap(turned, table).f1 == 1
