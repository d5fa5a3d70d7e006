"""Reads what a notebook shows as a browser would, and refuses all that could act."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from dbrag.interfaces.notebook.markup import STYLE

ELEMENTS = {
    "div", "style", "p", "b", "bdi", "span", "ul", "li", "details", "summary", "pre", "code",
    "table", "caption", "thead", "tbody", "tr", "th", "td",
    "svg", "g", "path", "line", "rect", "circle", "text", "defs", "clippath",
}  # fmt: skip
DRAWS = re.compile(r"[\w-]+\Z")
LOADS = re.compile(r"(?i)javascript:|https?:|//|data:|@import|expression\(|url\((?!#dbrag-)")
TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
VOID = {"path", "line", "rect", "circle"}


class Reader(HTMLParser):
    """Elements and their texts; an element or attribute that is not expected fails."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[str] = []
        self.cells: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        for name, value in attrs:
            assert DRAWS.match(name), name
            assert not name.startswith("on"), name
            assert name not in ("href", "src", "style", "srcdoc", "action", "xlink:href"), name
            if name not in ("aria-label", "title"):
                assert not LOADS.search(value or ""), (name, value)
        self.seen.append(tag)
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            assert f"<style>{data}</style>" == STYLE
            return
        self.texts.append(data)
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    @property
    def text(self) -> str:
        """All that is read."""
        return "".join(self.texts)


def read(html: str) -> Reader:
    """What stands in it; everything that was opened is closed, once, and nothing turns it."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    assert not TURNS.search(html)
    html.encode("utf-8")  # half a character could not be sent
    return reader
