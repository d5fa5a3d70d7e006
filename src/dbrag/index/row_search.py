"""Rows that fit a question: by their words, by their vectors, or by both.

"text" ranks rows by BM25, "dense" by cosine as the paper does. "both" adds, for tables,
the two scores of their best rows, each in deviations over all tables; rows themselves are
ordered by reciprocal rank, Σ 1 / (60 + rank) (Cormack, Clarke and Büttcher 2009).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from dbrag.errors import IndexUnusable
from dbrag.index.layout import table_id
from dbrag.index.rows import row_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.fulltext import TextHit, TextTable
    from dbrag.index.row_vectors import RowScores, RowVectors
    from dbrag.types import TableRef

    Array = NDArray[np.float32]

RowMode = Literal["text", "dense", "both"]
"""The setting ``row_search``."""

_RANK = 60
_OF_TABLE = 200
_FUSED = 10


@dataclass(frozen=True, slots=True)
class RowHit:
    """A row that fits the question; cells as JSON values, text cut."""

    table: TableRef
    score: float
    row: Mapping[str, Any]


class RowIndex:
    """All indexed rows of all tables.

    Args:
        tables: for every ``layout.table_id`` the table and its column names.
        vectors: None where the index holds no row vectors.
    """

    def __init__(
        self,
        texts: TextTable,
        tables: Mapping[int, tuple[TableRef, Sequence[str]]],
        vectors: RowVectors | None = None,
    ) -> None:
        self.texts = texts
        self.tables = tables
        self.vectors = vectors

    def search(
        self,
        question: str,
        limit: int,
        tables: Collection[TableRef] | None = None,
        *,
        mode: RowMode = "text",
        vector: Array | None = None,
    ) -> list[RowHit]:
        """The best rows of all (of these) tables, best first.

        Args:
            vector: of the question, ``[dim]``, length 1; needed unless ``mode`` is "text".

        Raises:
            IndexUnusable: the index is damaged, or holds no row vectors.
        """
        scores = self._scores(mode, vector)
        texts = [] if mode == "dense" else self.texts.search(question, limit, tables)
        if scores is None:
            return self.hits(texts)
        found = scores.search(limit, tables)
        near = self.texts.take([hit.row_id for hit in found])
        near = [replace(one, score=hit.score) for one, hit in zip(near, found, strict=True)]
        return self.hits(near if mode == "dense" else _fused(texts, near)[:limit])

    def look(
        self,
        question: str,
        limit: int,
        *,
        mode: RowMode = "text",
        vector: Array | None = None,
        found: Sequence[TextHit] | None = None,
    ) -> RowLook:
        """Look a question up once, for the scores of tables and then the rows of some.

        Args:
            limit: rows looked up by their words.
            vector: of the question, as in ``search``.
            found: what ``texts.search(question, limit)`` gave, if that was done before.

        Raises:
            IndexUnusable: the index is damaged, or holds no row vectors.
        """
        scores = self._scores(mode, vector)
        if mode == "dense":
            found = []
        elif found is None:
            found = self.texts.search(question, limit)
        return RowLook(self, question, mode, found, len(found) < limit, scores)

    def hits(self, texts: Iterable[TextHit]) -> list[RowHit]:
        """Texts as rows; those of tables that are not in the catalog are left out."""
        hits = []
        for hit in texts:
            if hit.table in self.tables:
                ref, columns = self.tables[hit.table]
                hits.append(RowHit(ref, hit.score, row_of(columns, hit.text)))
        return hits

    def _scores(self, mode: RowMode, vector: Array | None) -> RowScores | None:
        if self.vectors is None:
            check_row_search(mode)
        if mode == "text" or self.vectors is None:
            return None
        if vector is None:
            raise ValueError(f"row_search {mode!r} needs the question's vector")
        return self.vectors.scores(vector)


class RowLook:
    """The rows of one question.

    Args:
        found: rows that share words with it, best first.
        complete: whether these are all there are.
        scores: the cosines of all rows; None with mode "text".
    """

    def __init__(
        self,
        index: RowIndex,
        question: str,
        mode: RowMode,
        found: Sequence[TextHit],
        complete: bool,
        scores: RowScores | None,
    ) -> None:
        self._index = index
        self._question = question
        self.mode = mode
        self._found = found
        self._complete = complete
        self._scores = scores

    def best(self) -> dict[TableRef, float]:
        """How well the best row of each table fits; a table that is missing counts 0.

        By words only the tables of the best rows of all count.
        """
        words: dict[int, float] = {}
        for hit in self._found:
            words[hit.table] = max(hit.score, words.get(hit.table, 0.0))
        if self._scores is None:
            return self._by_ref(words)
        near = self._scores.best()
        # A table without rows is as far as the farthest that has some.
        least = min(near.values(), default=0.0)
        near = {key: score - least for key, score in near.items()}
        if self.mode == "dense":
            return self._by_ref(near)
        n = len(self._index.tables)
        words, near = _in_deviations(words, n), _in_deviations(near, n)
        return self._by_ref(
            {key: words.get(key, 0.0) + near.get(key, 0.0) for key in {**words, **near}}
        )

    def rows_of(
        self, tables: Collection[TableRef], per_table: int
    ) -> dict[TableRef, tuple[Mapping[str, Any], ...]]:
        """Up to ``per_table`` different rows of each of these tables, best first.

        Raises:
            IndexUnusable: the index is damaged.
        """
        if self._scores is None:
            texts = self._words_of(tables, per_table)
        elif self.mode == "dense":
            texts = self._near(tables, per_table)
        else:
            several = max(per_table, _FUSED)
            texts = _fused(self._words_of(tables, several), self._near(tables, several))
        chosen: dict[int, list[TextHit]] = {}
        seen: set[tuple[int, str]] = set()
        for hit in texts:
            of_table = chosen.setdefault(hit.table, [])
            if len(of_table) < per_table and (hit.table, hit.text) not in seen:
                seen.add((hit.table, hit.text))
                of_table.append(hit)
        rows: dict[TableRef, list[Mapping[str, Any]]] = {}
        for row in self._index.hits(hit for of_table in chosen.values() for hit in of_table):
            rows.setdefault(row.table, []).append(row.row)
        return {ref: tuple(of_table) for ref, of_table in rows.items()}

    def _words_of(self, tables: Collection[TableRef], per_table: int) -> list[TextHit]:
        """Rows of these tables that share words with the question, best first.

        Tables with too few among those found are looked up again, all others hold the
        best of their rows already.
        """
        texts: dict[int, dict[str, TextHit]] = {table_id(ref): {} for ref in tables}
        for hit in self._found:
            if hit.table in texts:
                texts[hit.table].setdefault(hit.text, hit)
        few = [ref for ref in tables if len(texts[table_id(ref)]) < per_table]
        if few and not self._complete:
            for hit in self._index.texts.search(self._question, _OF_TABLE, few):
                texts[hit.table].setdefault(hit.text, hit)
        hits = [hit for of_table in texts.values() for hit in of_table.values()]
        return sorted(hits, key=lambda hit: (-hit.score, hit.table, hit.extra, hit.text))

    def _near(self, tables: Collection[TableRef], per_table: int) -> list[TextHit]:
        """The nearest rows of each table, best first."""
        if self._scores is None:
            return []
        found = [
            hit
            for ref in sorted(set(tables), key=str)
            for hit in self._scores.of_table(table_id(ref), per_table)
        ]
        texts = self._index.texts.take([hit.row_id for hit in found])
        near = [replace(one, score=hit.score) for one, hit in zip(texts, found, strict=True)]
        return sorted(near, key=lambda hit: -hit.score)

    def _by_ref(self, scores: Mapping[int, float]) -> dict[TableRef, float]:
        tables = self._index.tables
        return {tables[key][0]: score for key, score in scores.items() if key in tables}


def check_row_search(mode: str) -> None:
    """Refuse what an index without row vectors cannot do.

    Raises:
        IndexUnusable: ``mode`` needs them.
    """
    if mode != "text":
        raise IndexUnusable(
            f'the index holds no row vectors, which row_search = "{mode}" needs',
            'dbrag index makes them; or set row_search = "text"',
        )


def _fused(*orders: Sequence[TextHit]) -> list[TextHit]:
    """Hits of several lists by reciprocal rank; equal ones in the order they come."""
    scores: dict[tuple[int, str], float] = {}
    hits: dict[tuple[int, str], TextHit] = {}
    for order in orders:
        distinct: dict[tuple[int, str], TextHit] = {}
        for hit in order:
            distinct.setdefault((hit.table, hit.text), hit)
        for rank, (key, hit) in enumerate(distinct.items(), 1):
            scores[key] = scores.get(key, 0.0) + 1 / (_RANK + rank)
            hits.setdefault(key, hit)
    ordered = sorted(scores, key=lambda key: -scores[key])
    return [replace(hits[key], score=scores[key]) for key in ordered]


def _in_deviations(scores: Mapping[int, float], n: int) -> dict[int, float]:
    """Scores over their deviation, the missing of ``n`` being 0; the mean stays where it is."""
    mean = sum(scores.values()) / max(n, 1)
    variance = sum(score * score for score in scores.values()) / max(n, 1) - mean * mean
    if variance < 1e-12:
        return {}
    return {key: score / variance**0.5 for key, score in scores.items()}
