"""How texts of a column are written: recognised where it is so, and only there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.catalog.formats import ColumnFormat, column_format, same_value, visible
from dbrag.catalog.profile import _profile
from dbrag.catalog.written import date_forms, number_in
from dbrag.types import Column

DATES: dict[str, Callable[[date], str]] = {
    "YYYY-MM-DD": lambda d: d.isoformat(),
    "DD.MM.YYYY": lambda d: f"{d.day:02d}.{d.month:02d}.{d.year}",
    "DD/MM/YYYY": lambda d: f"{d.day:02d}/{d.month:02d}/{d.year}",
    "MM/DD/YYYY": lambda d: f"{d.month:02d}/{d.day:02d}/{d.year}",
    "M/D/YY": lambda d: f"{d.month}/{d.day}/{d.year % 100:02d}",
    "Month D, YYYY": lambda d: f"{d:%B} {d.day}, {d.year}",
    "D-Mon-YY": lambda d: f"{d.day}-{d:%b}-{d:%y}",
    "D Month YYYY": lambda d: f"{d.day} {d:%B} {d.year}",
    "YYYY/MM/DD": lambda d: f"{d:%Y/%m/%d}",
}
days = st.dates(date(1950, 1, 1), date(2049, 12, 31))
# By one of these the order of day and month is sure, that there are single digits, and
# that months are not cut.
SURE = (date(2024, 9, 25), date(2023, 1, 2))
words = st.text(st.characters(categories=["L", "N", "P", "Z"]), max_size=30)


def of(values: Sequence[object], type_: str = "TEXT") -> ColumnFormat:
    return column_format(Column("x", type_), _profile("x", values))


@pytest.mark.parametrize("form", DATES)
@given(dates=st.lists(days, max_size=8))
def test_a_form_of_dates(form: str, dates: list[date]) -> None:
    texts = [DATES[form](d) for d in (*SURE, *dates)]
    assert date_forms(texts) == [(form, len(texts))]
    assert date_forms([f"{text} 23:59:01" for text in texts]) == [(form, len(texts))]


@given(st.lists(st.tuples(days, st.sampled_from(["YYYY-MM-DD", "Month D, YYYY"])), min_size=3))
def test_several_forms_of_dates(typed: list[tuple[date, str]]) -> None:
    texts = [DATES[form](d) for d, form in typed]
    forms = dict(date_forms(texts))
    assert sum(forms.values()) == len(texts)
    assert {name.replace("Mon ", "Month ") for name in forms} == {form for _, form in typed}


@pytest.mark.parametrize(
    ("texts", "forms"),
    [
        (["01/02/2024"], ["DD/MM/YYYY or MM/DD/YYYY"]),
        (["13/02/2024", "02/13/2024"], ["DD/MM/YYYY or MM/DD/YYYY"]),
        (["01.02.2024"], ["DD.MM.YYYY"]),
        (["2024-13-01", "32.01.2024", "13/13/2024", "10-5-01", "1.2.3", "Foo 3, 2024"], []),
        (["2024-1-5", "2024-10-15"], ["YYYY-M-D"]),
    ],
)
def test_doubtful_dates(texts: list[str], forms: list[str]) -> None:
    assert [name for name, _ in date_forms(texts)] == forms


@given(st.integers(0, 10**9).map(lambda cents: Decimal(cents) / 100))
def test_a_number_is_read_however_it_is_written(value: Decimal) -> None:
    english = f"{value:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    for text in (english, german, f"€{english}", f"$ {english}", f"{german} €", f"-{english}"):
        number = number_in(text)
        assert number is not None
        assert abs(number.value) == value, text
        assert (number.value < 0) == (text[0] == "-" and value > 0)
    for text, unit in ((f"{value:.2f} kg", "kg"), (f"{value:.2f}km/h", "km/h")):
        number = number_in(text)
        assert number is not None
        assert (number.value, number.unit, number.prefix) == (value, unit, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "kg",
        "12 Main Street",
        "3rd",
        "1,2,3",
        "1.2.3",
        "$5 €",
        "555-1234",
        "1,23,456",
        "-+1",
    ],
)
def test_no_number(text: str) -> None:
    assert number_in(text) is None


@given(st.lists(words))
def test_any_text_has_some_format_and_always_the_same(values: list[str]) -> None:
    for type_ in ("TEXT", "", "INTEGER", "DATE"):
        found = of(values, type_)
        column_format.cache_clear()
        assert of(values, type_) == found
        assert (found.in_words() == "") == (
            not (found.dates or found.numbers or found.unknown or found.flags)
            and not (found.spellings or found.blanks)
        )
    for value in values:
        assert same_value(same_value(value)) == same_value(value)
        assert same_value(f"  {value.strip()} ") == same_value(value.strip())


@given(
    st.one_of(
        st.lists(days.map(str), min_size=1),
        st.lists(st.integers().map(str), min_size=1),
        st.lists(st.from_regex(r"[A-Z][0-9]{4}", fullmatch=True), min_size=1),
        st.lists(st.sampled_from(["Ann", "Bob Smith", "C. Doe", "42nd Street", "3 Sisters"])),
        st.lists(st.sampled_from(["Y", "N"])),
    )
)
def test_clean_columns_have_nothing_to_tell(values: list[str]) -> None:
    assert of(values).in_words() == ""


def test_what_is_told() -> None:
    assert of(["05.03.2024", "25.12.2023", "2024-01-05", "N/A"]).in_words() == (
        "dates as DD.MM.YYYY and YYYY-MM-DD; 'N/A' for unknown"
    )
    prices = of(["€1,234.50", "1.234,50 €", "12.5", "-", "9.90"])
    assert prices.in_words() == "numbers like '€1,234.50', '1.234,50 €'; '-' for unknown"
    assert (prices.prefix, prices.unsorted) == (False, True)
    weights = of(["12 kg", "800 g", "3kg", "1 KG"])
    assert (weights.units, weights.prefix, weights.unsorted) == (("kg", "g"), True, True)
    assert of(["yes", "Y", "1", "no", "0"]).in_words() == (
        "yes and no as 'yes', 'Y', '1', 'no', '0'"
    )
    cities = of(["Zürich", "zurich ", "Bern", "ZURICH", "Basel", "Zug"])
    assert cities.in_words() == "one value as 'Zürich', 'zurich ', 'ZURICH'"
    assert of(["a", "b ", "c"]).in_words() == "blanks around some values"
    assert of(["a", "b", ""]).in_words() == "'' for unknown"


def test_plain_numbers_are_told_of_only_where_they_sort_otherwise_as_text() -> None:
    assert of(["9", "10", "100"]).unsorted
    assert of(["9", "10", "100"]).in_words() == ""
    assert not of(["11", "10", "12"]).unsorted
    assert not of(["0012", "0100", "0003"]).unsorted  # codes
    assert not of(["9", "10", "100"], "INTEGER").unsorted
    assert of(["9", "1,000", "100", "2,000", "3,000"], "INTEGER").unsorted  # SQLite keeps texts


@pytest.mark.parametrize("type_", ["enum('Paris','paris')", "CITEXT"])
def test_types_that_settle_spellings_themselves(type_: str) -> None:
    assert of(["Paris", "paris", "Rome"], type_).in_words() == ""


def test_prose_and_few_values_say_nothing() -> None:
    assert of(["05.03.2024", "25.12.2023", "x" * 61]).in_words() == ""
    assert of(["05.03.2024", "25.12.2023"]).in_words() == ""
    assert of(["05.03.2024", "25.12.2023", "26.12.2023", "Easter"]).dates == ()
    assert of([]).in_words() == ""


def test_what_a_profile_shows() -> None:
    profile = _profile("x", ["b", "b", "a", None, *(f"v{i:02d}" for i in range(30))])
    seen = visible(profile)
    assert seen["b"] == 2
    assert seen["v29"] is None  # the greatest, not counted
    assert len(seen) <= 17
