from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.evaluation.reports.plot import MAX_LINES, Line, Point, line_chart, ticks

SVG = "{http://www.w3.org/2000/svg}"


def places(svg: str) -> list[list[tuple[float, float]]]:
    root = ElementTree.fromstring(svg)
    return [
        [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]  # type: ignore[misc]
        for line in root.iter(f"{SVG}polyline")
    ]


def test_points_lie_where_they_should() -> None:
    line = Line("a", (Point(10, 0.8, 0.7, 0.9), Point(5, 0.6), Point(50, 0.9)))
    (at,) = places(line_chart([line], "K", "R@5", "told"))
    xs, ys = zip(*at, strict=True)
    assert xs == tuple(sorted(xs))  # by x, whatever the order they came in
    assert (xs[1] - xs[0]) / (xs[2] - xs[0]) == pytest.approx(5 / 45, abs=0.01)
    assert ys[0] > ys[1] > ys[2]  # more is higher, and SVG counts downwards
    assert (ys[0] - ys[1]) / (ys[0] - ys[2]) == pytest.approx(2 / 3, abs=0.01)


def test_texts_are_text_and_colours_follow_the_page() -> None:
    svg = line_chart([Line("<b>&", (Point(1, 0.5),))], "x<", "y&", 'a "title"')
    root = ElementTree.fromstring(svg)
    texts = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    assert {"<b>&", "x<", "y&", "1"} <= set(texts)
    assert root.attrib["aria-label"] == 'a "title"'
    assert "prefers-color-scheme: dark" in svg
    assert "http://" not in svg.replace("http://www.w3.org/2000/svg", "")


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=9)
)
def test_everything_is_inside_the_picture(points: list[tuple[float, float, float]]) -> None:
    line = Line("a", tuple(Point(x, y, min(y, z), max(y, z)) for x, y, z in points))
    svg = line_chart([line], "x", "y", "told")
    root = ElementTree.fromstring(svg)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for x, y in places(svg)[0]:
        assert 0 < x < width
        assert 0 < y < height


def test_too_much_or_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be drawn"):
        line_chart([], "x", "y", "told")
    with pytest.raises(ValueError, match="cannot be drawn"):
        line_chart([Line("a", (Point(1, 1),))] * (MAX_LINES + 1), "x", "y", "told")


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(80, 100, [80, 85, 90, 95, 100]), (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (97.3, 98.4, [97.4,
      97.6, 97.8, 98, 98.2, 98.4])],
)  # fmt: skip
def test_ticks_are_round(low: float, high: float, found: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(found)
