"""Which chart suits which result, and that drawing it runs nothing and loads nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.interfaces.charts.choice import MAX_BARS, MAX_MARKS, Chart, chart_of
from dbrag.interfaces.charts.drawing import (
    MAX_LABEL_CHARS,
    ChartFailed,
    Drawer,
    short,
    specification,
)
from tests.interfaces.http.conftest import CITIES, Served


@pytest.fixture(scope="module")
def drawer() -> Iterator[Drawer]:
    made = Drawer()
    yield made
    made.close()


def chart(**columns: list[Any]) -> Chart | str:
    return chart_of(pa.table(columns))


def told(found: Chart | str) -> tuple[Any, ...]:
    """(kind, x, measures, series) of a chart."""
    assert isinstance(found, Chart), found
    series = found.series.name if found.series else None
    return found.kind, found.x.name, [field.name for field in found.y], series


def test_a_category_and_an_amount_are_bars() -> None:
    assert told(chart(city=["a", "b"], n=[1, 2])) == ("bar", "city", ["n"], None)
    assert told(chart(n=[1, 2], city=["a", "b"])) == ("bar", "city", ["n"], None)
    assert told(chart(open=[True, False], n=[1, 2])) == ("bar", "open", ["n"], None)
    prices = [Decimal("1.50"), Decimal("2.25")]
    assert told(chart(city=["a", None], price=prices)) == ("bar", "city", ["price"], None)


def test_two_categories_are_bars_in_colours() -> None:
    found = chart(store=["a", "a", "b", "b"], status=["x", "y", "x", "y"], n=[1, 2, 3, 4])
    assert told(found) == ("bar", "store", ["n"], "status")
    # A second name of the same things tells nothing apart.
    found = chart(store=["a", "b", "c"], city=["x", "x", "y"], n=[1, 2, 3])
    assert told(found) == ("bar", "store", ["n"], None)


def test_times_are_lines() -> None:
    days = [date(2024, 1, 1), date(2024, 1, 2)]
    assert told(chart(day=days, n=[1, 2])) == ("line", "day", ["n"], None)
    assert told(chart(month=["2024-01", "2024-02"], n=[1, 2])) == ("line", "month", ["n"], None)
    assert told(chart(year=[2023, 2024], n=[1, 2])) == ("line", "year", ["n"], None)
    found = chart(year=[2023, 2023, 2024], city=["a", "b", "a"], n=[1, 2, 3])
    assert told(found) == ("line", "year", ["n"], "city")
    found = chart(day=days, low=[1, 2], high=[3, 4], huge=[10_000, 20_000])
    assert told(found) == ("line", "day", ["low", "high"], None)
    assert isinstance(found, Chart)
    assert found.notes == ("1 more column of numbers not drawn",)


def test_a_text_that_is_no_day_is_a_category() -> None:
    assert told(chart(day=["2024-02-31", "2024-03-01"], n=[1, 2]))[0] == "bar"
    assert told(chart(code=["2024-01", "other"], n=[1, 2]))[0] == "bar"


def test_two_amounts_are_points() -> None:
    found = chart(price=[1.0, 2.0, 3.0], weight=[2.0, 1.0, 3.0])
    assert told(found) == ("point", "price", ["weight"], None)
    many = [f"p{i}" for i in range(MAX_BARS + 1)]
    amounts = list(range(MAX_BARS + 1))
    assert told(chart(name=many, price=amounts, weight=amounts))[0] == "point"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"city": ["a"], "n": [1]}, "at least two rows"),
        ({"city": [], "n": []}, "at least two rows"),
        ({"city": ["a", "b"], "name": ["c", "d"]}, "no column holds amounts"),
        ({"customer_id": [1, 2], "name": ["c", "d"]}, "no column holds amounts"),
        ({"city": ["a", "b"], "n": [None, None]}, "no column holds amounts"),
        ({"city": ["a", "a"], "n": [1, 2]}, "neither bars nor lines"),
        ({"city": [str(i) for i in range(50)], "n": list(range(50))}, "neither bars nor lines"),
        ({"city": ["a", "b"], "n": [float("nan"), 1.0]}, "neither bars nor lines"),
        ({"n": list(range(MAX_MARKS + 1))}, "rows are not drawn"),
    ],
)
def test_what_suits_no_chart_says_why(columns: dict[str, list[Any]], reason: str) -> None:
    found = chart(**columns)
    assert isinstance(found, str)
    assert reason in found


def test_missing_amounts_are_told() -> None:
    found = chart(city=["a", "b", "c"], n=[1, None, 3])
    assert isinstance(found, Chart)
    assert found.rows == (0, 2)
    assert found.notes == ("1 row without a value not drawn",)
    assert found.description() == "Bar chart of n by city: 2 rows"


def test_names_and_values_are_drawn_as_text(drawer: Drawer) -> None:
    evil = "<script>alert(1)</script>"
    table = pa.table(
        {"a.b[0]": [evil, "x\u0000\u001b\uffff", "l" * 500], "datum.x + 1": [1, -2, 3]}
    )
    found = chart_of(table)
    assert isinstance(found, Chart)
    svg = drawer.draw(specification(found, table, "light", 500))
    tree = ElementTree.fromstring(svg)
    names = {one.tag.rpartition("}")[2] for one in tree.iter()}
    assert not names & {"script", "foreignObject", "a", "image"}
    assert evil in "".join(tree.itertext())
    assert "href" not in svg.replace("xmlns:xlink", "")


@pytest.mark.parametrize("amounts", [[0.0, 0.0], [1e308, -1e308], [5e-324, 1.0], [2**60, -1]])
def test_any_amounts_are_drawn(drawer: Drawer, amounts: list[Any]) -> None:
    for columns in ({"a": ["", " "]}, {"day": [date(1, 1, 1), date(9999, 12, 31)]}):
        table = pa.table({**columns, "n": pa.array(amounts)})
        found = chart_of(table)
        assert isinstance(found, Chart)
        assert drawer.draw(specification(found, table, "light", 300)).startswith("<svg")


def test_a_library_that_ends_its_process_ends_one_drawing(drawer: Drawer) -> None:
    table = pa.table({"a": ["x", "y"], "n": [1, 2]})
    found = chart_of(table)
    assert isinstance(found, Chart)
    spec = specification(found, table, "light", 300)
    bad = {**spec, "title": "\u001b"}
    with pytest.raises(ChartFailed):
        drawer.draw(bad)
    assert drawer.draw(spec).startswith("<svg")
    with pytest.raises(ChartFailed, match="cannot be drawn"):
        drawer.draw({"mark": 7})
    remote = {**spec, "data": {"url": "http://127.0.0.1:9/secret.csv"}}
    with pytest.raises(ChartFailed):
        drawer.draw(remote)


@given(st.text())
def test_labels_are_text_of_xml(text: str) -> None:
    root = ElementTree.Element("a")
    root.text = short(text)
    assert len(root.text) <= MAX_LABEL_CHARS
    assert ElementTree.fromstring(ElementTree.tostring(root)).text == (short(text) or None)


@pytest.mark.parametrize("text", ["x" * 10_000_000, "a " * 5_000_000, "b" + " " * 5_000_000])
def test_a_label_of_a_huge_cell_is_cut(text: str) -> None:
    assert short(text) == f"{' '.join(text[:120].split())[: MAX_LABEL_CHARS - 1]}…"


def test_labels_stay_apart_where_they_are_cut() -> None:
    table = pa.table({"name": ["l" * 80 + "1", "l" * 80 + "2", None, "NULL"], "n": [1, 2, 3, 4]})
    found = chart_of(table)
    assert isinstance(found, Chart)
    values = specification(found, table, "dark", 500)["data"]["values"]
    assert len({one["f0"] for one in values}) == 4


def test_the_time_of_day_is_kept() -> None:
    table = pa.table({"at": [datetime(2024, 1, 1, 23), datetime(2024, 1, 2, 1)], "n": [1, 2]})
    found = chart_of(table)
    assert isinstance(found, Chart)
    spec = specification(found, table, "light", 500)
    assert spec["data"]["values"][0]["f0"] == "2024-01-01T23:00:00Z"
    assert spec["encoding"]["x"]["scale"] == {"type": "utc"}


CELLS = (
    st.lists(st.none() | st.integers(-(2**62), 2**62), min_size=2, max_size=4)
    | st.lists(st.none() | st.floats(), min_size=2, max_size=4)
    | st.lists(st.none() | st.text(max_size=5), min_size=2, max_size=4)
    | st.lists(st.none() | st.dates(), min_size=2, max_size=4)
    | st.lists(st.none() | st.booleans(), min_size=2, max_size=4)
    | st.lists(st.none() | st.binary(max_size=3), min_size=2, max_size=4)
)


@given(st.lists(st.tuples(st.text(max_size=4), CELLS), max_size=5))
def test_every_result_has_a_chart_or_a_reason(columns: list[tuple[str, list[Any]]]) -> None:
    rows = min((len(cells) for _, cells in columns), default=0)
    arrays = [pa.array(cells[:rows]) for _, cells in columns]
    table = pa.Table.from_arrays(arrays, names=[name for name, _ in columns])
    found = chart_of(table)
    if isinstance(found, str):
        assert found
    else:
        spec = specification(found, table, "light", 400)
        assert len(spec["data"]["values"]) == len(found.rows) >= 2


def test_the_endpoint(served: Served) -> None:
    answer = served.post("/sql", {"sql": CITIES.sql}).json()
    drawn = served.get(f"/results/{answer['id']}/chart", params={"theme": "dark"}).json()
    assert drawn["kind"] == "bar"
    assert drawn["description"] == "Bar chart of COUNT(*) by city: 12 rows"
    assert drawn["svg"].startswith("<svg")
    assert len(drawn["vega_lite"]["data"]["values"]) == 12
    names = served.post("/sql", {"sql": "SELECT name, email FROM customers"}).json()
    none = served.get(f"/results/{names['id']}/chart").json()
    assert (none["kind"], none["svg"], none["reason"]) == (None, None, "no column holds amounts")
    assert served.get("/results/nothing-here/chart").status_code == 404
    wrong = served.get(f"/results/{answer['id']}/chart", params={"width": 9})
    assert wrong.status_code == 422
