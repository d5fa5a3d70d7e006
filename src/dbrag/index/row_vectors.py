"""Row vectors: each row's JSON encoded and compared with the question by cosine.

This is how the paper looks for rows (section 3.2): ``{"column": value, …}`` through the
same encoder as the tables, cut at the encoder's limit, every row compared. Vectors are a
float32 matrix, memory-mapped: of 357,000 rows of 384 numbers the best took 22 ms on two
cores, against 250 ms as float16 in chunks and 615 ms (996 ms) by LanceDB's flat search
over float16 (float32). The time grows with the number of rows, hence ``dense_rows``.

Where a table has more rows than that, those whose hash is smallest are encoded: as good
as drawn at random, and the same ones when other rows come or go. Equal rows of a table
are encoded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbrag.index.arrays import load_array
from dbrag.index.best import top
from dbrag.index.files import link
from dbrag.index.fulltext import scan_texts
from dbrag.index.layout import table_id
from dbrag.index.row_hashes import Known, hash_rows
from dbrag.index.rows import ROWS, row_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.layout import Generation
    from dbrag.index.row_hashes import Partial
    from dbrag.models.base import Embedder
    from dbrag.types import Table, TableRef

    Array = NDArray[np.float32]

_CHUNK = 256


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A row: its table, its cosine with the question, and its id in the full-text table."""

    table: int
    score: float
    row_id: int


class RowScores:
    """The cosine of one question with every encoded row, ``[n_rows]``."""

    def __init__(self, scores: Array, ids: NDArray[np.uint64], tables: NDArray[np.int64]) -> None:
        self._scores = scores
        self._ids = ids
        self._tables = tables

    def best(self) -> dict[int, float]:
        """The best row's cosine of every table that has rows, by ``layout.table_id``."""
        import numpy as np

        if not len(self._tables):
            return {}
        best = np.maximum.reduceat(self._scores, self._tables[:, 1])
        return dict(zip(self._tables[:, 0].tolist(), best.tolist(), strict=True))

    def of_table(self, table: int, limit: int) -> list[VectorHit]:
        """The best rows of one table, best first, equal ones in the order of rows."""
        for key, start, end in self._tables[self._tables[:, 0] == table].tolist():
            return [
                VectorHit(key, float(self._scores[i]), int(self._ids[i]))
                for i in start + top(self._scores[start:end], limit)
            ]
        return []

    def search(self, limit: int, tables: Collection[TableRef] | None = None) -> list[VectorHit]:
        """The best rows of all (of these) tables, best first, equal ones in catalog order."""
        import numpy as np

        spans = self._tables
        if tables is not None:
            wanted = [table_id(ref) for ref in tables]
            spans = spans[np.isin(spans[:, 0], np.array(wanted, np.int64))]
        if not len(spans):
            return []
        rows = np.concatenate([np.arange(start, end) for _, start, end in spans.tolist()])
        chosen = rows[top(self._scores[rows], limit)]
        of = np.searchsorted(self._tables[:, 1], chosen, side="right") - 1
        return [
            VectorHit(int(self._tables[t, 0]), float(self._scores[i]), int(self._ids[i]))
            for i, t in zip(chosen.tolist(), of.tolist(), strict=True)
        ]


class RowVectors:
    """The row vectors of one generation, for reading; shared by threads."""

    def __init__(self, generation: Generation) -> None:
        """Open the arrays.

        Raises:
            OSError, ValueError: missing, damaged, or of unequal lengths.
        """

        self._ids: NDArray[np.uint64] = load_array(generation.row_ids)
        self._tables: NDArray[np.int64] = load_array(generation.row_tables)
        self._vectors: Array = _load_vectors(generation)
        end = int(self._tables[-1, 2]) if len(self._tables) else 0
        if not len(self._vectors) == len(self._ids) == end:
            sizes = sorted({len(self._vectors), len(self._ids), end})
            raise ValueError(f"the row vectors hold {sizes} rows")
        starts, ends = self._tables[:, 1], self._tables[:, 2]
        if (starts >= ends).any() or starts[:1].any() or (starts[1:] != ends[:-1]).any():
            raise ValueError(f"{generation.row_tables.name} is out of order")

    def scores(self, question_vector: Array) -> RowScores:
        """Compare a question with every row.

        Args:
            question_vector: ``[dim]``, length 1.
        """
        import numpy as np

        if not len(self._ids):
            return RowScores(np.zeros(0, np.float32), self._ids, self._tables)
        return RowScores(self._vectors @ question_vector, self._ids, self._tables)


def write_row_vectors(
    generation: Generation,
    previous: Generation | None,
    tables: Iterable[Table],
    *,
    dense_rows: int,
    embedder: Callable[[], Embedder],
    partial: Partial,
    on_encoded: Callable[[int, int], None],
) -> dict[TableRef, int]:
    """Encode the rows of a generation whose full text is complete.

    Vectors of rows that the previous generation holds are taken over, and those that a
    killed run had already made.

    Args:
        previous: where vectors may be taken from; None encodes everything.
        dense_rows: rows of one table that are encoded at most.
        embedder: called only if a row has to be encoded.
        partial: what a killed run had encoded; what is encoded now is added.
        on_encoded: called with (rows encoded, rows to encode).

    Returns:
        The tables of which not all rows were encoded, with their number of distinct rows.
    """

    # Read once: with many tables they do not stay in memory whole.
    columns = {table.ref: [column.name for column in table.columns] for table in tables}
    refs, names = [*columns], [*columns.values()]
    chosen, cut = _choose(generation, refs, names, dense_rows)
    known = Known()
    if previous is not None and previous.row_vectors.is_file():
        known.add(load_array(previous.row_hashes), _load_vectors(previous))
    known.add(*partial.read())
    missing = ~known.holds(chosen.hashes)
    dim = embedder().dim if missing.any() else known.dim
    matrix = _new_matrix(generation, len(chosen.hashes), dim)
    known.copy(chosen.hashes, matrix, ~missing)
    done, total = 0, int(missing.sum())
    if total:
        on_encoded(done, total)
    for at, texts in _chunks(generation, names, chosen, missing):
        vectors = embedder().encode(texts)
        matrix[at] = vectors
        partial.append(chosen.hashes[at], vectors)
        done += len(texts)
        on_encoded(done, total)
    partial.close()
    _save(generation, refs, chosen, matrix)
    return cut


def keep_row_vectors(previous: Generation, generation: Generation) -> None:
    """Let vectors wait in a generation that does not use them: encoding took long."""
    for path, new in (
        (previous.row_vectors, generation.row_vectors),
        (previous.row_hashes, generation.row_hashes),
    ):
        if path.is_file():
            link(path, new)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The rows to encode, ordered by table and row: ``[n]`` each."""

    tables: NDArray[np.int32]
    ids: NDArray[np.uint64]
    hashes: NDArray[np.int64]


def _choose(
    generation: Generation,
    refs: Sequence[TableRef],
    names: Sequence[Sequence[str]],
    dense_rows: int,
) -> tuple[_Chosen, dict[TableRef, int]]:
    import numpy as np

    place = {table_id(ref): i for i, ref in enumerate(refs)}
    parts: list[tuple[Any, Any, Any]] = []
    for batch in scan_texts(generation, ROWS):
        of = np.array([place.get(key, -1) for key in batch["table_id"].to_pylist()], np.int32)
        hashes = hash_rows(batch["text"].to_pylist(), [names[i] for i in of.tolist()])
        parts.append((of, batch["_rowid"].to_numpy().astype(np.uint64), hashes))
    empty = (np.zeros(0, np.int32), np.zeros(0, np.uint64), np.zeros(0, np.int64))
    of, ids, hashes = (np.concatenate(one) for one in zip(empty, *parts, strict=True))
    order = np.lexsort((ids, hashes, of))
    of, ids, hashes = of[order], ids[order], hashes[order]
    # Of equal rows of a table the first.
    first = np.ones(len(of), bool)
    first[1:] = (of[1:] != of[:-1]) | (hashes[1:] != hashes[:-1])
    first &= of >= 0
    of, ids, hashes = of[first], ids[first], hashes[first]
    counts = np.bincount(of, minlength=len(refs))
    within = np.arange(len(of)) - (np.cumsum(counts) - counts)[of]
    kept = within < dense_rows
    cut = {refs[int(i)]: int(counts[i]) for i in np.flatnonzero(counts > dense_rows)}
    of, ids, hashes = of[kept], ids[kept], hashes[kept]
    order = np.lexsort((ids, of))
    return _Chosen(of[order], ids[order], hashes[order]), cut


def _chunks(
    generation: Generation,
    names: Sequence[Sequence[str]],
    chosen: _Chosen,
    missing: NDArray[np.bool_],
) -> Iterator[tuple[NDArray[np.int64], list[str]]]:
    """The JSON of the missing rows, and their places in the matrix, some hundred at a time."""
    import numpy as np

    if not missing.any():
        return
    places = np.flatnonzero(missing)
    places = places[np.argsort(chosen.ids[places])]
    wanted = chosen.ids[places]
    at: list[int] = []
    texts: list[str] = []
    for batch in scan_texts(generation, ROWS):
        ids = batch["_rowid"].to_numpy().astype(np.uint64)
        found = np.searchsorted(wanted, ids)
        here = np.flatnonzero((found < len(wanted)) & (wanted[found % len(wanted)] == ids))
        rows = batch["text"].take(here).to_pylist()
        for place, text in zip(places[found[here]].tolist(), rows, strict=True):
            at.append(place)
            texts.append(row_json(names[int(chosen.tables[place])], text))
            if len(texts) == _CHUNK:
                yield np.array(at, np.int64), texts
                at, texts = [], []
    if texts:
        yield np.array(at, np.int64), texts


def _new_matrix(generation: Generation, n: int, dim: int) -> Array:
    import numpy as np

    path = generation.row_vectors
    if n == 0:  # nothing to map
        np.save(path, np.zeros((0, dim), np.float32))
        return np.zeros((0, dim), np.float32)
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, dim))


def _save(generation: Generation, refs: Sequence[TableRef], chosen: _Chosen, matrix: Array) -> None:
    import numpy as np

    flush = getattr(matrix, "flush", None)
    if flush is not None:
        flush()
    counts = np.bincount(chosen.tables, minlength=len(refs))
    ends = np.cumsum(counts)
    spans = [
        (table_id(ref), int(end - count), int(end))
        for ref, count, end in zip(refs, counts, ends, strict=True)
        if count
    ]
    np.save(generation.row_ids, chosen.ids)
    np.save(generation.row_tables, np.array(spans, np.int64).reshape(len(spans), 3))
    np.save(generation.row_hashes, chosen.hashes)


def _load_vectors(generation: Generation) -> Array:
    path = generation.row_vectors
    try:
        return load_array(path, mapped="r")
    except ValueError:  # an empty array cannot be mapped
        return load_array(path)
