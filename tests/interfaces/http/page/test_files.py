"""The files of the page: small, of this server alone, and making no HTML of what they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbrag.interfaces.http.app import PAGE

MAX_LINES = 400
FILES = sorted(path for path in PAGE.rglob("*") if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
NO_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)|//[a-z0-9-]+\.[a-z]{2,}/")
MAKES_CODE = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|eval|"
    r"createContextualFragment|setHTML\w*)\b|new Function\b|\bjavascript:"
)


def name(path: Path) -> str:
    return path.relative_to(PAGE).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name)
def test_files_are_small_and_ask_no_other_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    assert not NO_ADDRESS.search(text)


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_no_script_makes_html_or_code_of_text(path: Path) -> None:
    assert not MAKES_CODE.search(path.read_text(encoding="utf-8"))


def test_nothing_is_written_into_the_page() -> None:
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page)


def test_every_file_is_used() -> None:
    everything = "".join(path.read_text(encoding="utf-8") for path in FILES)
    for path in FILES:
        assert path.name == "index.html" or path.name in everything
