"""Names and values that are code, very long, or written from right to left; and the token."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dbrag.database import Database, connect
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder
from tests.interfaces.http.conftest import TOKEN, on_a_port
from tests.interfaces.http.page.conftest import PHONE, Tab, serious

SCRIPT = "<script>window.hit=1</script>"
IMAGE = '<img src=x onerror="window.hit=1">'
TABLE = '<img src=x onerror="window.hit=2"> orders'
COLUMN = '"><svg onload="window.hit=3">'
HEBREW = "שלום עולם 123, לקוח חדש"
LONG = "long" * 300
QUESTION = "What is written?"
HIT = "() => window.hit"


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Database]:
    """A source of hostile names and values; the model's program is hostile as well."""
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as db:
        name, column = TABLE.replace('"', '""'), COLUMN.replace('"', '""')
        db.execute(f'CREATE TABLE "{name}" ("{column}" TEXT, amount INTEGER, note TEXT)')
        rows = [(SCRIPT, 1, HEBREW), (IMAGE, 2, LONG), ("javascript:window.hit=4", 3, None)]
        db.executemany(f'INSERT INTO "{name}" VALUES (?, ?, ?)', rows)
        db.commit()

    def answer(_: Prompt) -> str:
        name, column = TABLE.replace('"', '""'), COLUMN.replace('"', '""')
        return f'SELECT "{column}", amount FROM "{name}"'

    with connect(
        path,
        index=tmp_path / "index",
        chat_model=FunctionModel(answer),
        embedder=HashEmbedder(),
        learned=str(tmp_path / "learned.sql"),
    ) as database:
        database.index()
        yield database


def test_code_in_names_and_values_is_only_text(odd: Database, tabs: Callable[..., Tab]) -> None:
    with on_a_port(odd) as served:
        tab = tabs(served.url)
        page = tab.open()
        page.wait_for_selector(".example")
        tab.ask(f"{QUESTION} {IMAGE}")
        cells = page.locator("#answer .result tbody td:first-child").all_text_contents()
        assert cells == [SCRIPT, IMAGE, "javascript:window.hit=4"]
        page.wait_for_selector("figure img")
        page.wait_for_selector(".diagram")
        page.click("#open-tables")
        page.click(".table-item summary")
        page.wait_for_selector(".columns")
        page.click("text=Sample rows")
        page.wait_for_selector("#tables .result td")
        page.click("#open-history")
        page.wait_for_selector("#history-list .entry")
        assert page.evaluate("() => document.querySelectorAll('#answer img').length") == 1
        inside = "#answer script, #answer a, aside img, aside script, svg svg"
        assert page.evaluate("one => document.querySelectorAll(one).length", inside) == 0
        assert page.evaluate(HIT) is None
        # A file or a drawing opened by itself runs nothing either.
        tab.run_sql(f"SELECT '{SCRIPT}' AS a, 1 AS n UNION ALL SELECT '{IMAGE}', 2")
        page.wait_for_selector("text=Result of your SQL")
        page.wait_for_selector("figure img[alt*='n by a']")
        assert page.evaluate(HIT) is None
        tab.shot("hostile")


def test_right_to_left_and_long_values(odd: Database, tabs: Callable[..., Tab]) -> None:
    with on_a_port(odd) as served:
        tab = tabs(served.url, viewport=PHONE, bypass_csp=True)
        page = tab.open()
        tab.ask(QUESTION)
        tab.run_sql(f'SELECT note, amount FROM "{TABLE.replace(chr(34), chr(34) * 2)}"')
        page.wait_for_selector("text=Result of your SQL")
        cells = page.locator("#answer .result tbody td:first-child")
        direction = "one => getComputedStyle(one).direction"
        assert cells.nth(0).text_content() == HEBREW
        assert cells.nth(0).evaluate(direction) == "rtl"
        assert cells.nth(2).text_content() == "NULL"
        long = cells.nth(1)
        assert len(long.text_content()) < 400
        long.locator("button").click()
        assert LONG in long.text_content()
        assert tab.overflow() <= 0
        assert serious(page) == []
        tab.shot("right-to-left")


def test_a_token_is_asked_for(odd: Database, tabs: Callable[..., Tab]) -> None:
    with on_a_port(odd, token=TOKEN) as served:
        tab = tabs(served.url)
        page = tab.open()
        page.wait_for_selector("dialog[open] >> text=This server asks for a token")
        page.fill("#token", "a-wrong-token-of-enough-characters")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=This token is wrong.")
        tab.shot("token", full=False)
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_selector("#about:has-text('odd')")
        tab.ask(QUESTION)
        assert page.locator("#answer .result tbody tr").count() == 3
        assert not any(TOKEN in one for one in tab.requests)


def test_while_the_index_is_made(odd: Database, tabs: Callable[..., Tab]) -> None:
    with on_a_port(odd) as served:
        tab = tabs(served.url)
        served.service._building = True
        page = tab.open()
        page.wait_for_selector("text=The index is being made.")
        served.service._building = False
        page.wait_for_selector("#about:has-text('odd')")
        assert page.locator("#notice > *").count() == 0


def test_a_model_that_cannot_answer(odd: Database, tabs: Callable[..., Tab]) -> None:
    def broken(_: Prompt) -> str:
        return "SELECT nothing_of_the_kind FROM nowhere"

    odd_model = FunctionModel(broken)
    with (
        connect(
            odd.sources[0].location, index=odd.index_dir, chat_model=odd_model,
            embedder=HashEmbedder(),
        ) as database,
        on_a_port(database) as served,
    ):  # fmt: skip
        tab = tabs(served.url)
        tab.open()
        page = tab.ask(QUESTION)
        assert page.inner_text("#answer-title") == "No answer"
        assert "What to do:" in page.inner_text("#answer .failure")
        tab.shot("no-answer", full=False)
