from __future__ import annotations

import datetime
import itertools
import random
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.evaluation.matching import same_number, same_rows

NEAR = 1 + 4e-7

cells = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, 1.0 * NEAR, 1.0 * NEAR**2, 1.0 * NEAR**4, 2.0, 1e300]),
    st.sampled_from(["", "a", "b", "1", "1.0"]),
)


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 5, max_columns: int = 4) -> list[list[Any]]:
    width = draw(st.integers(1, max_columns))
    row = st.lists(cells, min_size=width, max_size=width)
    return draw(st.lists(row, min_size=0, max_size=max_rows))


def brute(left: list[list[Any]], right: list[list[Any]], ordered: bool) -> bool:
    """The definition, tried out in full."""

    def near(x: Any, y: Any) -> bool:
        if isinstance(x, int | float) and isinstance(y, int | float):
            return same_number(float(x), float(y))
        return type(x) is type(y) and bool(x == y)

    if len(left) != len(right):
        return False
    if not left:
        return True
    if len(left[0]) != len(right[0]):
        return False
    orders = [range(len(left))] if ordered else list(itertools.permutations(range(len(left))))
    for columns in itertools.permutations(range(len(left[0]))):
        for rows in orders:
            if all(
                near(x, right[j][c])
                for row, j in zip(left, rows, strict=True)
                for x, c in zip(row, columns, strict=True)
            ):
                return True
    return False


@given(tables(), tables(), st.booleans())
def test_agrees_with_the_definition_on_any_two(
    left: list[list[Any]], right: list[list[Any]], ordered: bool
) -> None:
    assert same_rows(left, right, ordered=ordered) == brute(left, right, ordered)


@given(st.data(), tables(), st.booleans())
def test_agrees_with_the_definition_on_near_copies(
    data: st.DataObject, table: list[list[Any]], ordered: bool
) -> None:
    copy = [list(row) for row in table]
    if copy:
        for _ in range(data.draw(st.integers(0, 3))):
            i = data.draw(st.integers(0, len(copy) - 1))
            j = data.draw(st.integers(0, len(copy[0]) - 1))
            copy[i][j] = data.draw(cells)
    data.draw(st.randoms()).shuffle(copy)
    assert same_rows(table, copy, ordered=ordered) == brute(table, copy, ordered)


@given(st.data(), tables(max_rows=12, max_columns=6))
def test_any_order_of_rows_and_columns_is_the_same_bag(
    data: st.DataObject, table: list[list[Any]]
) -> None:
    width = len(table[0]) if table else 0
    columns = data.draw(st.permutations(range(width)))
    shuffled = [[row[c] for c in columns] for row in data.draw(st.permutations(table))]
    assert same_rows(table, shuffled, ordered=False)
    assert same_rows(table, [[row[c] for c in columns] for row in table], ordered=True)


@given(tables(), tables(), st.booleans())
def test_is_symmetric(left: list[list[Any]], right: list[list[Any]], ordered: bool) -> None:
    assert same_rows(left, right, ordered=ordered) == same_rows(right, left, ordered=ordered)


@given(tables())
def test_a_duplicate_row_counts(table: list[list[Any]]) -> None:
    if table:
        assert not same_rows(table, [*table, table[0]], ordered=False)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ([[1]], [[1.0]], True),
        ([[1]], [[Decimal("1.00")]], True),
        ([[True]], [[1]], True),
        ([[1]], [["1"]], False),
        ([[None]], [[None]], True),
        ([[None]], [[0]], False),
        ([[None]], [[""]], False),
        ([[0]], [[1e-12]], False),
        ([[1_000_000]], [[1_000_001]], True),
        ([[1_000_000]], [[1_000_002]], False),
        ([[1.0]], [[1.0 + 0.9e-6]], True),
        ([[1.0]], [[1.0 + 1.1e-6]], False),
        ([[-1.0]], [[1.0]], False),
        ([[float("nan")]], [[float("nan")]], True),
        ([[float("inf")]], [[float("inf")]], True),
        ([[float("inf")]], [[1e308]], False),
        ([[2**63]], [[float(2**63)]], True),
        ([[10**400]], [[10**400]], True),
        ([[10**400]], [[10**400 + 1]], False),
        ([["a"]], [["A"]], False),
        ([[datetime.date(2024, 1, 2)]], [["2024-01-02"]], True),
        ([[b"\x00\x01"]], [["AAE="]], True),
        ([[[1, 2]]], [[[1, 2]]], True),
        ([[1, 2]], [[1]], False),
        ([[1], [1], [2]], [[1], [2], [2]], False),
        # One permutation for all rows, not one for each.
        ([[1, 2], [3, 4]], [[2, 1], [3, 4]], False),
        ([[1, 2], [2, 1]], [[2, 1], [1, 2]], True),
        # Equal column bags, different rows.
        ([[0, 0], [1, 1]], [[0, 1], [1, 0]], False),
    ],
)
def test_cells_by_hand(left: list[list[Any]], right: list[list[Any]], same: bool) -> None:
    assert same_rows(left, right, ordered=False) is same


def test_no_rows_equal_no_rows_only() -> None:
    assert same_rows([], [], ordered=True)
    assert not same_rows([], [[None]], ordered=False)


def test_order_counts_only_when_asked() -> None:
    assert same_rows([[1], [2]], [[2], [1]], ordered=False)
    assert not same_rows([[1], [2]], [[2], [1]], ordered=True)


def test_a_chain_of_near_numbers_does_not_make_its_ends_equal() -> None:
    chain = [[1.6e9 + 900 * i] for i in range(50)]
    assert same_rows(chain, [[row[0] + 100] for row in chain[::-1]], ordered=False)
    # Two of the last replaced by the first: every pairing has to bridge 1,800 somewhere.
    assert not same_rows(chain, [*chain[:-2], *chain[:2]], ordered=False)
    assert not same_rows(
        [[a, "x"] for (a,) in chain],
        [[a, "x"] for (a,) in [*chain[:-2], *chain[:2]]],
        ordered=False,
    )


def test_pairs_that_sorting_would_miss_are_found() -> None:
    # Both columns in wide clusters; the first differs within the tolerance, so that
    # sorting by it puts the rows in another order on each side.
    a, b = 1.0, 1.0 + 6e-7
    filler = [[1.0 + 6e-7 * i, 1.0 + 6e-7 * j] for i in (2, 3) for j in (2, 3)]
    left = [[a, 1.0], [b, 1.0 + 18e-7], *filler]
    right = [[b, 1.0], [a, 1.0 + 18e-7], *filler]
    assert same_rows(left, right, ordered=False) is True
    assert brute(left, right, ordered=False) is True


@pytest.mark.parametrize("kind", ["text", "bits", "constant", "identity", "stamps"])
def test_twenty_columns_of_many_rows_do_not_explode(kind: str) -> None:
    rng, n, width = random.Random(0), 1_000, 20
    make = {
        "text": lambda i, c: rng.choice("abc"),
        "bits": lambda i, c: rng.randint(0, 1),
        "constant": lambda i, c: 1,
        "identity": lambda i, c: int(i % width == c),
        "stamps": lambda i, c: 1_600_000_000 + rng.randint(0, 10**6),
    }[kind]
    table = [[make(i, c) for c in range(width)] for i in range(n)]
    columns = list(range(width))
    rng.shuffle(columns)
    shuffled = [[row[c] for c in columns] for row in table]
    rng.shuffle(shuffled)
    started = time.perf_counter()
    assert same_rows(table, shuffled, ordered=False)
    shuffled[0][3] = "other"
    assert not same_rows(table, shuffled, ordered=False)
    assert time.perf_counter() - started < 20  # 20! permutations would take for ever
