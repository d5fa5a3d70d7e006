"""Profiles of columns with values of any kinds, mixed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dbrag.catalog.profile import _profile

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes(timezones=st.one_of(st.none(), st.just(dt.UTC))),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@given(st.lists(CELLS, max_size=12))
def test_any_mixture(values: list[Any]) -> None:
    profile = _profile("c", values)
    assert profile.nulls == sum(value is None for value in values)
    assert profile.distinct <= len(values) - profile.nulls
    assert len(profile.samples) == min(5, profile.distinct)
    assert sum(n for _, n in profile.frequent) <= len(values)


def test_nan_has_no_place_in_an_order() -> None:
    nan = float("nan")
    profile = _profile("c", [nan, 3.0, nan, -1.0])
    assert (profile.minimum, profile.maximum) == ("-1.0", "3.0")
    profile = _profile("c", [Decimal("NaN"), Decimal("2.50"), Decimal("10")])
    assert (profile.minimum, profile.maximum) == ("2.50", "10")
    assert _profile("c", [nan]).minimum is None


def test_lists_count_as_their_text_and_null_stays_null() -> None:
    profile = _profile("c", [[1], None, [1], [2]])
    assert (profile.nulls, profile.distinct) == (1, 2)
    assert profile.frequent == (("[1]", 2), ("[2]", 1))


def test_times_with_and_without_zone() -> None:
    day = dt.datetime(2024, 1, 5, 12)
    profile = _profile("c", [day, day.replace(tzinfo=dt.UTC), dt.date(2024, 1, 6)])
    assert profile.minimum == "2024-01-05 12:00:00"
    assert profile.maximum == "2024-01-06"
