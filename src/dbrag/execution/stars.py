"""``*`` where some columns may not be read: written out as those that may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from dbrag.errors import Refused
from dbrag.execution.scope import check_width

if TYPE_CHECKING:
    from dbrag.execution.dialects import Rules
    from dbrag.execution.scope import Frame, Visible

_HINT = "name the columns that you need"


def check_stars(node: exp.Select, frame: Frame, edits: dict[int, str | None], rules: Rules) -> None:
    """Write every ``*`` of a SELECT as its readable columns.

    Raises:
        Refused: a star that cannot be written so; the message names no column.
    """
    width = 0
    for star in _stars(node):
        parent = star.parent
        if isinstance(parent, exp.Count):
            continue
        column = parent if isinstance(parent, exp.Column) else None
        place = column or star
        start = star.meta.get("start")
        if place.parent is not node or place.arg_key != "expressions" or start is None:
            raise Refused("* is not possible in this place", _HINT)
        if any(star.args.get(key) for key in ("except_", "replace", "rename")):
            raise Refused("* with exceptions is not possible here", _HINT)
        entries = frame.visible
        if column is not None:
            entries = [v for v in entries if v.alias == column.table.casefold()]
        elif any(join.args.get("using") for join in node.args.get("joins") or ()):
            raise Refused("* with JOIN … USING is not possible here", _HINT)
        width += sum(len(v.names) for v in entries)
        check_width(width)
        edits[start] = ", ".join(_columns(v, rules) for v in entries)
        if column is not None:
            for key in ("catalog", "db", "table"):
                if column.args.get(key) is not None:
                    edits[column.args[key].meta["start"]] = None
    for part in node.walk(prune=lambda n: n is not node and isinstance(n, exp.Query)):
        if isinstance(part, (exp.Columns, exp.Match, exp.MatchAgainst)):
            raise Refused(f"{part.key.upper()} is not possible here", _HINT)


def _stars(node: exp.Select) -> list[exp.Star]:
    """The stars of this SELECT, not those of queries inside it."""
    found = []
    for part in node.walk(prune=lambda n: n is not node and isinstance(n, exp.Query)):
        if isinstance(part, exp.Star):
            found.append(part)
    return found


def _columns(visible: Visible, rules: Rules) -> str:
    if visible.label is None or visible.columns is None or visible.loose:
        raise Refused("* is not possible here", _HINT)
    write = rules.quoted if rules.own_words else rules.written
    return ", ".join(f"{write(visible.label)}.{write(name)}" for name in visible.names)
