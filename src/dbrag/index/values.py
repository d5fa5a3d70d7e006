"""Values as text: which cell values of which columns a question mentions.

Indexed are distinct texts of at most 100 characters, the first 10,000 of a column in
row order. This limits what is found by search, never what a program computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbrag.index.fulltext import TextTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dbrag.index.fulltext import TextHit
    from dbrag.types import TableRef

VALUES = "values"
MAX_VALUE = 100
MAX_PER_COLUMN = 10_000


@dataclass(frozen=True, slots=True)
class ValueHit:
    """A cell value that shares words with the question, exactly as stored."""

    table: TableRef
    column: str
    value: str
    score: float


class ValueIndex:
    """All indexed values of all columns.

    Args:
        tables: for every ``layout.table_id`` the table and its column names.
    """

    def __init__(
        self, texts: TextTable, tables: Mapping[int, tuple[TableRef, Sequence[str]]]
    ) -> None:
        self._texts = texts
        self._tables = tables

    def search(
        self, question: str, limit: int, tables: Collection[TableRef] | None = None
    ) -> list[ValueHit]:
        """The best matching values, best first (BM25 over unstemmed words).

        Raises:
            IndexUnusable: the index is damaged.
        """
        return self._known(self._texts.search(question, limit, tables))

    def near(
        self, word: str, edits: int, others: Sequence[str], around: Sequence[str], limit: int
    ) -> list[ValueHit]:
        """Values with a word at most ``edits`` letters away from a folded word, best first.

        Args:
            others: words that are as good as it.
            around: words next to it, which values of several words may hold too.

        Raises:
            IndexUnusable: the index is damaged.
        """
        return self._known(self._texts.near(word, edits, others, around, limit))

    def _known(self, found: Iterable[TextHit]) -> list[ValueHit]:
        hits = []
        for hit in found:
            ref, columns = self._tables.get(hit.table, (None, ()))
            if ref is not None and hit.extra < len(columns):
                hits.append(ValueHit(ref, columns[hit.extra], hit.text, hit.score))
        return hits


def column_values(rows: Iterable[Sequence[Any]], n_columns: int) -> tuple[list[str], list[int]]:
    """Distinct short texts of every column, and the position of the column of each."""
    found: list[dict[str, None]] = [{} for _ in range(n_columns)]
    for row in rows:
        for i, value in enumerate(row):
            if (
                isinstance(value, str)
                and 0 < len(value) <= MAX_VALUE
                and len(found[i]) < MAX_PER_COLUMN
                and not value.isspace()
            ):
                found[i][value] = None
    texts = [value for values in found for value in values]
    return texts, [i for i, values in enumerate(found) for _ in values]
