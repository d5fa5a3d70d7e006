"""Tables as JSON and back: one catalog file per source, nothing lost on the way.

100,000 tables with their profiles are gigabytes of objects, so a table is found in the
file by its place and read alone (``CatalogFile``; ``index.lazy`` keeps the latest ones).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from dbrag.types import Column, ColumnProfile, ForeignKey, Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


def write_catalog(path: Path, tables: Sequence[Table], marks: Mapping[TableRef, str]) -> None:
    """Write the tables of one source, each with its mark from before it was read.

    The first line is the head: names of all tables and where their lines start. Then
    come two lines a table: its column names, and all of it.
    """
    lines: list[bytes] = []
    for table in tables:
        data = _fields(table) | {"mark": marks.get(table.ref, "")}
        lines += [_line([column.name for column in table.columns]), _line(data)]
    head = {
        "tables": [_parts(table.ref) for table in tables],
        "starts": [0, *accumulate(map(len, lines))],
        "notes": {i: [t.notes, t.odd] for i, t in enumerate(tables) if t.notes},
        "keys": [
            [i, key.columns, _parts(key.target), key.target_columns]
            for i, table in enumerate(tables)
            for key in table.foreign_keys
        ],
        "redacted": [i for i, table in enumerate(tables) if table.redacted],
    }
    with path.open("wb") as file:
        file.writelines([_line(head), *lines])


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """One source's catalog, read table by table; nothing is kept, no file stays open.

    Attributes:
        refs: the tables in their order.
        notes: position → ``Table.notes`` and ``Table.odd``, where there are any.
        redacted: positions of tables with columns nobody may read.
    """

    refs: tuple[TableRef, ...]
    notes: Mapping[int, tuple[tuple[str, ...], tuple[str, ...]]]
    redacted: tuple[int, ...]
    _path: Path
    _starts: tuple[int, ...]

    @classmethod
    def open(cls, path: Path) -> CatalogFile:
        """Read the head.

        Raises:
            OSError, ValueError, KeyError, TypeError: missing or damaged.
        """
        with path.open("rb") as file:
            head = json.loads(file.readline())
            base = file.tell()
        starts = tuple(base + start for start in head["starts"])
        if len(starts) != 2 * len(head["tables"]) + 1 or path.stat().st_size != starts[-1]:
            raise ValueError(f"{path.name} is cut short")
        refs = tuple(TableRef(*parts) for parts in head["tables"])
        if not all(type(ref.source) is type(ref.name) is str for ref in refs):
            raise ValueError(f"{path.name} names no tables")
        return cls(
            refs=refs,
            notes={int(i): (tuple(n), tuple(odd)) for i, (n, odd) in head["notes"].items()},
            redacted=tuple(head["redacted"]),
            _path=path,
            _starts=starts,
        )

    def foreign_keys(self) -> Iterator[tuple[TableRef, ForeignKey]]:
        """The declared keys of all its tables, read anew at each call.

        Raises:
            OSError, ValueError, KeyError, TypeError: missing or damaged.
        """
        with self._path.open("rb") as file:
            head = json.loads(file.readline())
        for i, columns, target, target_columns in head["keys"]:
            key = ForeignKey(tuple(columns), TableRef(*target), tuple(target_columns))
            yield self.refs[i], key

    def columns(self, i: int) -> list[str]:
        """The column names of table ``i``.

        Raises:
            OSError, ValueError, TypeError: missing or damaged.
        """
        return list(json.loads(self._read(2 * i)))

    def table(self, i: int) -> Table:
        """Table ``i``.

        Raises:
            OSError, ValueError, KeyError, TypeError: missing or damaged.
        """
        return _table(json.loads(self._read(2 * i + 1)))

    def size(self, i: int) -> int:
        """Bytes that table ``i`` takes in the file."""
        return self._starts[2 * i + 2] - self._starts[2 * i + 1]

    def columns_size(self, i: int) -> int:
        """Bytes that its column names take."""
        return self._starts[2 * i + 1] - self._starts[2 * i]

    def _read(self, line: int) -> bytes:
        start, end = self._starts[line], self._starts[line + 1]
        with self._path.open("rb", buffering=0) as file:
            file.seek(start)
            data = file.read(end - start)
        if len(data) != end - start:
            raise ValueError(f"{self._path.name} is cut short")
        return data


def read_catalog(path: Path) -> Iterator[Table]:
    """The tables of one source, one after another, in the order they were written.

    Raises:
        OSError, ValueError, KeyError, TypeError: missing or damaged.
    """
    for table, _ in read_marked(path):
        yield table


def read_marked(path: Path) -> Iterator[tuple[Table, str]]:
    """The same with the mark of each table, "" where there was none.

    Raises:
        OSError, ValueError, KeyError, TypeError: missing or damaged.
    """
    n_tables = len(CatalogFile.open(path).refs)
    with path.open("rb") as file:
        file.readline()
        for _ in range(n_tables):
            file.readline()
            entry = json.loads(file.readline())
            yield _table(entry), entry["mark"]


def _parts(ref: TableRef) -> list[str | None]:
    return [ref.source, ref.schema, ref.name]


def _line(data: object) -> bytes:
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), default=_fields)
    return text.encode("ascii") + b"\n"


def _fields(part: Any) -> dict[str, Any]:
    """A part of a table as JSON; ``dataclasses.asdict`` would copy every cell."""
    return {name: getattr(part, name) for name in part.__slots__}


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
        estimate=data["estimate"],
        redacted=tuple(data["redacted"]),
        notes=tuple(data["notes"]),
        odd=tuple(data["odd"]),
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
        whole=tuple(data["whole"]),
    )
