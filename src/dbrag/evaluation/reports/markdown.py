"""A document as Markdown."""

from __future__ import annotations

import re
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
            text = "\n".join(lines)
            longest = max(map(len, re.findall("`+", text)), default=0)
            fence = "`" * max(3, longest + 1)  # one that no line of the code ends
            return f"{fence}{lang}\n{text}\n{fence}"
        case Table():
            return table_markdown(block)
        case Figure(_, caption, _):
            if place_of is None:
                return f"*{_text(caption)}*"
            return f"![{_text(caption)}]({place_of(block)})"


def table_markdown(block: Table) -> str:
    """A table with its caption before it; a row of one cell is filled up with empty ones."""
    width = len(block.header)
    rule = ["---:" if figure else "---" for figure in block.figures]
    lines = [list(map(cell_markdown, block.header)), rule]
    for row in block.rows:
        cells = list(map(cell_markdown, row))
        lines.append([f"*{cells[0]}*", *[""] * (width - 1)] if len(cells) == 1 else cells)
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{_text(block.caption)}\n\n{text}" if block.caption else text


def cell_markdown(text: str) -> str:
    """A cell of a table: a text on one line whose bars are no borders."""
    return _text(text).replace("|", "\\|")


_CODE = re.compile(r"(`[^`]+`)")
# Links and images, emphasis, and the backslash that would undo an escape; ``**`` is a mark of ours.
_MARKS = re.compile(r"[\\\[]|(?<!\*)\*(?!\*)|(?<![^\W_])_+|_+(?![^\W_])|~~+")


def _text(text: str) -> str:
    """A text of a document: its two marks stay, no character of a name is another.

    No tag of a name may become one of the page that the Markdown is shown on, no name a picture
    that it would fetch.
    """
    parts = _CODE.split(escape(" ".join(text.split()), quote=False))
    parts[::2] = [
        _MARKS.sub(lambda m: "".join(f"\\{c}" for c in m[0]), part) for part in parts[::2]
    ]
    return "".join(parts)
