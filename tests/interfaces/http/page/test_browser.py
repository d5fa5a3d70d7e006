"""The page in a real browser: asking, results, SQL, panels, themes, phone, hostile values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dbrag.demo import QUESTIONS
from tests.interfaces.http.conftest import Served, wait_until
from tests.interfaces.http.page.conftest import PHONE, SPLIT, Script, Tab, serious

CITIES = QUESTIONS[1].question
REFUNDS = QUESTIONS[5].question


def texts(page: Any, selector: str) -> list[str]:
    return [one.strip() for one in page.locator(selector).all_text_contents()]


def first_column(page: Any) -> list[str]:
    return texts(page, "#answer .result tbody tr td:first-child")


def test_from_the_question_to_the_answer(tab: Tab, script: Script) -> None:
    page = tab.page
    page.wait_for_selector(".example")
    examples = texts(page, ".example")
    assert len(examples) >= 3
    assert any("orders" in one for one in examples), examples
    tab.shot("start", full=False)

    with script.held():
        page.keyboard.press("/")
        page.keyboard.type(CITIES)
        page.keyboard.press("Enter")
        page.wait_for_selector("#progress li:has-text('Chose tables: shop.customers')")
        assert "Writing a program" in page.inner_text("#progress .now")
        page.wait_for_selector("#say:has-text('Writing a program')", state="attached")
        assert page.is_disabled("#send")
        tab.shot("progress", full=False)
    page.wait_for_selector("#answer-title:focus")
    assert page.is_hidden("#progress")
    assert page.inner_text("#answer .text") == "12 rows."
    assert re.search(r"(sure|fairly sure|not sure) \(\d+%\)", page.inner_text(".badge"))
    assert "programs gave this result" in page.inner_text(".facts")
    assert first_column(page)[:2] == ["Amsterdam", "Brno"]
    image = page.wait_for_selector("figure[data-kind=bar] img")
    assert image.get_attribute("alt") == "Bar chart of COUNT(*) by city: 12 rows"
    assert image.evaluate("one => one.decode().then(() => one.naturalWidth)") > 200
    tab.shot("answer")


def test_sort_copy_and_files(tab: Tab) -> None:
    page = tab.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.ask(CITIES)
    head = page.locator("#answer th").nth(1)
    head.locator("button").click()
    page.wait_for_selector("#answer th[aria-sort=ascending]")
    assert first_column(page)[0] == "Graz"
    head.locator("button").press("Enter")
    page.wait_for_selector("#answer th[aria-sort=descending]")
    assert first_column(page)[0] == "Lisbon"
    page.click("text=Copy")
    page.wait_for_selector("text=copied 12 rows")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.splitlines()[:2] == ["city\tCOUNT(*)", "Lisbon\t561"]
    files = {}
    for label in ("CSV", "Parquet", "JSON"):
        with page.expect_download() as waiting:
            page.click(f"button[aria-label='Download as {label}']")
        assert waiting.value.suggested_filename.endswith(f".{label.lower()}")
        files[label] = Path(waiting.value.path())
    assert files["CSV"].read_text().splitlines()[1] == "Amsterdam,169"
    assert pq.read_table(files["Parquet"]).num_rows == 12
    assert json.loads(files["JSON"].read_text())["rows"][0] == ["Amsterdam", 169]


def test_large_results_are_shown_in_parts(tab: Tab) -> None:
    tab.ask(CITIES)
    page = tab.run_sql("SELECT customer_id, email FROM customers")
    page.wait_for_selector("text=100 rows of 2,000 shown")
    page.click("text=Show 100 more")
    page.wait_for_selector("text=200 rows of 2,000 shown")
    page.click("#answer th >> nth=0 >> button")
    page.wait_for_selector("#answer th[aria-sort=ascending]")
    page.click("#answer th >> nth=0 >> button")
    page.wait_for_selector("#answer th[aria-sort=descending]")
    assert first_column(page)[0] == "2000"  # sorted whole, not only what is shown
    assert page.locator("figure").is_hidden()


def test_sql_is_changed_run_and_refused(tab: Tab) -> None:
    page = tab.ask(REFUNDS)
    assert page.inner_text(".big")
    joins = "shop.returns (order_line_id) refers to shop.order_lines (order_line_id)"
    page.wait_for_selector(f"li:has-text('{joins}')")
    assert page.locator(".diagram rect").count() == 4
    assert page.locator(".diagram path").count() >= 3
    keywords = texts(page, ".editor .sql-keyword")
    assert keywords[0] == "SELECT"
    assert "SUM" in texts(page, ".editor .sql-function")
    assert "'Nordic Mills'" in texts(page, ".editor .sql-string")

    tab.run_sql("SELECT status, COUNT(*) AS n FROM orders GROUP BY status ORDER BY n DESC")
    page.wait_for_selector("text=Result of your SQL")
    assert first_column(page) == ["delivered", "cancelled", "open"]
    page.wait_for_selector("figure img[alt='Bar chart of n by status: 3 rows']")
    tab.shot("edited-sql")

    tab.run_sql("DELETE FROM orders")
    problem = page.wait_for_selector("#sql-problem .failure")
    assert "'DELETE'" in problem.inner_text()
    assert "What to do: only reading is allowed" in problem.inner_text()
    assert page.get_attribute(".editor textarea", "aria-invalid") == "true"
    assert page.locator(".editor textarea:focus").count() == 1
    tab.shot("refused-sql")
    tab.run_sql("SELECT nme FROM customers")
    page.wait_for_selector("#sql-problem:has-text('customers.name')")
    tab.run_sql("SELECT name FROM customers GROUP")
    page.wait_for_selector("#sql-problem:has-text('What to do:')")

    page.click("text=Back to the answer")
    page.wait_for_selector("#answer-title:text-is('Answer')")
    assert "Nordic Mills" in page.input_value(".editor textarea")
    assert page.locator("#sql-problem .failure").count() == 0


def test_the_rows_behind_a_cell(tab: Tab) -> None:
    page = tab.ask(CITIES)
    page.wait_for_selector("figure img")
    cells = page.locator("#answer .result tbody td")
    assert page.locator("#answer .result tbody td[tabindex='0']").count() == 1
    cells.first.focus()
    for key in ("ArrowDown", "End", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    title = page.wait_for_selector(".behind h4:focus")
    assert title.inner_text() == "Source rows behind COUNT(*) = 169 (row 1)"
    assert texts(page, "td.chosen") == ["169"]
    behind = page.locator(".behind .result tbody tr")
    assert behind.count() == 100
    assert "Amsterdam" in behind.first.inner_text()
    # Neither a city nor a date is broken to make room for many columns.
    heights = "cells => cells.map(cell => cell.getBoundingClientRect().height)"
    assert max(behind.locator("td").evaluate_all(heights)) < 2 * 1.5 * 14.4
    assert "The first 100 rows; there are more" in page.inner_text(".behind")
    page.click("text=SQL of the source rows")
    assert "'Amsterdam'" in page.inner_text(".behind .sql")
    tab.shot("behind")
    page.click("text=The whole row")
    page.wait_for_selector(".behind h4:text-is('Source rows behind row 1')")
    page.keyboard.press("Escape")
    page.wait_for_selector("#answer .result td:focus")
    assert page.locator(".behind > *").count() == 0
    # Sorted otherwise, a cell is still its own; and a click does the same.
    page.locator("#answer th button").nth(1).click()
    page.wait_for_selector("#answer th[aria-sort=ascending]")
    cells.first.click()
    page.wait_for_selector(".behind h4:has-text('city = Graz')")
    assert "Graz" in behind.first.inner_text()
    page.click(".behind >> text=Close")
    page.wait_for_selector("#answer .result td:focus")

    tab.run_sql("SELECT city FROM customers UNION SELECT name FROM stores")
    page.wait_for_selector("text=Result of your SQL")
    cells.first.click()
    failure = page.wait_for_selector(".behind .failure").inner_text()
    assert "the rows behind this program cannot be shown" in failure
    assert "run SQL of your own" in failure


def test_both_readings_in_words(tab: Tab) -> None:
    page = tab.ask(SPLIT)
    page.wait_for_selector("text=The question can be read in more than one way")
    assert "instead of" in page.locator(".reading").nth(1).inner_text()
    assert "The programs disagree" in page.inner_text(".warnings")
    page.click("text=Its result and SQL")
    number = page.locator(".reading .result td").first
    assert number.inner_text() in ("9000", "23215", "8562")
    number.click()
    title = page.wait_for_selector(".reading .behind h4:focus").inner_text()
    assert title == f"Source rows behind n = {number.inner_text()} (row 1)"
    assert page.locator(".reading .behind .result tbody tr").count() == 100
    tab.shot("readings")


def test_cancel(tab: Tab, site: Served, script: Script) -> None:
    page = tab.page
    with script.held():
        page.fill("#question", QUESTIONS[2].question)
        page.press("#question", "Enter")
        page.wait_for_selector("#progress li:has-text('Chose tables')")
        page.keyboard.press("Escape")
        page.wait_for_selector("#notice:has-text('Cancelled')")
        wait_until(lambda: not site.service.board.active())
    assert page.is_enabled("#send")
    assert page.is_hidden("#progress")


def test_errors_say_what_to_do(tab: Tab, site: Served) -> None:
    page = tab.page
    page.press("#question", "Enter")
    assert "type one, or choose an example" in page.inner_text("#notice .failure")
    page.route("**/api/v1/ask/stream", lambda route: route.abort())
    page.fill("#question", CITIES)
    page.click("#send")
    page.wait_for_selector("text=is dbrag serve still running?")
    assert page.is_enabled("#send")


def test_tables_are_found_and_opened(tab: Tab) -> None:
    page = tab.page
    page.focus("#open-tables")
    page.keyboard.press("Enter")
    page.wait_for_selector("#tables-title:focus")
    page.wait_for_selector("text=15 tables")
    page.fill("#table-search", "refund")
    page.wait_for_selector("#tables-count:has-text('1 table found')")
    page.click(".table-item summary")
    page.wait_for_selector(".columns :text('refers to order_lines')")
    page.click("text=Sample rows")
    page.wait_for_selector("#tables .result tbody tr")
    tab.shot("tables", full=False)
    page.click("text=Ask about it")
    assert "returns" in page.input_value("#question")
    page.focus("#table-search")
    page.keyboard.press("Escape")
    assert page.is_hidden("#tables")
    assert page.locator("#open-tables:focus").count() == 1


def test_history_shows_again_and_forgets(tab: Tab) -> None:
    page = tab.ask(QUESTIONS[0].question)
    page.click("#open-history")
    page.wait_for_selector("#history-list .entry")
    page.fill("#history-search", "each store")
    page.wait_for_selector("#history-count:has-text('1 entry')")
    page.evaluate("() => document.getElementById('answer').replaceChildren()")
    page.click("#history-list .entry")
    page.wait_for_selector("#answer-title:focus")
    assert len(first_column(page)) == 8
    page.click("button[aria-label^='Forget:']")
    page.wait_for_selector("text=No question has this.")
    page.fill("#history-search", "")
    page.click("text=Forget all")
    page.click("dialog >> text=Cancel")
    assert page.locator("dialog[open]").count() == 0


def test_right_is_learned(tab: Tab) -> None:
    page = tab.ask(QUESTIONS[3].question)
    page.get_by_role("button", name="Right").click()
    page.wait_for_selector("text=this question is answered so from now on")
    tab.ask(QUESTIONS[3].question)
    page.wait_for_selector(".badge:has-text('sure (100%)')")


def test_learned_questions_are_corrected_and_forgotten(tab: Tab, site: Served) -> None:
    question = "How many <b>stores</b> are there?"
    for one, sql in ((question, "SELECT COUNT(*) AS n FROM orders"), ("Who?", "SELECT 1 AS one")):
        assert site.post("/learned", {"question": one, "sql": sql}).status_code == 200
    page = tab.page
    page.click("#open-learned")
    page.wait_for_selector("#learned-title:focus")
    item = page.locator("#learned-list > li", has_text=question)
    assert item.count() == 1
    page.fill("#learned-search", "nothing like it")
    page.wait_for_selector("#learned-count:has-text('No learned question has this.')")
    page.fill("#learned-search", "<b>stores")
    page.wait_for_selector("#learned-count:has-text('1 question')")
    item.locator("summary").click()
    item.locator("textarea").fill("DROP TABLE stores")
    item.locator("text=Run and keep").click()
    assert "only reading is allowed" in item.locator(".failure").inner_text()
    item.locator("textarea").fill("SELECT COUNT(*) AS n FROM stores")
    item.locator("textarea").press("Control+Enter")
    page.wait_for_selector("#learned-count:has-text('kept: its SQL gives 1 row')")
    page.wait_for_selector("#learned-title:focus")
    tab.shot("learned", full=False)
    tab.ask(question)
    assert page.inner_text(".big") == "8"

    # Both panels stand at the same side.
    page.click("#open-history")
    assert page.is_hidden("#learned")
    page.click("#open-learned")
    assert page.is_hidden("#history")
    item.locator("text=Forget").click()
    page.click("dialog >> text=Cancel")
    assert item.count() == 1
    item.locator("text=Forget").click()
    page.click("dialog .main-button")
    page.wait_for_selector("#learned-count:has-text('forgotten')")
    assert item.count() == 0
    left = [one["question"] for one in site.get("/learned").json()["pairs"]]
    assert question not in left
    assert "Who?" in left


def test_dark_by_the_system_and_by_the_switch(tabs: Callable[..., Tab], site: Served) -> None:
    tab = tabs(site.url, color_scheme="dark")
    page = tab.open()
    ground = "() => getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(ground)
    tab.ask(CITIES)
    source = page.wait_for_selector("figure img").get_attribute("src")
    tab.shot("dark")
    page.click("#theme")
    assert page.get_attribute("#theme", "aria-pressed") == "false"
    light = page.evaluate(ground)
    assert light != dark
    wait_until(lambda: page.get_attribute("figure img", "src") != source)
    page.reload()
    assert page.evaluate(ground) == light


def test_a_phone(tabs: Callable[..., Tab], site: Served) -> None:
    tab = tabs(site.url, viewport=PHONE, has_touch=True, is_mobile=True)
    page = tab.open()
    page.wait_for_selector(".example")
    assert tab.overflow() <= 0
    tab.ask(REFUNDS)
    page.wait_for_selector(".diagram")
    assert tab.overflow() <= 0
    tab.shot("phone")
    page.click("#open-tables")
    page.click(".table-item >> nth=1")
    page.wait_for_selector(".columns")
    assert page.evaluate("() => document.getElementById('main').inert")
    assert tab.overflow() <= 0
    tab.shot("phone-tables", full=False)
    page.click("#tables >> text=Close")
    assert not page.evaluate("() => document.getElementById('main').inert")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(tabs: Callable[..., Tab], site: Served, scheme: str) -> None:
    # The policy keeps axe itself out; it is checked in the other tests.
    tab = tabs(site.url, color_scheme=scheme, bypass_csp=True)
    page = tab.open()
    page.wait_for_selector(".example")
    assert serious(page) == []
    tab.ask(SPLIT)
    tab.run_sql("DELETE FROM orders")
    page.wait_for_selector("#sql-problem .failure")
    assert serious(page) == []
    tab.run_sql("SELECT city, NULL AS none_here, COUNT(*) AS n FROM customers GROUP BY city")
    page.wait_for_selector("figure img")
    page.click("#open-tables")
    page.click(".table-item >> nth=1")
    page.wait_for_selector(".columns")
    page.locator("#answer .result td").first.click()
    page.wait_for_selector(".behind h4:focus")
    assert site.post("/learned", {"question": "One?", "sql": "SELECT 1 AS n"}).status_code == 200
    page.click("#open-learned")
    page.click("#learned-list summary >> nth=0")
    assert serious(page) == []
    page.click("#open-history")
    page.wait_for_selector("#history-list .entry")
    assert serious(page) == []
    page.click("text=Forget all")
    assert serious(page) == []
