"""Sketches of the columns of one source, and the joins inferred from them, as files.

Both lie beside the source's catalog and are taken over with it: ``sketches/<hash>.npz``
(all hashes in one array) and ``joins/<hash>.json``.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dbrag.catalog import inference
from dbrag.catalog.joins import JoinEdge
from dbrag.catalog.sketches import ColumnSketch, sketch_table
from dbrag.index.arrays import load_archive
from dbrag.index.files import link
from dbrag.types import TableRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from dbrag.index.layout import Generation
    from dbrag.types import Table

Columns = dict[TableRef, list[ColumnSketch]]


def sketch_file(files: Generation, source: str) -> Path:
    """``sketches/<hash of the source's name>.npz``."""
    return files.root / "sketches" / f"{files.catalog(source).stem}.npz"


def inferred_file(files: Generation, source: str) -> Path:
    """``joins/<hash of the source's name>.json``."""
    return files.root / "joins" / f"{files.catalog(source).stem}.json"


def write_sketches(files: Generation, source: str, tables: Sequence[Table], of: Columns) -> None:
    """Write the sketches of a source and what is inferred from them.

    Raises:
        OSError: they cannot be written.
    """
    import numpy as np

    listed = [(table.ref, column) for table in tables for column in of.get(table.ref, ())]
    data = [
        [*asdict(ref).values(), *(getattr(column, name) for name in _FIELDS)]
        for ref, column in listed
    ]
    hashes = [column.hashes for _, column in listed]
    path = sketch_file(files, source)
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    with path.open("wb") as file:
        np.savez(
            file,
            columns=np.frombuffer(text, np.uint8),
            lengths=np.array([len(one) for one in hashes], np.int64),
            hashes=np.concatenate([np.empty(0, np.uint32), *hashes]),
        )
    write_inferred(files, source, infer(tables, of))


_FIELDS = ("name", "kind", "rows", "nulls", "distinct", "minimum", "maximum", "complete")


def read_sketches(files: Generation, source: str) -> Columns:
    """The sketches by table; none where the source was indexed without.

    Raises:
        OSError, ValueError, KeyError, TypeError: damaged.
    """
    import numpy as np

    try:
        stored = load_archive(sketch_file(files, source))
        columns = json.loads(stored["columns"].tobytes())
        ends = np.cumsum(stored["lengths"])
        hashes = stored["hashes"]
    except FileNotFoundError:
        return {}
    found: Columns = {}
    start = 0
    for (*ref, name, kind, rows, nulls, distinct, low, high, complete), end in zip(
        columns, ends.tolist(), strict=True
    ):
        sketch = ColumnSketch(
            name, kind, rows, nulls, distinct, low, high, hashes[start:end], complete
        )
        found.setdefault(TableRef(*ref), []).append(sketch)
        start = end
    return found


def infer(tables: Iterable[Table], of: Columns) -> tuple[JoinEdge, ...]:
    """The inferred joins of one source."""
    return inference.infer_joins([sketch_table(table, of.get(table.ref, ())) for table in tables])


def write_inferred(files: Generation, source: str, edges: Sequence[JoinEdge]) -> None:
    """Write the inferred joins of a source.

    Raises:
        OSError: they cannot be written.
    """
    path = inferred_file(files, source)
    path.parent.mkdir(exist_ok=True)
    data = {"version": inference.VERSION, "edges": [edge_data(edge) for edge in edges]}
    path.write_text(json.dumps(data, ensure_ascii=True, separators=(",", ":")), encoding="ascii")


def read_inferred(
    files: Generation, source: str, tables: Iterable[Table]
) -> tuple[JoinEdge, ...] | None:
    """The inferred joins of a source; None where it was indexed without sketches.

    They are inferred anew where another version of dbrag did it.

    Raises:
        OSError, ValueError, KeyError, TypeError: damaged.
    """
    path = inferred_file(files, source)
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    if data["version"] == inference.VERSION:
        return tuple(edge_of(entry) for entry in data["edges"])
    edges = infer(tables, read_sketches(files, source))
    path.unlink()  # it may be a link to the file of the generation before
    write_inferred(files, source, edges)
    return edges


def keep_sketches(previous: Generation, files: Generation, source: str) -> None:
    """Take over the files of a source that stays, if it has them."""
    for place in (sketch_file, inferred_file):
        old, new = place(previous, source), place(files, source)
        if old.exists():
            new.parent.mkdir(exist_ok=True)
            link(old, new)


def are_whole(files: Generation, source: str) -> bool:
    """Whether the files of a source, if it has them, can be read."""
    try:
        read_sketches(files, source)
        if inferred_file(files, source).exists():
            data = json.loads(inferred_file(files, source).read_bytes())
            _ = data["version"], [edge_of(entry) for entry in data["edges"]]
    except Exception:  # of numpy, zip and JSON alike
        return False
    return True


def edge_data(edge: JoinEdge) -> Mapping[str, Any]:
    """An edge as JSON."""
    return asdict(edge)


def edge_of(data: Mapping[str, Any]) -> JoinEdge:
    """The edge back.

    Raises:
        KeyError, TypeError: damaged.
    """
    return JoinEdge(
        left=TableRef(**data["left"]),
        left_columns=tuple(data["left_columns"]),
        right=TableRef(**data["right"]),
        right_columns=tuple(data["right_columns"]),
        declared=data["declared"],
        confidence=data["confidence"],
        evidence=data["evidence"],
    )
