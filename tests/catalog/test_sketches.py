"""Sketches of columns: equal values have equal hashes, and shares of them are estimated well."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.catalog.sketches import (
    KEY_HASHES,
    LONGEST_KEY,
    SAMPLE_HASHES,
    ColumnSketch,
    containment,
    containment_in_table,
    has_telling_values,
    sketch_column,
    sketch_columns,
)

cells = st.one_of(st.none(), st.integers(-(2**70), 2**70), st.text(max_size=12))


def of(values: Any) -> ColumnSketch:
    return sketch_column("c", list(values))


def same(a: ColumnSketch, b: ColumnSketch) -> bool:
    names = ("kind", "rows", "nulls", "distinct", "minimum", "maximum", "complete")
    equal = all(getattr(a, name) == getattr(b, name) for name in names)
    return equal and bool(np.array_equal(a.hashes, b.hashes))


@given(st.lists(cells, max_size=60), st.randoms())
def test_the_order_of_rows_is_of_no_account(values: list[Any], shuffle: random.Random) -> None:
    shuffled = list(values)
    shuffle.shuffle(shuffled)
    assert same(of(values), of(shuffled))


@given(st.lists(cells, max_size=60))
def test_hashes_are_sorted_and_differ(values: list[Any]) -> None:
    hashes = of(values).hashes.astype(np.int64)
    assert (np.diff(hashes) > 0).all()


@given(
    st.lists(st.one_of(st.text(max_size=8), st.integers(-(2**70), 2**70)), max_size=20),
    st.lists(st.one_of(st.text("ab1-é\n\ud800 ", max_size=4), st.integers(-9, 9)), max_size=20),
)
def test_a_value_has_one_hash_whatever_stands_beside_it(one: list[Any], other: list[Any]) -> None:
    """Plain and accented texts, small and huge numbers are hashed in different ways."""
    together = of([*one, *other])
    alone = {h for values in (one, other) for v in values for h in of([v]).hashes.tolist()}
    assert together.hashes.tolist() == sorted(alone)


def test_hashes_stay_as_they_are_stored() -> None:
    """Indexes hold them: another way of hashing would make joins vanish until all is read."""
    assert of([1, -5, 2**70]).hashes.tolist() == [380750761, 2433363436, 3092873003]
    assert of(["a", "é", "x-1", ""]).hashes.tolist() == [
        885080702,
        1596572330,
        1847857643,
        3280043009,
    ]


@given(st.sets(st.integers(-(2**52), 2**52), min_size=1, max_size=30))
def test_whole_numbers_are_equal_in_every_type(numbers: set[int]) -> None:
    whole = of(numbers)
    assert whole.kind == "integer"
    for other in (map(float, numbers), map(Decimal, numbers), map(str, numbers)):
        sketch = of(other)
        assert sketch.kind == "integer"
        assert np.array_equal(sketch.hashes, whole.hashes)
        assert (sketch.minimum, sketch.maximum) == (min(numbers), max(numbers))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], "integer"),
        (["1", "2"], "integer"),
        (["01", "2"], "text"),  # a code with leading zeros is no number
        (["1", "a"], "text"),
        ([1, "a"], "text"),
        ([date(2024, 1, 1)], "date"),
        ([1.5, 2.0], "other"),
        ([float("nan"), 1.0], "other"),
        ([float("inf")], "other"),
        ([Decimal("1e500")], "other"),
        ([Decimal("sNaN")], "other"),
        ([True, False], "other"),
        ([b"x"], "other"),
        ([["list"]], "other"),
        (["x" * (LONGEST_KEY + 1)], "other"),
        ([UUID(int=1)], "text"),
        ([None], "other"),
        ([], "other"),
        (["", " "], "text"),
        (["\ud800"], "text"),  # no valid text, and yet in some database
    ],
)
def test_kinds(values: list[Any], kind: str) -> None:
    assert of(values).kind == kind


def test_texts_are_compared_without_blanks_around_them() -> None:
    assert containment(of(["ANC ", " LAX"]), of(["ANC", "LAX", "JFK"])) == 1
    assert containment(of(["anc"]), of(["ANC"])) == 0


def test_midnight_is_a_date() -> None:
    assert containment(of([datetime(2024, 5, 1)]), of([date(2024, 5, 1)])) == 1


def test_unique() -> None:
    assert of([1, 2, 3]).unique
    assert not of([1, 2, 2]).unique
    assert not of([1, 2, None]).unique
    assert not of([]).unique


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0])
def test_the_estimate_is_near_the_truth(share: float) -> None:
    chance = random.Random(7)
    key = of(range(100_000))
    inside = chance.sample(range(100_000), int(20_000 * share))
    values = [*inside, *range(200_000, 220_000 - len(inside))] * 2
    sketch = of(values)
    assert len(sketch.hashes) == SAMPLE_HASHES
    assert not sketch.complete
    assert containment(sketch, key) == pytest.approx(share, abs=0.05)


def test_keys_too_many_to_keep_are_compared_where_both_are_known() -> None:
    key = of(f"key {i}" for i in range(KEY_HASHES + 50_000))
    assert not key.complete
    inside = of([f"key {i}" for i in range(0, 60_000, 2)] * 2)
    assert containment(inside, key) == 1
    half = of([f"{'key' if i % 2 else 'none'} {i}" for i in range(60_000)] * 2)
    assert containment(half, key) == pytest.approx(0.5, abs=0.06)


@given(st.sets(st.integers(), max_size=50), st.sets(st.integers(), min_size=1, max_size=50))
def test_small_sets_are_compared_exactly(a: set[int], b: set[int]) -> None:
    found = containment(of(a), of(b))
    assert found == (pytest.approx(len(a & b) / len(a)) if a else None)


class TestSampled:
    def test_the_part_that_was_read_is_scaled(self) -> None:
        chance = random.Random(3)
        keys = [f"customer {i}" for i in range(50_000)]
        seen = of(chance.sample(keys, 5_000))
        assert containment_in_table(of(keys[:9_000] * 2), seen, 0.1) == 1
        half = of([*keys[:4_500], *(f"other {i}" for i in range(4_500))] * 2)
        assert containment_in_table(half, seen, 0.1) == pytest.approx(0.5, abs=0.15)

    def test_counters_are_compared_by_range(self) -> None:
        seen = of(range(1, 1_000_000, 50))
        assert containment_in_table(of([5, 77, 999_999] * 2), seen, 0.02) == 1
        beyond = containment_in_table(of([1, 2_000_000] * 2), seen, 0.02)
        assert beyond == pytest.approx(0.5, abs=0.01)

    def test_counters_of_the_first_rows(self) -> None:
        seen = of(range(1, 1_001))
        assert containment_in_table(of([1, 1_500, 1_990] * 2), seen, 0.5) == 1
        beyond = containment_in_table(of([1, 4_000] * 2), seen, 0.5)
        assert beyond == pytest.approx(0.5, abs=0.01)

    def test_too_few_to_tell(self) -> None:
        seen = of(f"key {i}" for i in range(100))
        assert containment_in_table(of(["key 1", "key 2"]), seen, 0.01) is None


def test_counters_tell_nothing() -> None:
    assert not has_telling_values(of(range(1, 5_000)))
    assert not has_telling_values(of([1, 50, 199]))
    assert has_telling_values(of([10_017, 55_211, 93_400]))
    assert has_telling_values(of(["a"]))
    assert not has_telling_values(of([1.5]))


def test_an_empty_table_has_its_columns() -> None:
    assert [sketch.name for sketch in sketch_columns(["a", "b"], [])] == ["a", "b"]
