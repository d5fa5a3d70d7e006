"""The bases: each gives every table of the corpus a score for a question, one by one.

No joins, no rows, no chat model (but ``hybrid``, which is dbrag's own search).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dbrag.errors import UsageError
from dbrag.evaluation.baselines.flat import flat_texts
from dbrag.evaluation.baselines.remembered import encoded
from dbrag.evaluation.methods import Ranking
from dbrag.index.words import asked_stems, stems

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.evaluation.methods import RetrievalMethod, Tools
    from dbrag.models.base import Embedder
    from dbrag.types import TableRef

    Array = NDArray[np.float32]

_QUERY_TERMS = 256
_EVERYWHERE = "\x00"
"""A word in every document: bm25s cannot index a corpus without words."""


class Scorer(Protocol):
    """Scores of all tables for a question.

    ``cosine`` tells whether they are cosines; others may have any scale.
    """

    cosine: bool

    def scores(self, question: str) -> Array:
        """``[n_tables]``, in the order of the catalog."""
        ...


class Dense:
    """Cosine of the question's vector and that of the table's flattened text.

    With dbrag's encoder this is the paper's coarse ranking (section 3.3), with Contriever
    its baseline of that name (section 4.1).

    Args:
        matrix: unit vectors ``[n_tables, dim]``.
    """

    cosine = True

    def __init__(self, encoder: Embedder, matrix: Array) -> None:
        self._encoder = encoder
        self._matrix = matrix

    def scores(self, question: str) -> Array:
        """``[n_tables]``, -1..1."""
        import numpy as np

        return np.asarray(self._matrix @ self._encoder.encode([question])[0], np.float32)


class Sparse:
    """BM25 over the same flattened texts, and nothing else.

    Lucene's variant (Robertson and Zaragoza 2009; k1 = 1.5, b = 0.75) over stemmed words,
    identifiers split, as in dbrag's index.

    Args:
        texts: one for each table.
    """

    cosine = False

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        self._n = len(texts)
        vocabulary: dict[str, int] = {}
        documents = [
            [vocabulary.setdefault(word, len(vocabulary)) for word in (_EVERYWHERE, *stems(text))]
            for text in texts
        ]
        self._model: Any = bm25s.BM25()
        if documents:
            self._model.index((documents, vocabulary), show_progress=False)
        self._known = vocabulary

    def scores(self, question: str) -> Array:
        """``[n_tables]``, from 0 up."""
        import numpy as np

        terms = [term for term in asked_stems(question, _QUERY_TERMS) if term in self._known]
        if not terms:
            return np.zeros(self._n, np.float32)
        return np.asarray(self._model.get_scores(terms), np.float32)


class Hybrid:
    """dbrag's own search without a chat model: names, columns, words, rows, values, joins."""

    cosine = False

    def __init__(self, tools: Tools) -> None:
        self._search = tools.db.search
        self._position = {ref: i for i, ref in enumerate(tools.catalog.refs)}

    def scores(self, question: str) -> Array:
        """``[n_tables]``, of any size."""
        import numpy as np

        n = max(1, len(self._position))
        found = np.full(len(self._position), -np.inf, np.float32)
        for candidate in self._search(question, top=n, k=n, rerank=False).candidates:
            found[self._position[candidate.table]] = candidate.score
        return found


def _coarse(tools: Tools) -> Scorer:
    return _dense(tools, tools.db.embedder())


def _contriever(tools: Tools) -> Scorer:
    from dbrag.evaluation.baselines.contriever import load_contriever

    return _dense(tools, load_contriever(tools.baseline.weights, tools.db.settings.offline))


def _dense(tools: Tools, encoder: Embedder) -> Scorer:
    texts = flat_texts(tools.catalog.tables)
    return Dense(encoder, encoded(tools.db.settings.cache_dir, encoder, texts))


def _bm25(tools: Tools) -> Scorer:
    return Sparse(flat_texts(tools.catalog.tables))


def _dtr(tools: Tools) -> Scorer:
    from dbrag.evaluation.baselines.dtr import load_dtr

    model = load_dtr(tools.baseline.weights)
    return model.over(tools.catalog.tables, tools.db.settings.cache_dir)


SCORERS: Mapping[str, Callable[[Tools], Scorer]] = {
    "coarse": _coarse,
    "bm25": _bm25,
    "contriever": _contriever,
    "dtr": _dtr,
    "hybrid": Hybrid,
}


def make_scorer(base: str, tools: Tools) -> Scorer:
    """The base of that name.

    Raises:
        UsageError: there is none.
        ModelNotInstalled, WeightsError: packages or weights are missing.
    """
    if base not in SCORERS:
        raise UsageError(f"unknown base {base!r}", f"known: {', '.join(SCORERS)}")
    return SCORERS[base](tools)


def best_first(scores: Array, k: int | None = None) -> NDArray[np.int64]:
    """Positions of the ``k`` best, best first; ties in the order of the catalog.

    Args:
        scores: ``[n_tables]``.
    """
    import numpy as np

    return np.asarray(np.argsort(-scores, kind="stable")[:k], np.int64)


def ranked(scorer: Scorer, refs: Sequence[TableRef]) -> RetrievalMethod:
    """The base itself as a method: tables by their score."""
    return partial(_rank, scorer, refs)


def _rank(scorer: Scorer, refs: Sequence[TableRef], question: str, k: int) -> Ranking:
    return Ranking([refs[i] for i in best_first(scorer.scores(question), k)])
