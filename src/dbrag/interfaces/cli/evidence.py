"""What an answer rests on: the program in words, and other readings of the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbrag.interfaces.cli.render import count, terminal_width
from dbrag.interfaces.cli.tables import aligned, cell_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbrag.types import Reading

_SHOWN = 20
"""Lines of one kind; the JSON has all."""

_HEADS = {
    "joins": "joined",
    "filters": "only where",
    "groups": "for each",
    "results": "shown",
    "sets": "also",
    "order": "ordered by",
}


def evidence_lines(evidence: Mapping[str, Any]) -> list[str]:
    """Tables with their rows and columns read, then the program in words."""
    columns: dict[str, list[str]] = {}
    for entry in evidence["columns"]:
        columns.setdefault(_name(entry["table"]), []).append(cell_text(entry["column"]))
    lines = ["read:"]
    for entry in evidence["tables"][:_SHOWN]:
        name = _name(entry["table"])
        rows = "" if entry["rows"] is None else f", {count(entry['rows'], 'row')} when indexed"
        lines.append(f"  {name} ({_few(columns.get(name, [])) or 'no column'}{rows})")
    lines += _more(evidence["tables"])
    for part, head in _HEADS.items():
        texts = evidence[part]
        if texts:
            lines += [f"{head}:", *(f"  {cell_text(text)}" for text in texts[:_SHOWN])]
            lines += _more(texts)
    if evidence["limit"]:
        lines.append(f"at most: {cell_text(evidence['limit'])}")
    return lines


def reading_lines(reading: Reading, max_rows: int | None) -> list[str]:
    """Another reading with its answer: what differs, the first rows, the SQL."""
    votes = count(reading.votes, "program")
    lines = ["", f"another reading ({votes}): {cell_text(reading.difference)}"]
    rows = reading.execution.rows
    shown = rows[: _SHOWN if max_rows is None else min(max_rows, _SHOWN)]
    names = [column.name for column in reading.execution.columns]
    lines += aligned(names, shown, width=terminal_width())
    of = f"{len(shown):,} of {count(len(rows), 'row')} shown (--json shows more)"
    lines.append(of if len(shown) < len(rows) else count(len(rows), "row"))
    return [*lines, f"its sql: {cell_text(reading.program.sql)}"]


def _name(table: Mapping[str, Any]) -> str:
    return cell_text(".".join(str(part) for part in table.values() if part is not None))


def _few(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join([*names[:_SHOWN], *([f"{more:,} more"] if more > 0 else [])])


def _more(found: Sequence[Any]) -> list[str]:
    more = len(found) - _SHOWN
    return [f"  and {more:,} more (--json shows all)"] if more > 0 else []
