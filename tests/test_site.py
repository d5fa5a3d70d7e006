"""The site of the documents: links that lead out of docs/, and what a page may load.

Whether all of it builds without a warning is a check of its own (scripts/check_site.py).
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHECK = runpy.run_path(str(ROOT / "scripts" / "check_site.py"))


@pytest.fixture(scope="module")
def hooks() -> dict[str, object]:
    pytest.importorskip("mkdocs")
    return runpy.run_path(str(ROOT / "scripts" / "site_hooks.py"))


@pytest.mark.parametrize(
    ("source", "place", "link", "moved"),
    [
        ("docs/a.md", "a.md", "../experiments/README.md#results", "experiments.md#results"),
        ("docs/decisions/1.md", "decisions/1.md", "../../CHANGELOG.md", "../changelog.md"),
        ("docs/decisions/1.md", "decisions/1.md", "../b.md#x", "../b.md#x"),
        ("docs/a.md", "a.md", "../README.md#models", "index.md#models"),
        ("CONTRIBUTING.md", "contributing.md", "docs/cli.md", "cli.md"),
        ("experiments/README.md", "experiments.md", "../docs/json.md#eval", "json.md#eval"),
        ("docs/a.md", "a.md", "#here", "#here"),
        ("docs/a.md", "a.md", "https://example.org/docs/x.md", "https://example.org/docs/x.md"),
    ],
)
def test_links_lead_to_the_place_on_the_site(
    hooks: dict[str, object], source: str, place: str, link: str, moved: str
) -> None:
    text = hooks["moved"](f"see [it]({link}).", source, place)  # type: ignore[operator]
    assert text == f"see [it]({moved})."


def test_every_page_from_outside_is_there(hooks: dict[str, object]) -> None:
    for name in hooks["OUTSIDE"]:  # type: ignore[attr-defined]
        assert (ROOT / name).is_file()


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="https://cdn.example.org/a.js"></script>', ["https://cdn.example.org/a.js"]),
        ('<link rel="stylesheet" href="//fonts.example.org/x">', ["//fonts.example.org/x"]),
        ('<img src="http://example.org/x.png">', ["http://example.org/x.png"]),
        ('<link rel="canonical" href="https://example.org/">', []),
        ('<a href="https://example.org/">there</a><img src="images/a.svg">', []),
    ],
)
def test_what_is_loaded_from_elsewhere_is_seen(html: str, found: list[str]) -> None:
    assert CHECK["elsewhere"](html) == found


def test_a_site_with_faults_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "search").mkdir()
    entries = [{"location": "index.html"}, {"location": "index.html#part"}]
    (tmp_path / "search" / "search_index.json").write_text(json.dumps({"docs": entries}))
    (tmp_path / "index.html").write_text("<img src='https://example.org/x'>")
    (tmp_path / "other.html").write_text("<p>fine</p>")
    (tmp_path / "a.css").write_text("@import url('https://example.org/x.css')")
    assert CHECK["problems"](tmp_path) == [
        "index.html loads https://example.org/x",
        "a.css loads from another address",
        "other.html is not in the search index",
    ]
