"""A document as one HTML file: nothing is loaded, it follows light and dark, it prints.

Its policy (``Content-Security-Policy``) forbids every request, scripts too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from dbrag.evaluation.reports.document import (
    Block,
    Code,
    Document,
    Figure,
    Heading,
    Paragraph,
    Table,
)

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def html_of(document: Document) -> str:
    """The whole page."""
    anchors = _anchors(document.blocks)
    body = "\n".join(_block(block, anchors.get(i, "")) for i, block in enumerate(document.blocks))
    links = "".join(
        f'<li><a href="#{anchors[i]}">{_inline(block.text)}</a></li>'
        for i, block in enumerate(document.blocks)
        if isinstance(block, Heading) and block.level == 2
    )
    nav = f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n' if links else ""
    title = escape(document.title)
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{title}</h1>\n{nav}{body}\n</main>\n</body>\n</html>\n"
    )


def _anchors(blocks: Sequence[Block]) -> dict[int, str]:
    """A place of its own for each title, by the position of its block."""
    found: dict[int, str] = {}
    for i, block in enumerate(blocks):
        if not isinstance(block, Heading):
            continue
        stem = re.sub(r"[^a-z0-9]+", "-", block.text.lower()).strip("-") or "part"
        name, number = stem, 1
        while name in found.values():
            number += 1
            name = f"{stem}-{number}"
        found[i] = name
    return found


def _block(block: Block, anchor: str) -> str:
    match block:
        case Heading(level, text):
            return f'<h{level} id="{anchor}">{_inline(text)}</h{level}>'
        case Paragraph(text):
            return f"<p>{_inline(text)}</p>"
        case Code(lines):
            return f"<pre><code>{escape(chr(10).join(lines))}</code></pre>"
        case Table():
            return _table(block)
        case Figure(_, caption, svg):
            return f"<figure>{svg}<figcaption>{_inline(caption)}</figcaption></figure>"


def _table(block: Table) -> str:
    caption = f"<caption>{_inline(block.caption)}</caption>" if block.caption else ""
    kinds = ["" if figure else ' class="text"' for figure in block.figures]
    head = "".join(
        f'<th scope="col"{kind}>{_inline(cell)}</th>'
        for kind, cell in zip(kinds, block.header, strict=True)
    )
    rows = "\n".join(_row(row, kinds) for row in block.rows)
    label = escape(block.caption or block.header[0] or "table")
    # Wide tables scroll by themselves; whoever has no mouse reaches them by Tab.
    return (
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">\n<table>{caption}\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _row(row: Sequence[str], kinds: Sequence[str]) -> str:
    if len(row) == 1:
        title = f'<th scope="colgroup" colspan="{len(kinds)}">{_inline(row[0])}</th>'
        return f'<tr class="group">{title}</tr>'
    name, *cells = row
    figures = "".join(
        f"<td{kind}>{_inline(cell)}</td>" for kind, cell in zip(kinds[1:], cells, strict=True)
    )
    return f'<tr><th scope="row">{_inline(name)}</th>{figures}</tr>'


def _inline(text: str) -> str:
    """A text with its two marks, everything else as it stands."""
    safe = escape(text)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    return re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", safe)
