"""A walk through the page, with pictures: the same with a scripted model and the real one.

The test beside it walks with a scripted model. The pictures of the documents are made with
the real local model and a browser:

    python -m tests.interfaces.http.page.tour --out docs/images/page
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from dbrag.demo import QUESTIONS, write_demo
from tests.interfaces.http.page.conftest import PATIENCE_MS, PHONE, executable

CITIES = QUESTIONS[1].question
EDITED = "SELECT status, COUNT(*) AS n FROM orders GROUP BY status ORDER BY n DESC"
WIDE = {"width": 1100, "height": 760}
NAMES = (
    "start", "progress", "answer", "behind", "edited-sql", "refused-sql", "tables", "dark", "phone"
)  # fmt: skip


def walk(
    browser: Any,
    url: str,
    out: Path,
    held: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Ask, look, change, be refused, browse; wide, dark and on a phone.

    Args:
        held: keeps a model that answers at once waiting, so that its progress can be seen.

    Raises:
        Exception: something on the page is not as it should be.
    """
    with opened(browser, url, viewport=WIDE) as page:
        shoot = _camera(page, out)
        page.wait_for_selector(".example")
        shoot("start", full=False)
        with held():
            page.fill("#question", CITIES)
            page.press("#question", "Enter")
            page.wait_for_selector("#progress li:has-text('Chose tables')")
            page.wait_for_selector("#progress .now:has-text('Writing a program')")
            shoot("progress", full=False)
        _answered(page)
        shoot("answer")
        page.click("#answer .result tbody tr >> nth=0 >> td >> nth=1")
        page.wait_for_selector(".behind table")
        shoot("behind")
        page.fill(".editor textarea", EDITED)
        page.press(".editor textarea", "Control+Enter")
        page.wait_for_selector("text=Result of your SQL")
        page.wait_for_selector("figure img[alt='Bar chart of n by status: 3 rows']")
        shoot("edited-sql")
        page.fill(".editor textarea", "DELETE FROM orders")
        page.press(".editor textarea", "Control+Enter")
        page.wait_for_selector("#sql-problem .failure")
        shoot("refused-sql")
        page.click("#open-tables")
        page.click(".table-item >> nth=1")
        page.wait_for_selector(".columns")
        shoot("tables", full=False)
    for name, options in (
        ("dark", {"viewport": WIDE, "color_scheme": "dark"}),
        ("phone", {"viewport": PHONE, "has_touch": True, "is_mobile": True}),
    ):
        with opened(browser, url, **options) as page:
            page.fill("#question", CITIES)
            page.press("#question", "Enter")
            _answered(page)
            _camera(page, out)(name)


@contextmanager
def opened(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """The page in a window of its own."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(url)
    yield page
    context.close()


def _answered(page: Any) -> None:
    page.wait_for_selector("#answer-title")
    image = page.wait_for_selector("figure[data-kind=bar] img")
    image.evaluate("one => one.decode()")


def _camera(page: Any, out: Path) -> Callable[..., None]:
    out.mkdir(parents=True, exist_ok=True)

    def shoot(name: str, full: bool = True) -> None:
        page.screenshot(path=out / f"{name}.png", full_page=full)

    return shoot


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """``dbrag serve`` over the demo shop with the default model, in a process of its own."""
    shop = write_demo(folder / "shop.db").path
    command = [sys.executable, "-m", "dbrag", "serve", "-s", str(shop), "--port", "0"]
    command += ["--index", str(folder / "index")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            print(line, end="", file=sys.stderr)
            if (at := line.find("http://127.0.0.1:")) >= 0:
                break
        yield line[at:].split()[0].rstrip(".,")
    finally:
        process.terminate()
        process.wait(30)


def main() -> None:
    """Make the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description="Pictures of the page with the real local model.")
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as started,
        served(Path(folder)) as url,
    ):
        browser = started.chromium.launch(executable_path=executable())
        walk(browser, url, out)
        browser.close()
    print("\n".join(f"{out / name}.png" for name in NAMES))


if __name__ == "__main__":
    main()
