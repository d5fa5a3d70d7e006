"""A document as Markdown."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from dbrag.evaluation.reports.document import (
    Block,
    Code,
    Document,
    Figure,
    Heading,
    Paragraph,
    Table,
)


def markdown_of(document: Document, place_of: Callable[[Figure], str] | None = None) -> str:
    """The whole text.

    Args:
        place_of: where a figure lies as a file, relative to the text; without it only what
            the figure shows is told in words.
    """
    parts = [f"# {_text(document.title)}"]
    parts += [_block(block, place_of) for block in document.blocks]
    return "\n\n".join(parts) + "\n"


def _block(block: Block, place_of: Callable[[Figure], str] | None) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {_text(text)}"
        case Paragraph(text):
            return _text(text)
        case Code(lines, lang):
            return f"```{lang}\n" + "\n".join(lines) + "\n```"
        case Table():
            return table_markdown(block)
        case Figure(_, caption, _):
            if place_of is None:
                return f"*{_text(caption)}*"
            return f"![{_text(caption)}]({place_of(block)})"


def table_markdown(block: Table) -> str:
    """A table with its caption before it; a row of one cell is filled up with empty ones."""
    width = len(block.header)
    rule = tuple("---:" if figure else "---" for figure in block.figures)
    lines = [block.header, rule]
    for row in block.rows:
        lines.append((f"*{row[0]}*", *("" for _ in range(width - 1))) if len(row) == 1 else row)
    text = "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)
    return f"{_text(block.caption)}\n\n{text}" if block.caption else text


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def _text(text: str) -> str:
    # No tag of a name may become one of the page that the Markdown is shown on.
    return escape(" ".join(text.split()), quote=False)
