"""What a notebook shows of each kind of result, and that none of it can act."""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.display import StatusReport
from dbrag.errors import UsageError
from dbrag.interfaces.charts import drawing
from dbrag.interfaces.charts.drawing import ChartFailed, Drawer
from dbrag.interfaces.notebook import html_of, lines_of, markup, picture
from dbrag.types import (
    Answer,
    AnswerWarning,
    Candidate,
    Execution,
    IndexReport,
    Program,
    Reading,
    ResultColumn,
    SearchResult,
    SourceReport,
    TableRef,
    ValueMatch,
)
from tests.interfaces.conftest import ORDERS, an_answer
from tests.interfaces.notebook.reader import read
from tests.test_types import CELLS

SCRIPT = "</td></table></div><script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
TURNED = "abc\u202egnp.exe\u2066 x\u200f"
HOSTILE = (SCRIPT, IMAGE, TURNED, "javascript:alert(1)", "\x1b[31mred\x1b[0m\x00", "\ud800half")


@pytest.fixture(autouse=True)
def _no_charts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, but where a test is about charts."""
    if "chart" not in request.node.name:
        monkeypatch.setattr(picture, "_LIBRARY", "no_such_library")


def a_result(names: list[str], *rows: tuple[Any, ...], kind: str = "string") -> Execution:
    return Execution(tuple(ResultColumn(name, kind) for name in names), rows, 0.25)


def a_reading() -> Reading:
    sql = "SELECT COUNT(*) FROM payments"
    program = Program((), sql, "sqlite", (TableRef("shop", None, "payments"),))
    difference = "reads shop.payments instead of shop.orders"
    return Reading("7", difference, program, a_result(["COUNT(*)"], (7,), kind="int64"), 2)


SPLIT = an_answer(
    text="row 0: 0, and 2 more",
    confidence=0.42,
    warnings=(AnswerWarning("votes_split", "the programs disagree: 2 of 4 each"),),
    readings=(a_reading(),),
)


def test_an_answer_with_all_it_has(snapshot: Any) -> None:
    assert SPLIT._repr_html_().replace(markup.STYLE, "STYLE").replace("><", ">\n<") == snapshot
    assert "\n".join(lines_of(SPLIT)) == snapshot
    told = read(html_of(SPLIT)).text
    assert "not sure (42%)" in told
    assert "2 of 3 programs gave this result" in told
    assert "The question can be read in more than one way" in told
    assert "the programs disagree: 2 of 4 each" in told


def test_the_first_rows_and_how_many_there_are() -> None:
    answer = an_answer(rows=1203)
    reader = read(html_of(answer))
    assert reader.seen.count("tr") == markup.MAX_ROWS + 1
    told = "20 of 1,203 rows shown; .to_pandas() and .to_arrow() give all"
    assert told in reader.text
    assert told in lines_of(answer)
    assert "row 19" in reader.cells
    assert "row 20" not in reader.cells


def test_wide_tables_say_how_many_columns_they_have() -> None:
    names = [f"c{i}" for i in range(250)]
    wide = a_result(names, tuple(range(250)))
    reader = read(html_of(wide))
    assert len(reader.cells) == 2 * markup.MAX_COLUMNS
    assert "1 row; 30 of 250 columns shown" in reader.text
    assert any("30 of 250 columns shown" in line for line in lines_of(wide))
    assert max(map(len, lines_of(wide))) <= 200


def test_huge_cells_are_cut_and_say_so() -> None:
    huge = a_result(["a", "b", "c"], ("x" * 5_000_000, b"\x00" * 4_000_000, list(range(9000))))
    page = html_of(huge)
    assert len(page) < 10_000
    cells = read(page).cells
    assert cells[3].endswith("x… 4,999,800 more characters")
    assert cells[4].endswith("A… 3,999,850 more bytes")
    assert re.search(r"… \d\d,\d{3} more characters$", cells[5])
    assert sum(map(len, lines_of(huge))) < 3000


def test_nothing_in_the_result() -> None:
    for answer in (
        an_answer(execution=a_result(["a", "b"]), text="No rows."),
        an_answer(execution=a_result([]), text="No rows."),
    ):
        assert "No rows." in read(html_of(answer)).text
        assert "0 rows" in "\n".join(lines_of(answer))
    assert "0 rows" in read(html_of(a_result(["a"]))).text


@pytest.mark.parametrize(
    ("status", "head"), [("failed", "Failed: "), ("unanswerable", "Not answered: ")]
)
def test_answers_that_are_none(status: Any, head: str) -> None:
    error = {"code": "x", "message": f"nothing is called {SCRIPT!r}", "hint": f"ask {IMAGE}"}
    answer = Answer("q?", status, "", error=error, exit_code=4)
    told = read(answer._repr_html_()).text
    assert head + f"nothing is called {SCRIPT!r}" in told
    assert f"What to do: ask {IMAGE}" in told
    lines = lines_of(answer)
    assert lines[0].startswith(f"{status}: nothing is called")
    assert lines[1] == f"what to do: ask {IMAGE}"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_and_values_are_only_text(text: str) -> None:
    table = TableRef(text, text, text)
    sql = f"SELECT '{text}' AS \"{text}\" -- {text}\n/* {text} */ FROM {text}"
    program = Program((), sql, text, (table,))
    execution = a_result([text, text], (text, None), (text, [text, {text: text}]))
    answer = Answer(
        text, "answered", text, execution, program, (table,), 0.5, 0.9, 4, 4,
        warnings=(AnswerWarning(text, text),), model=text, seconds={"total": 1.0},
        readings=(Reading(text, text, program, execution, 2),),
    )  # fmt: skip
    reader = read(html_of(answer))
    assert not {"script", "img", "a"} & set(reader.seen)
    assert markup.visible(text) in reader.cells
    candidate = Candidate(
        table, 1.0, {text: 1.0}, ({text: text},), (ValueMatch(text, text, text),), text
    )
    warned = (AnswerWarning(text, text),)
    source = {"name": text, "status": text, "reason": text, "location": text}
    status = {"index": text, "sources": [source], "warnings": [{"code": text, "message": text}]}
    shown = (
        candidate,
        SearchResult(text, (candidate,), 0.1, warned),
        IndexReport((SourceReport(text, "skipped", text),), 1.0, 1.0, 1, warned),
        StatusReport(status),
    )
    for one in (*shown, execution, answer.readings[0]):
        read(html_of(one))
    for one in (answer, *shown, execution, answer.readings[0]):
        assert all(line.isprintable() for line in lines_of(one))


@given(st.lists(st.tuples(CELLS, CELLS), max_size=4), st.text(), st.text())
def test_whatever_the_values(rows: list[tuple[Any, ...]], name: str, sql: str) -> None:
    reader = read(html_of(a_result([name, name], *rows)))
    assert len(reader.cells) == 2 * len(rows) + 2
    shown = read(markup.sql_block(sql)).text
    if all(line.isprintable() for line in sql.split("\n")):
        assert shown == sql


def test_sql_is_coloured() -> None:
    page = markup.sql_block("SELECT \"a\", 'b<' FROM t WHERE n > 1.5 -- c")
    assert '<span class="dbrag-keyword">SELECT</span>' in page
    assert '<bdi class="dbrag-string">&#x27;b&lt;&#x27;</bdi>' in page
    assert '<span class="dbrag-digits">1.5</span>' in page
    assert '<bdi class="dbrag-comment">-- c</bdi>' in page
    assert "<bdi>שם</bdi>" in markup.sql_block("SELECT שם FROM t")
    assert "… 5 more characters" in markup.sql_block("x" * (markup.MAX_SQL_CHARS + 5))


def test_null_is_no_text() -> None:
    page = html_of(a_result(["a"], (None,), ("NULL",), ("",)))
    assert '<td class="dbrag-null">NULL</td>' in page
    assert read(page).cells == ["a", "NULL", "'NULL'", ""]


def test_right_to_left_texts_are_read_so() -> None:
    page = html_of(an_answer(text="שלום עולם"))
    assert '<p dir="auto" class="dbrag-text">שלום עולם</p>' in page
    assert '<pre dir="ltr">' in page


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_are_seen_on_light_and_on_dark() -> None:
    texts = re.findall(r"editor-\w+-color, (#\w{6})", markup.STYLE)
    assert len(texts) == 3
    for colour in [*texts, *drawing._COLOURS["any"]]:
        light, dark = 1.05, luminance("#111111") + 0.05
        own = luminance(colour) + 0.05
        assert light / own >= 3, colour
        assert own / dark >= 3, colour
    assert not LOADED.search(markup.STYLE)


LOADED = re.compile(r"url\(|@import|https?:")


# ---- charts ---------------------------------------------------------------------------------


def test_a_chart_is_drawn_into_the_page_and_acts_not(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert")
    drawer = Drawer(600)  # a busy machine
    monkeypatch.setattr(picture, "_drawer", lambda: drawer)
    names = ["store", "n"]
    rows = ((SCRIPT, 1), (TURNED, 2), ("url(http://a.example/x)", 3))
    columns = (ResultColumn("store", "string"), ResultColumn("n", "int64"))
    page = html_of(Execution(columns, rows, 0.1))
    drawer.close()
    reader = read(page)
    assert "svg" in reader.seen
    assert f"Bar chart of {names[1]} by {names[0]}: 3 rows" in reader.text
    assert page.count('fill="currentColor"') >= 4
    assert "\\u202egnp.exe" in reader.text


def test_charts_in_one_notebook_keep_their_own_names() -> None:
    text = '<svg xmlns="http://www.w3.org/2000/svg"><defs><clipPath id="c1"/></defs>{}</svg>'
    inside = '<g clip-path="url(#c1)" onclick="x()" style="a"><a href="x"/><script/></g>'
    first = picture.harmless(text.format(inside), 'a "b"')
    second = picture.harmless(text.format(inside * 2), "c")
    assert read(first).seen == ["svg", "defs", "clippath", "g"]
    (name,) = re.findall(r'id="([^"]+)"', first)
    assert f'clip-path="url(#{name})"' in first
    assert name not in second
    assert 'aria-label="a &quot;b&quot;"' in first
    outside = text.format('<path fill="url(http://x)" d="M0,0"/><path fill="URL(#y)"/>')
    assert "url" not in picture.harmless(outside, "").lower()


def test_without_the_extra_there_is_no_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "_LIBRARY", "no_such_library")
    page = html_of(an_answer())
    assert "svg" not in read(page).seen


def test_a_chart_that_fails_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert")
    asked = []

    def broken(_: Drawer, spec: dict[str, Any]) -> str:
        asked.append(spec)
        raise ChartFailed("the chart could not be drawn")

    monkeypatch.setattr(Drawer, "draw", broken)
    assert "row 2" in read(html_of(an_answer())).cells
    assert asked


# ---- others ---------------------------------------------------------------------------------


def test_candidates() -> None:
    match = ValueMatch("city", "Kabul", "Kabull", "typo")
    candidate = Candidate(ORDERS, 1.5, {"text": 1.0, "rows": 0.5}, ({"city": "Kabul"},), (match,))
    result = SearchResult("where?", (candidate,), 0.1)
    assert read(html_of(result)).cells[4:7] == ["1", "shop.orders", "1.500"]
    assert "1 table in 0.10 s" in read(html_of(result)).text
    assert "shop.orders" in "\n".join(lines_of(result))
    assert {"Kabul", "Kabull", "typo"} <= set(read(html_of(candidate)).cells)
    assert "No table matches." in read(html_of(SearchResult("where?", (), 0.1))).text


def test_status_and_reports() -> None:
    source = {"name": "shop", "status": "indexed", "tables": 15, "rows": 40_000, "age_s": 7.0}
    status = StatusReport({"index": "/x", "exists": True, "bytes": 2000, "sources": [source]})
    cells = read(html_of(status)).cells
    assert cells[8:14] == ["shop", "indexed", "15", "40000", "–", "7.00 s ago"]
    assert "2.0 kB" in read(html_of(status)).text
    many = StatusReport({"index": "/x", "sources": [source] * 150})
    assert "100 of 150 sources shown" in read(html_of(many)).text
    report = IndexReport((SourceReport("shop", "built", "", 15, 40_000, 900),), 1.5, 200.0, 5000)
    assert read(html_of(report)).cells[6:9] == ["shop", "built", "15"]
    assert any("done in 1.50 s" in line for line in lines_of(report))
    with pytest.raises(TypeError, match="has no HTML"):
        html_of(object())  # type: ignore[arg-type]


# ---- pandas and Arrow -----------------------------------------------------------------------


def test_the_whole_result_as_arrow_and_pandas() -> None:
    answer = an_answer(rows=1203, max_rows=50)
    assert answer.to_arrow().num_rows == len(answer.to_pandas()) == 1203
    assert answer.to_arrow() is answer.table
    execution = a_result(["a", "a"], (Decimal("1.10"), None), kind="decimal128(38, 2)")
    assert list(execution.to_pandas().columns) == ["a", "a"]
    assert execution.to_arrow().column(0).to_pylist() == [Decimal("1.10")]
    failed = Answer("q", "failed", "")
    assert failed.to_arrow().shape == (0, 0)
    assert failed.to_pandas().empty


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="needs pandas") as raised:
        an_answer().to_pandas()
    assert "pip install pandas" in raised.value.hint
