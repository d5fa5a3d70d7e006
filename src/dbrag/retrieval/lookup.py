"""What a question is looked up for before tables are ranked: vector, tables, rows, values.

The rows and the values are looked up by other threads while the encoder reads the
question and the tables are compared: neither needs the other, and each leaves cores idle (on
two cores 22 ms one after another became 17).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from dbrag.retrieval.coverage import table_coverage
from dbrag.retrieval.timing import StageTimer
from dbrag.retrieval.typos import mentions_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.fulltext import TextHit
    from dbrag.index.row_search import RowLook, RowMode
    from dbrag.index.store import Index
    from dbrag.index.tables import TableScores
    from dbrag.models.base import Embedder
    from dbrag.retrieval.mentions import Mention

_ROW_HITS = 500


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A question's vector ``[dim]``, the tables' scores for it, its rows and its values.

    ``coverage [n_tables]`` is that of ``coverage.table_coverage``.
    """

    vector: NDArray[np.float32]
    tables: TableScores
    coverage: NDArray[np.float32]
    rows: RowLook
    mentions: Sequence[Mention]
    timer: StageTimer


def look_up(
    index: Index,
    embedder: Embedder,
    question: str,
    row_search: RowMode = "text",
    timer: StageTimer | None = None,
) -> LookedUp:
    """Look a question up; its stages are "encode", "tables", "rows" and "values".

    Raises:
        IndexUnusable: the index is damaged, or lacks the row vectors asked for.
    """
    timer = timer or StageTimer()

    def words() -> list[TextHit] | None:
        with timer.stage("rows"):
            return None if row_search == "dense" else index.rows.texts.search(question, _ROW_HITS)

    def values() -> list[Mention]:
        with timer.stage("values"):
            return mentions_in(index, embedder, question)

    of_words, of_values = _pool().submit(words), _pool().submit(values)
    try:
        with timer.stage("encode"):
            vector = embedder.encode([question])[0]
        with timer.stage("tables"):
            tables = index.tables.scores(vector, question)
            coverage = table_coverage(question, index.tables, index.adjacency)
    finally:
        # Whoever gets an error may close the index: nothing may still read it.
        running: tuple[Future[Any], ...] = (of_words, of_values)
        wait(running)
    found, mentions = of_words.result(), of_values.result()
    with timer.stage("rows"):
        rows = index.rows.look(question, _ROW_HITS, mode=row_search, vector=vector, found=found)
    return LookedUp(vector, tables, coverage, rows, mentions, timer)


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads for all searches of the process."""
    return ThreadPoolExecutor(max(2, os.cpu_count() or 1), thread_name_prefix="dbrag-look-up")
