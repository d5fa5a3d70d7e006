"""Every table's exact score for a question: three dense parts and sparse BM25.

Dense parts are inner products of unit vectors (MiniLM), BM25 is Lucene's variant
(Robertson and Zaragoza 2009; k1 = 1.5, b = 0.75) over stemmed words.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from dbrag.index.words import asked_stems, stemmed, stems

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.layout import Generation
    from dbrag.models.base import Embedder

    Array = NDArray[np.float32]
    Progressed = Callable[[int, int], None]

MATRICES = ("names", "samples", "columns")
_QUERY_TERMS = 256
_CHUNK = 256
# A word in every document: bm25s cannot index a corpus without words.
_EVERYWHERE = "\x00"


@dataclass(frozen=True, slots=True)
class TableScores:
    """Scores of all tables for one question, each ``[n_tables]``, in catalog order.

    ``names``, ``samples``: cosine of question and summary, without and with sample
    rows. ``columns``: the best cosine of any of the table's columns. ``bm25`` ≥ 0.
    """

    names: Array
    samples: Array
    columns: Array
    bm25: Array


class TableIndex:
    """The memory-mapped summaries of one generation."""

    def __init__(self, generation: Generation, n_tables: int) -> None:
        """Open the arrays.

        Raises:
            OSError, ValueError: missing, damaged or of another size than the catalog.
        """
        import numpy as np

        self._n = n_tables
        self._matrix: dict[str, Array] = {}
        self._bm25: Any = None
        if n_tables == 0:
            return
        for name in MATRICES:
            self._matrix[name] = np.load(generation.matrix(name), mmap_mode="r")
        self._column_ids = np.load(generation.column_ids)
        self._column_starts = np.load(generation.column_starts)
        self._bm25 = _load_bm25(generation)
        sizes = {
            len(self._matrix["names"]),
            len(self._matrix["samples"]),
            len(self._column_starts) - 1,
            int(self._bm25.scores["num_docs"]),
        }
        if sizes != {n_tables}:
            raise ValueError(f"the table arrays hold {sorted(sizes)} tables, not {n_tables}")

    def scores(self, question_vector: Array, question: str) -> TableScores:
        """All four parts.

        Args:
            question_vector: ``[dim]``, length 1.
            question: its text; the first 256 distinct words count.
        """
        import numpy as np

        if self._n == 0:
            empty = np.zeros(0, np.float32)
            return TableScores(empty, empty, empty, empty)
        names = self._matrix["names"] @ question_vector
        return TableScores(
            names=names,
            samples=self._matrix["samples"] @ question_vector,
            columns=self._best_column(question_vector, names),
            bm25=self._words(question),
        )

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
        return np.asarray(self._bm25.scores["indices"][low:high], np.int32)

    def _best_column(self, question_vector: Array, otherwise: Array) -> Array:
        import numpy as np

        best = np.array(otherwise)
        filled = np.flatnonzero(np.diff(self._column_starts))
        if len(filled):
            of_column = (self._matrix["columns"] @ question_vector)[self._column_ids]
            best[filled] = np.maximum.reduceat(of_column, self._column_starts[:-1][filled])
        return best

    def _words(self, question: str) -> Array:
        import numpy as np

        known = self._bm25.vocab_dict
        terms = [term for term in asked_stems(question, _QUERY_TERMS) if term in known]
        if not terms:
            return np.zeros(self._n, np.float32)
        return np.asarray(self._bm25.get_scores(terms), np.float32)


def write_tables(
    generation: Generation,
    previous: Generation | None,
    *,
    names: Sequence[str],
    samples: Sequence[str],
    columns: Sequence[Sequence[str]],
    embedder: Callable[[], Embedder],
    on_encoded: Progressed,
) -> int:
    """Write the arrays of a new generation, encoding only texts the previous one lacks.

    Args:
        previous: where vectors may be taken from; None encodes everything.
        names: and ``samples``, ``columns``: the texts of every table, in catalog order.
        embedder: called only if something has to be encoded.
        on_encoded: called with (texts encoded, texts to encode).

    Returns:
        The number of texts that were encoded.
    """
    import numpy as np

    unique = list(dict.fromkeys(text for texts in columns for text in texts))
    place = {text: i for i, text in enumerate(unique)}
    starts = np.cumsum([0, *(len(texts) for texts in columns)], dtype=np.int64)
    ids = np.array([place[text] for texts in columns for text in texts], np.int32)
    np.save(generation.column_ids, ids)
    np.save(generation.column_starts, starts)
    _write_bm25(generation, names)
    parts = dict(zip(MATRICES, (names, samples, unique), strict=True))
    jobs = {name: _Job.plan(texts, name, previous) for name, texts in parts.items()}
    total = sum(len(job.missing) for job in jobs.values())
    done = 0
    for name, job in jobs.items():
        for start in range(0, len(job.missing), _CHUNK):
            chunk = job.missing[start : start + _CHUNK]
            job.fill(chunk, embedder().encode([parts[name][i] for i in chunk]))
            done += len(chunk)
            on_encoded(done, total)
        np.save(generation.matrix(name), job.matrix)
        np.save(generation.hashes(name), job.hashes)
    return total


class _Job:
    """One matrix in the making."""

    def __init__(self, matrix: Array, hashes: NDArray[np.uint8], missing: list[int]) -> None:
        self.matrix = matrix
        self.hashes = hashes
        self.missing = missing

    @classmethod
    def plan(cls, texts: Sequence[str], name: str, previous: Generation | None) -> _Job:
        import numpy as np

        hashes = np.array([_hash(text) for text in texts], np.uint8).reshape(len(texts), 16)
        known: dict[bytes, int] = {}
        old = np.zeros((0, 0), np.float32)
        if previous is not None and previous.hashes(name).is_file():
            known = {row.tobytes(): i for i, row in enumerate(np.load(previous.hashes(name)))}
            old = np.load(previous.matrix(name), mmap_mode="r")
        matrix = np.zeros((len(texts), old.shape[1]), np.float32)
        missing = []
        for i, row in enumerate(hashes):
            at = known.get(row.tobytes())
            if at is None:
                missing.append(i)
            else:
                matrix[i] = old[at]
        # Texts of similar length together: little padding in the encoder's batches.
        missing.sort(key=lambda i: len(texts[i]))
        return cls(matrix, hashes, missing)

    def fill(self, rows: Sequence[int], vectors: Array) -> None:
        import numpy as np

        if self.matrix.shape[1] == 0:
            self.matrix = np.zeros((len(self.matrix), vectors.shape[1]), np.float32)
        self.matrix[rows] = vectors


def _hash(text: str) -> list[int]:
    return list(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())


def _write_bm25(generation: Generation, texts: Sequence[str]) -> None:
    import bm25s

    if not texts:
        return
    model = bm25s.BM25()
    model.index([[_EVERYWHERE, *stems(text)] for text in texts], show_progress=False)
    model.save(str(generation.bm25), show_progress=False)


def _load_bm25(generation: Generation) -> Any:
    import bm25s

    return bm25s.BM25.load(str(generation.bm25), mmap=True, show_progress=False)
