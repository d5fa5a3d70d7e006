"""HTML made of foreign text: escaped, on its line, in its own reading direction.

Characters that are not seen or turn the reading direction are shown as escapes, as on the command
line; what is cut says how much. Colours are those of the notebook's theme, or can be read on light
and on dark.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dbrag.interfaces.cli.render import count
from dbrag.interfaces.cli.tables import cell_text

if TYPE_CHECKING:
    from dbrag.types import Execution

MAX_ROWS = 20
MAX_COLUMNS = 30
MAX_CELL_CHARS = 200
MAX_TEXT_CHARS = 10_000
MAX_SQL_CHARS = 20_000

STYLE = """<style>
.dbrag { color: inherit; line-height: 1.5; max-width: 100%; }
.dbrag p { margin: .3em 0; overflow-wrap: anywhere; }
.dbrag .dbrag-text { font-size: 1.15em; font-weight: 600; }
.dbrag .dbrag-faint { opacity: .75; }
.dbrag .dbrag-notes { margin: .4em 0; padding: .3em .8em .3em 2em; border-left: 3px solid #b8860b; }
.dbrag .dbrag-part { margin: .5em 0; padding-left: .8em; border-left: 3px solid #80808066; }
.dbrag .dbrag-scroll { overflow-x: auto; margin: .4em 0; }
.dbrag table { border-collapse: collapse; margin: 0; font-size: .95em; color: inherit; }
.dbrag caption { caption-side: bottom; text-align: left; padding: .2em .6em; opacity: .75; }
.dbrag th, .dbrag td { padding: .2em .6em; border-bottom: 1px solid #80808066; color: inherit;
  text-align: start; vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere;
  min-width: 3em; max-width: 30em; unicode-bidi: plaintext; }
.dbrag .dbrag-number { text-align: right; font-variant-numeric: tabular-nums; }
.dbrag .dbrag-null { font-style: italic; opacity: .75; }
.dbrag pre { margin: .3em 0; padding: .5em .7em; border: 1px solid #80808066; border-radius: 4px;
  background: transparent; color: inherit; white-space: pre-wrap; overflow-wrap: anywhere; }
.dbrag pre bdi { font-style: normal; }
.dbrag .dbrag-keyword { color: var(--jp-mirror-editor-keyword-color, #9058c4); font-weight: 600; }
.dbrag .dbrag-string { color: var(--jp-mirror-editor-string-color, #b8580b); }
.dbrag .dbrag-digits { color: var(--jp-mirror-editor-number-color, #16805c); }
.dbrag .dbrag-comment { font-style: italic; opacity: .75; }
.dbrag summary { cursor: pointer; }
.dbrag svg { max-width: 100%; height: auto; background: transparent; }
</style>"""

# As the page colours it (page/js/sql.js).
_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        all and any as asc asof between by case cast collate cross current date desc distinct else
        end escape except exists extract false fetch filter first following for from full glob group
        having ilike in inner intersect interval into is isnull join last lateral left like limit
        natural next not notnull null nulls offset on only or order outer over partition pivot
        preceding qualify range recursive regexp right row rows select similar some table then
        timestamp to true unbounded union unnest using values when where window with within
        """,
    )
)
_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<string>'(?:[^']|'')*(?:'|\Z))"
    r'|(?P<name>"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)|\[[^\]\n]*\])'
    r"|(?P<digits>\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)"
    r"|(?P<word>[^\W\d][\w$]*)",
    re.DOTALL,
)
_NUMBERS = ("int", "uint", "float", "double", "halffloat", "decimal")


def block(*parts: str) -> str:
    """All that is shown of one result."""
    return f'<div class="dbrag">{STYLE}{"".join(parts)}</div>'


def visible(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """Text on one line, of characters that are seen; not yet escaped."""
    return brief(text, limit, _seen)


def brief(value: Any, limit: int, as_text: Callable[[Any], str] = cell_text) -> str:
    """The first ``limit`` characters of a value, and how many more there are.

    A character that is shown as an escape counts as one.
    """
    left, unit = 0, "character"
    if isinstance(value, str):  # a cell may be megabytes: cut before anything is done with it
        value, left = value[:limit], len(value) - limit
    elif isinstance(value, bytes | bytearray):
        unit, bound = "byte", 3 * (limit // 4)  # base64 takes four characters for three bytes
        value, left = bytes(value[:bound]), len(value) - bound
    text = as_text(value)
    if not isinstance(value, str | bytes | bytearray) and len(text) > limit:
        text, left = text[:limit], len(text) - limit
    return f"{text}… {count(left, f'more {unit}')}" if left > 0 else text


def escaped(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """Foreign text as HTML text."""
    return html.escape(visible(text, limit))


def own(text: object, limit: int = MAX_CELL_CHARS) -> str:
    """A name or phrase of foreign origin amid other text, read in its own direction."""
    return f'<bdi dir="auto">{escaped(str(text), limit)}</bdi>'


def paragraph(text: str, name: str = "") -> str:
    """Foreign text as a paragraph of its own."""
    return f'<p dir="auto"{_class(name)}>{escaped(text)}</p>' if text else ""


def line(inside: str, name: str = "") -> str:
    """A paragraph of HTML."""
    return f"<p{_class(name)}>{inside}</p>" if inside else ""


def notes(warnings: Iterable[Any]) -> str:
    """Warnings: what the reader has to know; their code is in the title."""
    told = [
        f'<li title="{html.escape(visible(one.code))}" dir="auto">{escaped(one.message)}</li>'
        for one in warnings
    ]
    return f'<ul class="dbrag-notes" aria-label="What to know">{"".join(told)}</ul>' if told else ""


def details(summary: str, *parts: str, is_open: bool = False) -> str:
    """Something that can be folded; ``summary`` is HTML."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{summary}</summary>{''.join(parts)}</details>"


def result_table(execution: Execution, max_rows: int = MAX_ROWS) -> str:
    """The first rows of a result, and how many there are."""
    columns = execution.columns
    if not columns:
        return ""
    names = [column.name for column in columns[:MAX_COLUMNS]]
    rows = [row[:MAX_COLUMNS] for row in execution.rows[:max_rows]]
    numeric = [column.type.startswith(_NUMBERS) for column in columns]
    told = cut_text(len(rows), len(execution.rows), len(names), len(columns))
    return table(names, rows, html.escape(told), numeric)


def cut_text(rows: int, all_rows: int, columns: int, all_columns: int) -> str:
    """``3 rows``, or how many of them are shown, and how many of the columns."""
    parts = [count(all_rows, "row")]
    if rows < all_rows:
        parts = [f"{rows:,} of {count(all_rows, 'row')} shown"]
    if columns < all_columns:
        parts.append(f"{columns:,} of {count(all_columns, 'column')} shown")
    if rows < all_rows or columns < all_columns:
        parts.append(".to_pandas() and .to_arrow() give all")
    return "; ".join(parts)


def table(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    caption: str = "",
    numeric: Sequence[bool] | None = None,
) -> str:
    """A table; ``caption`` is HTML."""
    to_right = numeric or [False] * len(names)
    head = "".join(
        f'<th scope="col"{_class("dbrag-number" if number else "")}>{own(name)}</th>'
        for name, number in zip(names, to_right, strict=False)
    )
    body = "".join(
        f"<tr>{''.join(_cell(v, n) for v, n in zip(row, to_right, strict=False))}</tr>"
        for row in rows
    )
    told = f"<caption>{caption}</caption>" if caption else ""
    return (
        '<div class="dbrag-scroll"><table>'
        f"{told}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any, number: bool) -> str:
    if value is None:
        return '<td class="dbrag-null">NULL</td>'
    name = _class("dbrag-number" if number else "")
    return f'<td dir="auto"{name}>{html.escape(brief(value, MAX_CELL_CHARS))}</td>'


def sql_block(sql: str) -> str:
    """A statement in colours; it reads from left to right, its texts in their own direction."""
    shown, left = sql[:MAX_SQL_CHARS], len(sql) - MAX_SQL_CHARS
    parts = []
    end = 0
    for match in _TOKEN.finditer(shown):
        parts += [_plain(shown[end : match.start()]), _token(match)]
        end = match.end()
    parts.append(_plain(shown[end:]))
    if left > 0:
        parts.append(f"… {count(left, 'more character')}")
    return f'<pre dir="ltr"><code>{"".join(parts)}</code></pre>'


def _token(match: re.Match[str]) -> str:
    text = _plain(match[0])
    match match.lastgroup:
        case "word":
            is_keyword = match[0].lower() in _KEYWORDS
            # A name in letters of another direction must not turn what stands around it.
            return f'<span class="dbrag-keyword">{text}</span>' if is_keyword else _isolated(text)
        case "name":
            return _isolated(text)
        case "string" | "comment" as kind:
            return f'<bdi class="dbrag-{kind}">{text}</bdi>'
    return f'<span class="dbrag-digits">{text}</span>'


def _isolated(text: str) -> str:
    return text if text.isascii() else f"<bdi>{text}</bdi>"


def _plain(text: str) -> str:
    """As ``escaped``, but lines stay lines, and NULL is no missing value."""
    return "\n".join(html.escape(_seen(one)) for one in text.split("\n"))


def _seen(text: str) -> str:
    """Unlike in a cell, the word NULL is no missing value and needs no marks."""
    return text if text.isprintable() else cell_text(text)


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
