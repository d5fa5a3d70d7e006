"""Every table's exact score for a question: two dense parts and sparse BM25.

Dense parts are inner products of unit vectors (MiniLM), BM25 is Lucene's variant
(Robertson and Zaragoza 2009; k1 = 1.5, b = 0.75) over stemmed words. A wide table has
several entries, groups of its columns; its score is that of its best entry.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbrag.index.arrays import load_array, one_at_a_time
from dbrag.index.columns import ColumnVectors, write_projections
from dbrag.index.vectors import MatrixWriter, checked_matrix
from dbrag.index.words import asked_stems, stemmed, stems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.layout import Generation
    from dbrag.models.base import Embedder

    Array = NDArray[np.float32]
    Progressed = Callable[[int, int], None]

_QUERY_TERMS = 256
# A word in every document: bm25s cannot index a corpus without words.
_EVERYWHERE = "\x00"


@dataclass(frozen=True, slots=True)
class TableScores:
    """Scores of all tables for one question, each ``[n_tables]``, in catalog order.

    ``names``: the best cosine of question and any of the table's entries. ``columns``:
    the best cosine of any of its columns. ``bm25`` ≥ 0, of the best entry.
    """

    names: Array
    columns: Array
    bm25: Array


class TableTexts:
    """The texts of all tables, in catalog order, while they are collected."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._columns: dict[str, int] = {}
        self._column_ids = array("i")
        self._entry_starts = array("q", [0])
        self._column_starts = array("q", [0])

    def add(self, entries: Sequence[str], columns: Iterable[str]) -> None:
        """The texts of the next table.

        Args:
            entries: one or more; ``columns``: one for each column, if any.
        """
        self.entries.extend(entries)
        known = self._columns
        self._column_ids.extend(known.setdefault(text, len(known)) for text in columns)
        self._entry_starts.append(len(self.entries))
        self._column_starts.append(len(self._column_ids))

    @property
    def columns(self) -> list[str]:
        """The column texts, each once."""
        return list(self._columns)

    def save(self, generation: Generation) -> None:
        """Write which texts are of which table."""
        import numpy as np

        np.save(generation.entry_starts, np.array(self._entry_starts, np.int64))
        np.save(generation.column_ids, np.array(self._column_ids, np.int32))
        np.save(generation.column_starts, np.array(self._column_starts, np.int64))


class TableIndex:
    """The memory-mapped summaries of one generation."""

    def __init__(self, generation: Generation, n_tables: int) -> None:
        """Open the arrays.

        Raises:
            OSError, ValueError: missing, damaged or of another size than the catalog.
        """
        import numpy as np

        self._n = n_tables
        self._bm25: Any = None
        if n_tables == 0:
            return
        self._names = checked_matrix(generation.matrix("names"))
        self._entry_starts = load_array(generation.entry_starts)
        self._columns = ColumnVectors(generation)
        self._column_ids = load_array(generation.column_ids)
        self._column_starts = load_array(generation.column_starts)
        self._bm25 = _load_bm25(generation)
        sizes = {len(self._entry_starts) - 1, len(self._column_starts) - 1}
        if sizes != {n_tables}:
            raise ValueError(f"the table arrays hold {sorted(sizes)} tables, not {n_tables}")
        entries = {int(self._entry_starts[-1]), len(self._names), self._bm25.scores["num_docs"]}
        if len(entries) != 1 or self._column_starts[-1] != len(self._column_ids):
            raise ValueError(f"the table arrays differ: {sorted(entries)} entries")
        ids = self._column_ids
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(self._columns):
            raise ValueError(f"{generation.column_ids.name} names columns that are not there")
        for starts, least in ((self._entry_starts, 1), (self._column_starts, 0)):
            if starts[0] != 0 or (np.diff(starts) < least).any():
                raise ValueError("the table arrays are out of order")

    def scores(self, question_vector: Array, question: str) -> TableScores:
        """All three parts.

        Args:
            question_vector: ``[dim]``, length 1.
            question: its text; the first 256 distinct words count.
        """
        import numpy as np

        if self._n == 0:
            empty = np.zeros(0, np.float32)
            return TableScores(empty, empty, empty)
        names = self._best_entry(self._names @ question_vector)
        return TableScores(
            names=names,
            columns=self._best_column(question_vector, names),
            bm25=self._best_entry(self._words(question)),
        )

    def _best_entry(self, scores: Array) -> Array:
        """Entries to tables: ``[n_entries]`` → ``[n_tables]``."""
        import numpy as np

        if len(scores) == self._n:
            return scores
        return np.asarray(np.maximum.reduceat(scores, self._entry_starts[:-1]))

    def knows(self, word: str) -> bool:
        """Whether a table's name, a column's name or a comment has the word, other forms too."""
        return self._bm25 is not None and stemmed([word])[0] in self._bm25.vocab_dict

    def holders(self, stem: str) -> NDArray[np.int32]:
        """Positions of the tables whose name, columns, neighbours or comments have the word.

        Args:
            stem: as ``words.stemmed`` gives it.
        """
        import numpy as np

        term = None if self._bm25 is None else self._bm25.vocab_dict.get(stem)
        if term is None:
            return np.zeros(0, np.int32)
        low, high = self._bm25.scores["indptr"][term : term + 2]
        entries = self._bm25.scores["indices"][low:high]
        if len(self._names) == self._n:  # an entry per table
            return np.asarray(entries, np.int32)
        tables = np.searchsorted(self._entry_starts, entries, side="right") - 1
        return np.unique(tables).astype(np.int32)

    def _best_column(self, question_vector: Array, otherwise: Array) -> Array:
        import numpy as np

        best = np.array(otherwise)
        filled = np.flatnonzero(np.diff(self._column_starts))
        if len(filled):
            of_column = self._columns.scores(question_vector)[self._column_ids]
            best[filled] = np.maximum.reduceat(of_column, self._column_starts[:-1][filled])
        return best

    def _words(self, question: str) -> Array:
        import numpy as np

        known = self._bm25.vocab_dict
        terms = [term for term in asked_stems(question, _QUERY_TERMS) if term in known]
        if not terms:
            return np.zeros(len(self._names), np.float32)
        return np.asarray(self._bm25.get_scores(terms), np.float32)


def write_tables(
    generation: Generation,
    previous: Generation | None,
    texts: TableTexts,
    *,
    embedder: Callable[[], Embedder],
    on_encoded: Progressed,
) -> int:
    """Write the arrays of a new generation, encoding only texts the previous one lacks.

    Args:
        previous: where vectors may be taken from; None encodes everything.
        embedder: called only if something has to be encoded.
        on_encoded: called with (texts encoded, texts to encode).

    Returns:
        The number of texts that were encoded.
    """
    import numpy as np

    texts.save(generation)
    _write_bm25(generation, texts.entries)
    writers = [
        MatrixWriter(generation, previous, "names", texts.entries, np.float32),
        MatrixWriter(generation, previous, "columns", texts.columns, np.float16),
    ]
    total = sum(len(writer.missing) for writer in writers)
    done = 0

    def encoded(count: int) -> None:
        nonlocal done
        done += count
        on_encoded(done, total)

    for writer in writers:
        writer.write(embedder, encoded)
    write_projections(generation)
    return total


def _write_bm25(generation: Generation, texts: Sequence[str]) -> None:
    import bm25s

    if not texts:
        return
    # Numbers in the order of appearance: the same texts give the same files.
    vocabulary: dict[str, int] = {}
    documents = [
        [vocabulary.setdefault(word, len(vocabulary)) for word in (_EVERYWHERE, *stems(text))]
        for text in texts
    ]
    model = bm25s.BM25()
    model.index((documents, vocabulary), show_progress=False)
    model.save(str(generation.bm25), show_progress=False)


def _load_bm25(generation: Generation) -> Any:
    import bm25s

    path = str(generation.bm25)
    return one_at_a_time(lambda: bm25s.BM25.load(path, mmap=True, show_progress=False))
