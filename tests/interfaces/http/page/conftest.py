"""A real browser before a real server over the demo shop, with a scripted model."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from dbrag.cancel import check
from dbrag.database import connect
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder
from tests.interfaces.http.conftest import Served, gold, on_a_port

SHOTS = os.environ.get("DBRAG_SCREENSHOTS")  # read here: tests hide the user's settings
"""A folder for pictures of the page; none by default."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
PATIENCE_MS = 120_000
"""For something to appear: a machine may be busy, and what appears is not waited for longer."""
SPLIT = "How many things were ordered?"


class Script:
    """A model that answers by the demo's own SQL, and waits while it is held."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.calls = 0

    def __call__(self, prompt: Prompt) -> str:
        while not self.go.wait(0.02):
            check()
        if SPLIT not in prompt.request:
            return gold(prompt)
        self.calls += 1
        table = ("orders", "order_lines", "payments")[self.calls % 3]
        return f"SELECT COUNT(*) AS n FROM {table}"

    @contextmanager
    def held(self) -> Iterator[None]:
        self.go.clear()
        try:
            yield
        finally:
            self.go.set()


@dataclass
class Tab:
    """A page in the browser, and what it did."""

    page: Any
    url: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self) -> Any:
        self.page.goto(self.url)
        return self.page

    def ask(self, question: str) -> Any:
        self.page.fill("#question", question)
        self.page.press("#question", "Enter")
        self.page.wait_for_selector("#answer-title")
        return self.page

    def run_sql(self, sql: str) -> Any:
        self.page.fill(".editor textarea", sql)
        self.page.press(".editor textarea", "Control+Enter")
        return self.page

    def shot(self, name: str, full: bool = True) -> None:
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=full)

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(f"() => {wide}"))


def executable() -> str:
    """A Chromium; on a user's machine the test is skipped without one, in CI it fails."""
    found = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *NAMES))), None)
    if found is None:
        missing = "no Chromium is installed (Debian and Ubuntu: apt install chromium)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return str(found)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = executable()
    if os.environ.get("CI"):
        from playwright import sync_api as playwright
    else:
        playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=path)
        yield running
        running.close()


@pytest.fixture(scope="module")
def script() -> Script:
    return Script()


@pytest.fixture(scope="module")
def site(
    shop: Path, index: Path, script: Script, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """The server; one for all tests of a module."""
    learned = str(tmp_path_factory.mktemp("learned") / "learned.sql")
    model = FunctionModel(script)
    embedder = HashEmbedder()
    with (
        connect(shop, index=index, chat_model=model, embedder=embedder, learned=learned) as db,
        on_a_port(db) as served,
    ):
        yield served


@pytest.fixture
def tabs(browser: Any) -> Iterator[Callable[..., Tab]]:
    """Opens pages; at the end none of them asked another origin or broke the content policy."""
    opened: list[tuple[Any, Tab]] = []

    def make(url: str, **options: Any) -> Tab:
        context = browser.new_context(**{"viewport": WIDE, "accept_downloads": True, **options})
        context.set_default_timeout(PATIENCE_MS)
        tab = Tab(context.new_page(), url)
        tab.page.on("request", lambda one: tab.requests.append(one.url))
        tab.page.on("pageerror", lambda one: tab.complaints.append(str(one)))
        tab.page.on("console", lambda one: tab.complaints.append(one.text) if bad(one) else None)
        opened.append((context, tab))
        return tab

    yield make
    for context, tab in opened:
        context.close()
        away = [one for one in tab.requests if not one.startswith((tab.url, "data:", "blob:"))]
        assert not away
        assert not tab.complaints


def bad(message: Any) -> bool:
    """Whether the console complains of more than a response that is no success."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")


@pytest.fixture
def tab(tabs: Callable[..., Tab], site: Served) -> Tab:
    made = tabs(site.url)
    made.open()
    return made


def serious(page: Any) -> list[str]:
    """What axe-core finds that is serious or critical: rule, and where."""
    source = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    page.evaluate(source)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {[node['target'] for node in one['nodes']][:5]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
