"""What an answer rests on, for ``ask --explain``: the program in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbrag.interfaces.cli.render import count
from dbrag.interfaces.cli.tables import cell_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def _name(table: Mapping[str, Any]) -> str:
    return cell_text(".".join(str(part) for part in table.values() if part is not None))


def _few(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join([*names[:_SHOWN], *([f"{more:,} more"] if more > 0 else [])])


def _more(found: Sequence[Any]) -> list[str]:
    more = len(found) - _SHOWN
    return [f"  and {more:,} more (--json shows all)"] if more > 0 else []
