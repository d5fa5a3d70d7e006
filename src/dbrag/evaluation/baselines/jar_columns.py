"""What JAR knows of columns: how well two can join, and how near one is to a sub-question.

    C = U · (½ · Jaccard + ¼ · cos(headers) + ¼ · overlap of the headers' words)

for columns of the same type, else 0, with U the larger uniqueness of the two, distinct
values by rows. As published (Chen, Zhang and Roth 2024), and not as in the authors' code,
where a slip divides the Jaccard similarity by the second column's values alone, and where
a header begins with the name of its database: on a pooled corpus that gives the database
away. Here a header is the table's name and the column's.

Values are those that dbrag's index kept when it read the sources: hashes of all distinct
values of a column that has no value twice, else of at most 1,024 of them, the smallest
hashes, by which the similarity is estimated (Beyer et al. 2007). Of fractions, booleans
and prose no values are kept; their Jaccard similarity counts 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbrag.errors import IndexUnusable
from dbrag.index.files import REBUILD, translated
from dbrag.index.layout import Layout
from dbrag.index.sketches import read_sketches

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.catalog.sketches import ColumnSketch
    from dbrag.index.store import Index
    from dbrag.types import Column, Table, TableRef

    Array = NDArray[np.float64]

_TYPES = (
    ("time", re.compile(r"date|time|year|interval", re.IGNORECASE)),
    ("boolean", re.compile(r"bool|^bit$", re.IGNORECASE)),
    ("text", re.compile(r"char|text|clob|string|uuid|enum|^$", re.IGNORECASE)),
    (
        "number",
        re.compile(r"int|num|dec|real|doub|float|money|serial|^id$", re.IGNORECASE),
    ),
)


@dataclass(frozen=True)
class ColumnFacts:
    """All columns of a catalogue, one after another, table by table.

    Attributes:
        starts: ``[n_tables + 1]``, where the columns of each table begin.
        types: ``[n_columns]``, equal numbers for equal types (``type_of``).
        uniqueness: ``[n_columns]``, distinct values by rows read; 0 for an empty table.
        words: of each header, as numbers.
        values: hashes of distinct values, sorted.
        complete: whether they are all there.
        vectors: unit vectors of the headers, ``[n_columns, dim]``.
    """

    starts: NDArray[np.int64]
    types: NDArray[np.int64]
    uniqueness: Array
    words: tuple[NDArray[np.int64], ...]
    values: tuple[NDArray[np.uint32], ...]
    complete: NDArray[np.bool_]
    vectors: NDArray[np.float32]

    def columns_of(self, tables: Sequence[int]) -> NDArray[np.int64]:
        """Columns of some tables, table by table."""
        import numpy as np

        spans = [np.arange(self.starts[t], self.starts[t + 1]) for t in tables]
        return np.concatenate([np.zeros(0, np.int64), *spans])


def headers(tables: Sequence[Table]) -> list[str]:
    """``student last name``, one for each column of all tables."""
    return [_plain(f"{table.ref.name} {c.name}") for table in tables for c in table.columns]


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").replace(".", "").lower().split())


def column_facts(
    index: Index, tables: Sequence[Table], vectors: NDArray[np.float32]
) -> ColumnFacts:
    """From the index, without a look at the sources.

    Args:
        tables: in the order of the catalog.
        vectors: of ``headers(tables)``.

    Raises:
        IndexUnusable: it was made without values, or is damaged.
    """
    import numpy as np

    known = _sketches(index)
    listed = [(column, known.get((t.ref, column.name))) for t in tables for column in t.columns]
    if listed and not any(sketch for _, sketch in listed):
        raise IndexUnusable("the index holds no values of columns, which JAR compares", REBUILD)
    return ColumnFacts(
        starts=np.cumsum([0, *(len(table.columns) for table in tables)]),
        types=_numbers([type_of(column) for column, _ in listed]),
        uniqueness=np.array([_uniqueness(sketch) for _, sketch in listed]),
        words=_numbered(headers(tables)),
        values=tuple(s.hashes if s else np.zeros(0, np.uint32) for _, s in listed),
        complete=np.array([s is None or s.complete for _, s in listed], bool),
        vectors=vectors,
    )


def _numbers(names: Sequence[str]) -> NDArray[np.int64]:
    """The same number for the same name."""
    import numpy as np

    known: dict[str, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)


def _numbered(texts: Sequence[str]) -> tuple[NDArray[np.int64], ...]:
    """The distinct words of each text, as numbers."""
    import numpy as np

    known: dict[str, int] = {}
    return tuple(
        np.array([known.setdefault(w, len(known)) for w in dict.fromkeys(text.split())], np.int64)
        for text in texts
    )


def _sketches(index: Index) -> dict[tuple[TableRef, str], ColumnSketch]:
    files = Layout(index.directory).generation(index.manifest.generation)
    found: dict[tuple[TableRef, str], ColumnSketch] = {}
    with translated(index.directory, "read"):
        for source in index.catalog.sources:
            for ref, columns in read_sketches(files, source).items():
                found |= {(ref, column.name): column for column in columns}
    return found


def _uniqueness(sketch: ColumnSketch | None) -> float:
    return sketch.distinct / sketch.rows if sketch is not None and sketch.rows else 0.0


def type_of(column: Column) -> str:
    """The class of a declared type; a type of its own where the name says none of them."""
    declared = re.sub(r"\(.*", "", column.type).strip()
    return next((name for name, form in _TYPES if form.search(declared)), declared.lower())


def joinability(facts: ColumnFacts, tables: Sequence[int]) -> Array:
    """C of the best pair of columns of each two tables, ``[n, n]``, symmetric, from 0 up."""
    import numpy as np

    best = np.zeros((len(tables), len(tables)))
    filled, starts = _spans(facts, tables)
    if len(filled):
        pairs = _pairs(facts, facts.columns_of(tables))
        of_tables = np.maximum.reduceat(np.maximum.reduceat(pairs, starts, axis=0), starts, axis=1)
        best[np.ix_(filled, filled)] = of_tables
    np.fill_diagonal(best, 0.0)
    return best


def _spans(
    facts: ColumnFacts, tables: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of the tables that have columns, and where these begin among all theirs."""
    import numpy as np

    sizes = facts.starts[np.asarray(tables) + 1] - facts.starts[np.asarray(tables)]
    filled = np.flatnonzero(sizes)
    return filled, (np.cumsum(sizes) - sizes)[filled]


def relevance(facts: ColumnFacts, tables: Sequence[int], asked: NDArray[np.float32]) -> Array:
    """Cosine of each sub-question with the nearest column of each table.

    Args:
        asked: unit vectors ``[n_questions, dim]``.

    Returns:
        ``[n_questions, n]``; -1 for a table without columns.
    """
    import numpy as np

    best = np.full((len(asked), len(tables)), -1.0)
    filled, starts = _spans(facts, tables)
    if len(filled):
        cosines = asked @ facts.vectors[facts.columns_of(tables)].T
        best[:, filled] = np.maximum.reduceat(cosines, starts, axis=1)
    return best


def _pairs(facts: ColumnFacts, columns: NDArray[np.int64]) -> Array:
    """C of all pairs of some columns, ``[n, n]``."""
    import numpy as np

    types = facts.types[columns]
    unique = facts.uniqueness[columns]
    vectors = facts.vectors[columns]
    score = 0.5 * jaccard([facts.values[c] for c in columns], facts.complete[columns])
    score += 0.25 * (vectors @ vectors.T) + 0.25 * overlap([facts.words[c] for c in columns])
    score *= np.maximum(unique[:, None], unique[None, :])
    score[types[:, None] != types[None, :]] = 0.0
    return np.asarray(np.maximum(score, 0.0), np.float64)


def overlap(words: Sequence[NDArray[np.int64]]) -> Array:
    """Overlap coefficients |A ∩ B| / min(|A|, |B|) of all pairs of sets, ``[n, n]``."""
    import numpy as np

    common = _common(words)
    sizes = np.array([len(one) for one in words])
    return np.asarray(common / np.maximum(np.minimum(sizes[:, None], sizes[None, :]), 1))


def jaccard(values: Sequence[NDArray[np.uint32]], complete: NDArray[np.bool_]) -> Array:
    """|A ∩ B| / |A ∪ B| of all pairs of sets of hashes, ``[n, n]``; 0 where both are empty.

    Where a set is not complete, both are compared up to its largest hash: the sets below
    one threshold are a random sample of the whole ones (Beyer et al. 2007).

    Args:
        values: sorted, without repetition.
    """
    import numpy as np

    common = _common(values)
    sizes = np.array([len(one) for one in values])
    union = sizes[:, None] + sizes[None, :] - common
    found = common / np.maximum(union, 1)
    for i in np.flatnonzero(~complete).tolist():
        for j in range(len(values)):
            if common[i, j]:
                found[i, j] = found[j, i] = _estimated(
                    (values[i], values[j]), (bool(complete[i]), bool(complete[j]))
                )
    return np.asarray(found, np.float64)


def _estimated(
    pair: tuple[NDArray[np.uint32], NDArray[np.uint32]], complete: tuple[bool, bool]
) -> float:
    import numpy as np

    last = min(int(v[-1]) for v, whole in zip(pair, complete, strict=True) if not whole)
    a, b = (v[: int(np.searchsorted(v, last, "right"))] for v in pair)
    common = len(np.intersect1d(a, b, assume_unique=True))
    return common / (len(a) + len(b) - common)


def _common(sets: Sequence[Any]) -> Array:
    """Sizes of the intersections of all pairs of sets, ``[n, n]``, by a sparse product."""
    import numpy as np
    from scipy.sparse import csr_array

    sizes = [len(one) for one in sets]
    if not sum(sizes):
        return np.zeros((len(sets), len(sets)))
    elements = np.concatenate([np.asarray(one) for one in sets if len(one)])
    known, places = np.unique(elements, return_inverse=True)
    starts = np.cumsum([0, *sizes])
    ones = np.ones(len(places))
    holds = csr_array((ones, places, starts), shape=(len(sets), len(known)))
    return np.asarray((holds @ holds.T).toarray())
