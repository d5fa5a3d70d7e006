"""Values as they are: what DuckDB's Python client would change is asked for as text.

Seen with 2.0: nanoseconds are dropped, an interval's months become 30 days, "infinity"
becomes the year 9999, and a 4-byte 0.1 becomes 0.10000000149011612.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.sources.statements import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb.sqltypes import DuckDBPyType

_TEXT = frozenset({"timestamp_ns", "timestamptz_ns", "time_ns", "interval", "geometry"})
# Kinds with an infinity, and the kind of equal precision that Python knows.
_ENDLESS = {
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_s": "TIMESTAMP",
    "timestamp_ms": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMPTZ",
}
_NESTED = frozenset({"list", "array", "struct", "map", "tuple", "union"})


def exact_select(sql: str, types: Sequence[DuckDBPyType]) -> str:
    """The statement, around which a SELECT stands where a value would come out changed.

    Dates and times inside lists, structs and maps come as text.

    Args:
        sql: exactly one SELECT, checked to be so.
        types: of its result columns.
    """
    cells = [_cell(kind, f"c{i}") for i, kind in enumerate(types)]
    plain = [f"c{i}" for i in range(len(types))]
    if cells == plain:
        return sql
    # The line break ends a comment at the end of the statement.
    inner = sql.rstrip().rstrip(";")
    return f"SELECT {', '.join(cells)} FROM (\n{inner}\n) AS _({', '.join(plain)})"


def _cell(kind: DuckDBPyType, name: str) -> str:
    if kind.id in _ENDLESS:
        known = _ENDLESS[kind.id]
        both = f"UNION(v {known}, t VARCHAR)"
        return (
            f"CASE WHEN isinf({name}::{known}) THEN CAST(CAST({name} AS VARCHAR) AS {both}) "
            f"ELSE CAST({name}::{known} AS {both}) END"
        )
    if kind.id == "float":
        return f"CAST(CAST({name} AS VARCHAR) AS DOUBLE)"
    if kind.id in _TEXT or (kind.id in _NESTED and _changed(kind)):
        return f"CAST({name} AS {_readable(kind)})"
    return name


def _changed(kind: DuckDBPyType) -> bool:
    if kind.id in _NESTED:
        return any(_changed(part) for _, part in kind.children if not isinstance(part, int))
    return kind.id in _TEXT or kind.id in _ENDLESS


def _readable(kind: DuckDBPyType) -> str:
    """The type with text in the place of every kind that would be changed."""
    if not _changed(kind):
        return str(kind)
    parts = (
        [
            (name, _readable(part))
            for name, part in kind.children
            if kind.id in _NESTED
            if not isinstance(part, int)
        ]
        if kind.id in _NESTED
        else []
    )
    match kind.id:
        case "list":
            return f"{parts[0][1]}[]"
        case "array":
            return f"{parts[0][1]}[{kind.children[1][1]}]"
        case "map":
            return f"MAP({parts[0][1]}, {parts[1][1]})"
        case "tuple":
            return f"TUPLE({', '.join(part for _, part in parts)})"
        case "struct" | "union":
            named = [f"{quoted(name)} {part}" for name, part in parts]
            # A union's first child is the tag that tells its members apart.
            members = named[1:] if kind.id == "union" else named
            return f"{kind.id.upper()}({', '.join(members)})"
    return "VARCHAR"


def iso_interval(text: str) -> str:
    """DuckDB's text of an interval as ISO 8601: ``1 month 00:00:03.5`` → ``P1MT3.5S``.

    A negative part has its own sign, as PostgreSQL writes it: ``P-1DT-1H``.
    """
    *parts, last = text.split()
    clock = ""
    if ":" in last:
        sign = "-" if last.startswith("-") else ""
        hours, minutes, seconds = last.lstrip("-").split(":")
        units = (("H", hours), ("M", minutes), ("S", seconds))
        clock = "".join(
            f"{sign}{_plain_number(number)}{unit}" for unit, number in units if number.strip("0.")
        )
    else:
        parts.append(last)
    days = "".join(
        f"{number}{unit[0].upper()}" for number, unit in zip(parts[::2], parts[1::2], strict=True)
    )
    return f"P{days}" + (f"T{clock}" if clock else "" if days else "T0S")


def _plain_number(text: str) -> str:
    whole, point, fraction = text.partition(".")
    return (whole.lstrip("0") or "0") + point + fraction
