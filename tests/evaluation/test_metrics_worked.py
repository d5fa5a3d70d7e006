"""Every metric of answers on worked examples: all keys at once, counted by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from dbrag.evaluation.metrics import ANSWER_METRICS, harmonic

PARTS = ("P", "R", "F1")


@dataclass
class T:
    columns: list[str]
    rows: list[list[Any]]


GOLD = T(["Name", "Total"], [["Ada", 3], ["Bob", 2], ["Bob", 2]])


def keys(
    ex: float,
    table: tuple[float, float],
    row: tuple[float, float],
    column: tuple[float, float],
    values: tuple[float, float],
    cell: tuple[float, float],
) -> dict[str, float]:
    """All keys from EX, Table EM with and without names, and (precision, recall) of the rest."""
    found: dict[str, float] = {"EX": ex, "TableEM": table[0], "TableEM-values": table[1]}
    pairs = {"Row{}": row, "Column{}": column, "Column{}-values": values, "Cell{}": cell}
    for name, (p, r) in pairs.items():
        f1 = 2 * p * r / (p + r) if p + r else 0.0
        found |= {name.format(part): v for part, v in zip(PARTS, (p, r, f1), strict=True)}
    return found


CASES = {
    "the same, in another case": (
        T(["name", "TOTAL"], [["ADA", 3], ["bob", 2], ["Bob", 2]]),
        # EX compares text exactly, the paper's metrics in lower case.
        keys(0, (1, 1), (1, 1), (1, 1), (1, 1), (1, 1)),
    ),
    "one row of three is wrong, a name too": (
        T(["name", "n"], [["Ada", 3], ["Bob", 2], ["Cy", 1]]),
        # cells: ada 3 bob 2 of six on each side
        keys(0, (0, 0), (2 / 3, 2 / 3), (0, 0), (0, 0), (4 / 6, 4 / 6)),
    ),
    "columns turned, one of another name": (
        T(["Total", "who"], [[3, "Ada"], [2, "Bob"], [2, "Bob"]]),
        keys(1, (0, 0), (0, 0), (1 / 2, 1 / 2), (1, 1), (1, 1)),
    ),
    "rows in another order": (
        T(["Name", "Total"], [["Bob", 2], ["Ada", 3], ["Bob", 2]]),
        keys(1, (0, 0), (1, 1), (0, 0), (0, 0), (1, 1)),
    ),
    "a column is missing, and a duplicate": (
        T(["Name"], [["Ada"], ["Bob"]]),
        keys(0, (0, 0), (0, 0), (0, 0), (0, 0), (2 / 2, 2 / 6)),
    ),
    "a column too many": (
        T(["Name", "Total", "id"], [["Ada", 3, 7], ["Bob", 2, 8], ["Bob", 2, 9]]),
        keys(0, (0, 0), (0, 0), (2 / 3, 1), (2 / 3, 1), (6 / 9, 1)),
    ),
    "a row twice as often": (
        T(["Name", "Total"], [["Ada", 3], ["Bob", 2], ["Bob", 2], ["Bob", 2]]),
        keys(0, (0, 0), (3 / 4, 1), (0, 0), (0, 0), (6 / 8, 1)),
    ),
    "the same numbers, written otherwise": (
        T(["Name", "Total"], [["Ada", Decimal("3.0")], ["Bob", 2.0], ["Bob", Decimal(2)]]),
        # equal as numbers; as text "3.0" and "2.0" are others, "2" is not
        keys(1, (0, 0), (1 / 3, 1 / 3), (1 / 2, 1 / 2), (1 / 2, 1 / 2), (4 / 6, 4 / 6)),
    ),
    "nothing at all": (
        T(["Name", "Total"], []),
        keys(0, (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)),
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_all_keys_by_hand(name: str) -> None:
    predicted, expected = CASES[name]
    found = {str(metric): metric(predicted, GOLD, False) for metric in ANSWER_METRICS}
    assert found == pytest.approx(expected)
    assert set(found) == {str(metric) for metric in ANSWER_METRICS}


def test_order_counts_in_ex_alone_where_it_is_asked_for() -> None:
    turned = T(GOLD.columns, GOLD.rows[::-1])
    metrics = {str(metric): metric for metric in ANSWER_METRICS}
    assert [metrics["EX"](turned, GOLD, ordered) for ordered in (False, True)] == [1, 0]
    for key, metric in metrics.items():
        if key != "EX":
            assert metric(turned, GOLD, True) == metric(turned, GOLD, False)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        # The text of a table is `col : a | b row 1 : v | v`: what looks alike is alike.
        (T(["a", "b"], [["x", "y"]]), T(["a | b"], [["x | y"]]), 1),
        (T(["a"], [["x"], ["y"]]), T(["a"], [["x row 2 : y"]]), 1),
        (T(["a"], [[None]]), T(["a"], [["none"]]), 1),
        (T(["a"], [[date(2024, 3, 1)]]), T(["a"], [["2024-03-01"]]), 1),
        (T(["a"], []), T(["a"], []), 1),
        (T(["a"], []), T(["b"], []), 0),
        (T(["a"], [["x"]]), T(["a"], [["x "]]), 0),
    ],
)
def test_table_em_compares_texts(left: T, right: T, same: float) -> None:
    metrics = {str(metric): metric for metric in ANSWER_METRICS}
    assert metrics["TableEM"](left, right, False) == same
    assert metrics["TableEM"](right, left, False) == same


def test_the_harmonic_mean() -> None:
    assert harmonic(0, 0) == 0
    assert harmonic(1, 0) == 0
    assert harmonic(0.5, 0.25) == pytest.approx(1 / 3)
