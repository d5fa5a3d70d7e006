"""A document as one HTML file: nothing is loaded, it follows light and dark, it prints.

Its policy (``Content-Security-Policy``) forbids every request, scripts too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
# Contrast of text at least 4.5:1, of lines of figures at least 3:1, on both grounds (WCAG 2.2).
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --dim: #55606d; --ground: #ffffff;
  --card: #f5f7fa; --line: #d9dfe6; --link: #1f5fae;
  --c1: #2f6fb7; --c2: #b8580b; --c3: #1b7f5c; --c4: #8b4f9f; --c5: #5b6570; --c6: #a8323e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf1; --dim: #a9b4c0; --ground: #12171d; --card: #1b222a; --line: #39434f;
    --link: #8fbdf5;
    --c1: #7fb3f0; --c2: #f0a35e; --c3: #5fcfa3; --c4: #c99be0; --c5: #b6c0cb; --c6: #f0858f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; padding-top: .8rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p { margin: .5rem 0; max-width: 52rem; }
a { color: var(--link); }
nav ul { margin: .6rem 0 0; padding: 0; list-style: none; display: flex; flex-wrap: wrap;
  gap: .2rem 1.1rem; }
.scroll { overflow-x: auto; margin: .7rem 0 1.1rem; border: 1px solid var(--line);
  border-radius: 6px; }
.scroll:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--dim); padding: .45rem .7rem; caption-side: top; }
th, td { padding: .32rem .7rem; text-align: right; vertical-align: top; }
td:not(.text) { white-space: nowrap; }
.text { text-align: left; }
thead th { border-bottom: 1px solid var(--line); font-weight: 600; background: var(--card);
  vertical-align: bottom; }
tbody tr + tr > * { border-top: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--ground); font-weight: 400; min-width: 9rem; max-width: 24rem;
  overflow-wrap: anywhere; }
thead th:first-child { background: var(--card); font-weight: 600; }
tr.group th { color: var(--dim); background: var(--card); font-style: italic; }
code, pre { font: .92em/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code { background: var(--card); padding: .05em .3em; border-radius: 3px; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem .8rem; overflow-x: auto; }
pre code { padding: 0; background: none; }
figure { margin: .8rem 0 1.1rem; max-width: 46rem; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--dim); }
@media (min-width: 62rem) { tbody th:first-child { min-width: 15rem; } }
@media print { nav { display: none; } h2 { break-after: avoid; } .scroll { overflow: visible; }
  main { max-width: none; padding: 0; } }
""".strip()


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
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n<main>\n"
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
