"""Build the site as strictly as mkdocs can, into a temporary folder, and look at its pages.

python scripts/check_site.py

mkdocs itself finds links to pages and headings that are not there. Looked for here: anything
that a browser would fetch from another address (fonts, scripts, pictures), and a search index
that lacks a page.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).parent.parent
_FETCHED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src",),
    "object": ("data",),
}
_LINKS = ("stylesheet", "preconnect", "preload", "icon", "manifest", "dns-prefetch")


class Fetches(HTMLParser):
    """Collects the addresses that a page loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of one element."""
        given = {name: value or "" for name, value in attrs}
        names = _FETCHED.get(tag, ())
        if tag == "link" and any(word in _LINKS for word in given.get("rel", "").split()):
            names = ("href",)
        self.found += [given[name] for name in names if name in given]


def elsewhere(html: str) -> list[str]:
    """Addresses of other machines that a page fetches from."""
    page = Fetches()
    page.feed(html)
    return [one for one in page.found if one.startswith(("//", "http:", "https:"))]


def problems(site: Path) -> list[str]:
    """What is wrong with a built site, a line each."""
    found = []
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    for page in pages:
        for address in elsewhere(page.read_text(encoding="utf-8")):
            found.append(f"{page.relative_to(site)} loads {address}")
    for sheet in sorted(site.rglob("*.css")):
        if "url(http" in sheet.read_text(encoding="utf-8").replace('"', "").replace("'", ""):
            found.append(f"{sheet.relative_to(site)} loads from another address")
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    indexed = {entry["location"].partition("#")[0] or "index.html" for entry in index["docs"]}
    missing = {page.relative_to(site).as_posix() for page in pages} - indexed
    return found + [f"{name} is not in the search index" for name in sorted(missing)]


def main() -> int:
    """0 when the site is built without a warning and is sound, else 1."""
    with tempfile.TemporaryDirectory() as folder:
        # Not --quiet: it hides warnings from --strict, too.
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
        calm = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # news of the theme's authors
        done = subprocess.run(  # noqa: S603 - our own
            command, cwd=ROOT, env=calm, capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(done.stdout + done.stderr, file=sys.stderr)
            return 1
        found = problems(Path(folder))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
