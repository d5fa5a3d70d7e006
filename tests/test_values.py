"""Single values as JSON and text: nothing is lost, nothing is rounded."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.values import duration_text, json_value, text_value

_DURATION = re.compile(
    r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,6}))?S)?)?\Z", re.ASCII
)


def parsed(text: str) -> dt.timedelta:
    """An independent reading of an ISO 8601 duration."""
    match = _DURATION.match(text)
    assert match is not None
    assert not text.endswith(("P", "T"))
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:5])
    micro = int((match[6] or "0").ljust(6, "0"))
    value = dt.timedelta(
        days=days, hours=hours, minutes=minutes, seconds=seconds, microseconds=micro
    )
    return -value if match[1] else value


@given(st.timedeltas())
def test_durations_are_exact(value: dt.timedelta) -> None:
    assert parsed(duration_text(value)) == value
    assert json_value(value) == duration_text(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.timedelta(0), "PT0S"),
        (dt.timedelta(hours=-1), "-PT1H"),
        (dt.timedelta(days=1, seconds=7384, microseconds=500_000), "P1DT2H3M4.5S"),
        (dt.timedelta(days=-1), "-P1D"),
        (dt.timedelta(microseconds=1), "PT0.000001S"),
        (Decimal("1E+30"), "1" + "0" * 30),
        (Decimal("-1E-9"), "-0.000000001"),
        (Decimal("1.10"), "1.10"),
        (Decimal("NaN"), "NaN"),
        (Decimal("-Infinity"), "-Infinity"),
        (Decimal("1E+999999"), "1E+999999"),
        (dt.datetime(1, 1, 1, 0, 0, 0, 1), "0001-01-01T00:00:00.000001"),
        (dt.datetime(2300, 1, 1, tzinfo=dt.UTC), "2300-01-01T00:00:00+00:00"),
        (dt.time(23, 59, 59, 999_999), "23:59:59.999999"),
        (ip_address("::1"), "::1"),
        (float("inf"), "inf"),
    ],
)
def test_texts(value: object, text: str) -> None:
    assert json_value(value) == text
    assert text_value(value) == text


def test_integers_longer_than_python_prints() -> None:
    assert json_value(10**5000) == "1" + "0" * 5000


def test_the_same_rules_hold_inside() -> None:
    value = {"a": [Decimal("1E+2"), 2**60, dt.date(1900, 1, 1), b"\0", float("nan"), None, True]}
    expected = {"a": ["100", str(2**60), "1900-01-01", "AA==", "nan", None, True]}
    assert json_value(value) == expected
    assert json.loads(text_value(value)) == expected
    assert json_value({2, 1}) == [1, 2]


def test_keys_of_one_text_keep_both_values() -> None:
    assert json_value({1: "a", "1": "b"}) == [
        {"key": 1, "value": "a"},
        {"key": "1", "value": "b"},
    ]
    assert json_value({dt.date(2020, 1, 2): 1}) == {"2020-01-02": 1}


def test_truth_and_empty_texts_are_told_apart() -> None:
    assert text_value("") == ""
    assert text_value(True) == "true"
    assert text_value("true") == "true"
    assert text_value([None, ""]) == '[null, ""]'
