"""Tables as JSON and back: one catalog file per source, nothing lost on the way."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dbrag.types import Column, ColumnProfile, ForeignKey, Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def write_catalog(path: Path, tables: Sequence[Table], marks: Mapping[TableRef, str]) -> None:
    """Write the tables of one source, each with its mark from before it was read."""
    data = [asdict(table) | {"mark": marks.get(table.ref, "")} for table in tables]
    path.write_text(json.dumps(data, ensure_ascii=True, separators=(",", ":")), encoding="ascii")


def read_catalog(path: Path) -> list[Table]:
    """The tables of one source, in the order they were written.

    Raises:
        OSError, ValueError, KeyError, TypeError: missing or damaged.
    """
    return [_table(entry) for entry in json.loads(path.read_bytes())]


def read_marked(path: Path) -> list[tuple[Table, str]]:
    """The same with the mark of each table, "" where there was none.

    Raises:
        OSError, ValueError, KeyError, TypeError: missing or damaged.
    """
    return [(_table(entry), entry.get("mark", "")) for entry in json.loads(path.read_bytes())]


def _table(data: dict[str, Any]) -> Table:
    return Table(
        ref=TableRef(**data["ref"]),
        # The user's synonyms are never in the file: they come from the notes in force.
        columns=tuple(
            Column(c["name"], c["type"], c["nullable"], c["comment"]) for c in data["columns"]
        ),
        kind=data["kind"],
        primary_key=tuple(data["primary_key"]),
        foreign_keys=tuple(
            ForeignKey(
                tuple(key["columns"]), TableRef(**key["target"]), tuple(key["target_columns"])
            )
            for key in data["foreign_keys"]
        ),
        comment=data["comment"],
        row_count=data["row_count"],
        rows_read=data["rows_read"],
        sampled=data["sampled"],
        profile=tuple(_profile(entry) for entry in data["profile"]),
        sample_rows=tuple(tuple(row) for row in data["sample_rows"]),
        # Not in catalogs of the first format.
        estimate=data.get("estimate"),
        redacted=tuple(data.get("redacted", ())),
        notes=tuple(data.get("notes", ())),
        odd=tuple(data.get("odd", ())),
    )


def _profile(data: dict[str, Any]) -> ColumnProfile:
    return ColumnProfile(
        column=data["column"],
        nulls=data["nulls"],
        distinct=data["distinct"],
        minimum=data["minimum"],
        maximum=data["maximum"],
        frequent=tuple((value, count) for value, count in data["frequent"]),
        samples=tuple(data["samples"]),
        whole=tuple(data.get("whole", ())),
    )
