"""Candidates, status and reports as HTML."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from dbrag.interfaces.cli.render import count, duration, rerank_line, size
from dbrag.interfaces.notebook import markup

if TYPE_CHECKING:
    from dbrag.display import StatusReport
    from dbrag.types import Candidate, IndexReport, SearchResult

_MOST = 100
"""Lines of a table of sources; a folder of more is told by their number."""


def search_html(result: SearchResult) -> str:
    """The candidates, best first, and why."""
    parts = [markup.paragraph(result.question, "dbrag-faint"), markup.notes(result.warnings)]
    rows = [
        (i, str(one.table), f"{one.score:.3f}", one.reason)
        for i, one in enumerate(result.candidates, 1)
    ]
    told = f"{count(len(rows), 'table')} in {duration(result.seconds)}"
    numeric = (True, False, True, False)
    names = ("", "table", "score", "why")
    parts.append(
        markup.table(names, rows, html.escape(told), numeric)
        if rows
        else markup.line("No table matches.", "dbrag-text")
    )
    if result.rerank:
        parts.append(markup.line(html.escape(rerank_line(result.rerank)), "dbrag-faint"))
    return markup.block(*parts)


def candidate_html(candidate: Candidate) -> str:
    """A table with the parts of its score and the evidence in its rows."""
    score = ", ".join(f"{markup.own(name)} {part:+.3f}" for name, part in candidate.parts.items())
    parts = [
        markup.paragraph(str(candidate.table), "dbrag-text"),
        markup.line(f"score {candidate.score:.3f}" + (f" = {score}" if score else "")),
        markup.paragraph(candidate.reason),
    ]
    if candidate.matches:
        values = [(one.column, one.value, one.said, one.how) for one in candidate.matches]
        names = ("column", "value", "asked", "how near")
        parts.append(markup.table(names, values, "values that the question mentions"))
    if candidate.rows:
        columns = list(dict.fromkeys(name for row in candidate.rows for name in row))
        shown = columns[: markup.MAX_COLUMNS]
        rows = [[row.get(name) for name in shown] for row in candidate.rows[: markup.MAX_ROWS]]
        cut = (len(rows), len(candidate.rows), len(shown), len(columns))
        parts.append(markup.table(shown, rows, f"rows that fit: {_counted(*cut)}"))
    return markup.block(*parts)


def index_html(report: IndexReport) -> str:
    """What indexing did with each source."""
    rows = [
        (one.name, one.status, one.tables, one.rows, one.rows_indexed, one.reason)
        for one in report.sources
    ]
    told = f"{duration(report.seconds)}, index {size(report.bytes)}"
    names = ("source", "status", "tables", "rows", "rows indexed", "note")
    return markup.block(_sources(names, rows, told), markup.notes(report.warnings))


def status_html(status: StatusReport) -> str:
    """Where the index is, and what it knows of each source."""
    there = size(int(status.get("bytes") or 0)) if status.get("exists") else "not built yet"
    head = f"index: {markup.own(status.get('index', ''), 1000)} ({there})"
    rows = []
    for one in status.get("sources") or ():
        age = one.get("age_s")
        ago = "" if age is None else f"{duration(float(age))} ago"
        counts = [one.get(name) for name in ("tables", "rows", "rows_indexed")]
        places = [one.get("reason") or "", one.get("location") or ""]
        rows.append((one["name"], one["status"], *counts, ago, *places))
    names = ("source", "status", "tables", "rows", "rows indexed", "indexed", "note", "location")
    told = [
        f"<li>{markup.escaped(str(one['message']))}</li>" for one in status.get("warnings") or ()
    ]
    notes = f'<ul class="dbrag-notes">{"".join(told)}</ul>' if told else ""
    return markup.block(markup.line(head), _sources(names, rows), notes)


def _sources(names: tuple[str, ...], rows: list[tuple[Any, ...]], told: str = "") -> str:
    numeric = [name in ("tables", "rows", "rows indexed") for name in names]
    parts = [told] if told else []
    parts.append(_counted(min(len(rows), _MOST), len(rows), 0, 0, "source"))
    shown = [["–" if value is None else value for value in row] for row in rows[:_MOST]]
    return markup.table(names, shown, html.escape("; ".join(parts)), numeric)


def _counted(shown: int, rows: int, columns: int, all_columns: int, noun: str = "row") -> str:
    """How many there are, and how many of them are shown."""
    parts = [count(rows, noun) if shown == rows else f"{shown:,} of {count(rows, noun)} shown"]
    if columns < all_columns:
        parts.append(f"{columns:,} of {count(all_columns, 'column')} shown")
    return "; ".join(parts)
