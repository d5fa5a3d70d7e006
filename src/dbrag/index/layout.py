"""Where everything in an index folder is: the on-disk format as code.

::

    <root>/
      manifest.json        names the generation in use; replaced by atomic rename
      writer.lock          locked by the process that writes; holds its pid
      row-vectors.part     rows that an unfinished run has encoded, for the next one
      gen-000007/          one complete, consistent set; never changed once named
        reader.lock        share-locked by every process that reads this set
        catalog/           one file per source, JSON lines: tables, keys, profiles, sample
                           rows, marks; its first line says where each table is
        names.npy          float32 [n_entries, dim]: name, joined tables, columns
        columns.npy        float16 [n_column_texts, dim]: "table column", each text once
        *.hash.npy         uint8 [rows of the matrix, 16]: hash of each row's text
        column_axes.npy    float32 [64, dim]: principal axes of columns.npy; only where it
                           has more rows than are compared one by one
        column_low.npy     float32 [n_column_texts, 64]: columns.npy along these axes
        table_ids.npy      int64 [n_tables]: each table's ``table_id``
        edges.npy          int32 [n_edges, 2]: tables that join, both directions, sorted
        entry_starts.npy   int64 [n_tables + 1]: where a table's entries start in names.npy
                           and bm25/: one, or one per group of columns of a wide table
        column_ids.npy     int32 [n_columns]: row of columns.npy, tables one after another
        column_starts.npy  int64 [n_tables + 1]: where a table's columns start in column_ids
        sketches/, joins/  per source: hashes of each column's values, joins inferred from them
        joins.jsonl        all joins, a line per source; the first says where each is
        notes.json         the user's notes that the texts were made with, if any
        bm25/              sparse BM25 matrix over the same entries
        lance/             rows.lance and values.lance: full text over cells
        row_vectors.npy    float32 [n_row_vectors, dim]: rows as JSON, table after table
        row_hashes.npy     int64 [n_row_vectors]: hash of each row and its column names
        row_ids.npy        uint64 [n_row_vectors]: the row's id in rows.lance
        row_tables.npy     int64 [tables with rows, 3]: table id, first row, one past the last

A new generation takes over what stays: catalog files as hard links, vectors by the hash
of their text, full-text rows by copying, so only what changed is read or encoded. In a
source that changed these are the tables whose mark did not. Row i
of every table array is table i of the catalog: sources by name, then schemas,
then names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag.types import TableRef

FORMAT = "dbrag-index"
FORMAT_VERSION = 3
"""Raised whenever an older dbrag could misread the folder, or this one an older folder."""

_GENERATION = re.compile(r"gen-(\d{6,})")


@dataclass(frozen=True, slots=True)
class Layout:
    """An index folder."""

    root: Path

    @property
    def manifest(self) -> Path:
        """The one file that says what is valid."""
        return self.root / "manifest.json"

    @property
    def writer_lock(self) -> Path:
        """Also the sign that the folder is an index, from the first moment on."""
        return self.root / "writer.lock"

    @property
    def row_vectors_part(self) -> Path:
        """Row vectors of a run that is not finished; a killed one leaves it to the next."""
        return self.root / "row-vectors.part"

    def generation(self, number: int) -> Generation:
        """The folder of one generation, existing or not."""
        return Generation(self.root / f"gen-{number:06}")

    def generations(self) -> dict[int, Generation]:
        """All generation folders there are, by number."""
        found: dict[int, Generation] = {}
        for path in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            match = _GENERATION.fullmatch(path.name)
            if match and path.is_dir():
                found[int(match[1])] = Generation(path)
        return found


@dataclass(frozen=True, slots=True)
class Generation:
    """One consistent set of files."""

    root: Path

    @property
    def reader_lock(self) -> Path:
        """Share-locked while somebody reads this generation."""
        return self.root / "reader.lock"

    @property
    def catalogs(self) -> Path:
        """Folder of the catalog files."""
        return self.root / "catalog"

    def catalog(self, source: str) -> Path:
        """The catalog file of one source (its name may hold any character)."""
        name = blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return self.catalogs / f"{name}.jsonl"

    def matrix(self, name: str) -> Path:
        """``names`` or ``columns``: vectors of length 1."""
        return self.root / f"{name}.npy"

    def hashes(self, name: str) -> Path:
        """Text hashes of the rows of ``matrix(name)``."""
        return self.root / f"{name}.hash.npy"

    @property
    def column_axes(self) -> Path:
        """Principal axes of the column vectors, where these are many."""
        return self.root / "column_axes.npy"

    @property
    def column_low(self) -> Path:
        """The column vectors along these axes."""
        return self.root / "column_low.npy"

    @property
    def table_ids(self) -> Path:
        """``table_id`` of every table."""
        return self.root / "table_ids.npy"

    @property
    def edges(self) -> Path:
        """Positions of tables that join."""
        return self.root / "edges.npy"

    @property
    def entry_starts(self) -> Path:
        """Where the entries of each table start in ``names.npy`` and ``bm25``."""
        return self.root / "entry_starts.npy"

    @property
    def column_ids(self) -> Path:
        """For every column the row of its text in ``columns.npy``."""
        return self.root / "column_ids.npy"

    @property
    def column_starts(self) -> Path:
        """Where the columns of each table start in ``column_ids``."""
        return self.root / "column_starts.npy"

    @property
    def row_vectors(self) -> Path:
        """Vectors of rows; only where rows are searched by them, or may be again."""
        return self.root / "row_vectors.npy"

    @property
    def row_hashes(self) -> Path:
        """Hashes of the rows that ``row_vectors`` holds."""
        return self.root / "row_hashes.npy"

    @property
    def row_ids(self) -> Path:
        """For every row vector the id of the row's text in LanceDB."""
        return self.root / "row_ids.npy"

    @property
    def row_tables(self) -> Path:
        """Where the row vectors of each table are."""
        return self.root / "row_tables.npy"

    @property
    def notes(self) -> Path:
        """The user's notes, by table; only where there are any."""
        return self.root / "notes.json"

    @property
    def bm25(self) -> Path:
        """Folder of the sparse matrix."""
        return self.root / "bm25"

    @property
    def lance(self) -> Path:
        """Folder of the LanceDB tables."""
        return self.root / "lance"


def table_id(ref: TableRef) -> int:
    """A table's identity as 63 bits: filters in LanceDB then need no quoting.

    Two of 100,000 tables share one with probability 5e-10.
    """
    return _hash(ref.source, ref.schema, ref.name)


def source_id(name: str) -> int:
    """A source's identity as 63 bits."""
    return _hash(name)


def _hash(*parts: str | None) -> int:
    text = "\x1f".join("\x00" if part is None else part for part in parts)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
