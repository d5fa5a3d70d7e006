"""Coarse ranking: all tables scored by text, rows, values and joins; no language model.

score = Σ weight · part, every part scaled to mean 0 and deviation 1 over all tables
(values: 0 to 1); then the tables that join likely ones gain (``joinaware``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbrag.index.best import top
from dbrag.index.encoder import check_encoder
from dbrag.retrieval.explain import ROWS_PER_TABLE, matches_of, reason
from dbrag.retrieval.joinaware import JOIN_RANKINGS, group_best
from dbrag.retrieval.lookup import LookedUp, look_up
from dbrag.retrieval.mentions import mention_scores
from dbrag.types import Candidate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.adjacency import Adjacency
    from dbrag.index.row_search import RowMode
    from dbrag.index.store import Index
    from dbrag.models.base import Embedder
    from dbrag.retrieval.mentions import Mention
    from dbrag.retrieval.timing import StageTimer
    from dbrag.types import TableRef

    Array = NDArray[np.float32]

TABLES_WITH_ROWS = 10


@dataclass(frozen=True, slots=True)
class CoarseWeights:
    """Weights of the parts, chosen on ``spider/train`` by ``bench/retrieval_weights.py``.

    ``preferred`` was set by hand: enough to tell a table from its copy, too little to
    beat a better one.
    """

    names: float = 0.4
    columns: float = 0.6
    bm25: float = 0.3
    coverage: float = 0.2
    rows: float = 0.1
    values: float = 3.0
    preferred: float = 0.5
    group: float = 0.1


DEFAULT = CoarseWeights()


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts before weighting, each ``[n_tables]``, and the values mentioned.

    ``similarity`` is no part of the score: the best cosine as it is, not scaled.
    """

    names: Array
    columns: Array
    bm25: Array
    coverage: Array
    rows: Array
    values: Array
    preferred: Array
    similarity: Array
    mentions: Sequence[Mention]


def rank(
    index: Index,
    embedder: Embedder,
    question: str,
    *,
    k: int = 50,
    sources: Collection[str] | None = None,
    tables: Collection[TableRef] | None = None,
    exclude: Collection[TableRef] = (),
    weights: CoarseWeights = DEFAULT,
    join_ranking: str = "pagerank",
    groups: NDArray[np.int32] | None = None,
    row_search: RowMode = "text",
    timer: StageTimer | None = None,
) -> list[Candidate]:
    """The ``k`` best tables for a question, best first; ties in catalog order.

    Source names take no part. The first ten carry matching rows.

    Args:
        sources: consider only tables of these sources.
        tables: consider only these tables; ``exclude``: never these.
        join_ranking: a key of ``joinaware.JOIN_RANKINGS``.
        groups: ``[n_tables]``: number of the database of each table, where tables of one
            database shall support each other; -1 for none.
        row_search: how rows are found.
        timer: is told the seconds of each stage.

    Raises:
        EncoderMismatch: the index was built with another encoder.
        IndexUnusable: the index is damaged, or lacks the row vectors asked for.
    """
    check_encoder(index.manifest.encoder, embedder.sha256, embedder.name)
    refs = index.catalog.refs
    if not refs:
        return []
    looked = look_up(index, embedder, question, row_search, timer)
    parts = score_parts(index, embedder, question, looked)
    with looked.timer.stage("joins"):
        scores, weighted = combine(
            parts, index.adjacency, weights, join_ranking=join_ranking, groups=groups
        )
    chosen = _best(scores, _allowed(index, sources, tables, exclude), k)
    with_rows = [refs[i] for i in chosen[:TABLES_WITH_ROWS]]
    with looked.timer.stage("candidates' rows"):
        rows = looked.rows.rows_of(with_rows, ROWS_PER_TABLE)
    with looked.timer.stage("reasons"):
        return [
            Candidate(
                table=refs[i],
                score=float(scores[i]),
                parts={name: float(part[i]) for name, part in weighted.items()},
                rows=rows.get(refs[i], ()),
                matches=(matches := matches_of(index.catalog, i, parts.mentions)),
                reason=reason(index, i, parts, scores, matches, row_search),
                similarity=float(parts.similarity[i]),
            )
            for i in chosen
        ]


def _allowed(
    index: Index,
    sources: Collection[str] | None,
    tables: Collection[TableRef] | None,
    exclude: Collection[TableRef],
) -> NDArray[np.bool_]:
    """``[n_tables]``: which tables may be candidates."""
    import numpy as np

    position = index.catalog.position
    mask = np.full(len(position), tables is None)
    if tables is not None:
        mask[[position[ref] for ref in tables if ref in position]] = True
    if sources is not None:
        mask &= index.catalog.mask(sources)
    mask[[position[ref] for ref in exclude if ref in position]] = False
    return mask


def _best(scores: Array, allowed: NDArray[np.bool_], k: int) -> list[int]:
    """Positions of the ``k`` best allowed tables, best first."""
    import numpy as np

    best = top(np.where(allowed, scores, np.float32(-np.inf)), k)
    return [int(i) for i in best if allowed[i]]


def score_parts(
    index: Index, embedder: Embedder, question: str, looked: LookedUp | None = None
) -> Parts:
    """All parts of all tables, scaled.

    Args:
        looked: what ``look_up`` gave for the question; None looks it up by text.
    """
    import numpy as np

    looked = looked or look_up(index, embedder, question)
    position = index.catalog.position
    rows = np.zeros(len(position), np.float32)
    for ref, score in looked.rows.best().items():
        rows[position[ref]] = score
    values = np.zeros(len(position), np.float32)
    for ref, score in mention_scores(looked.mentions, len(position)).items():
        values[position[ref]] = score
    preferred = np.zeros(len(position), np.float32)
    for ref, note in index.notes.tables.items():
        if ref in position:
            preferred[position[ref]] = float(note.preferred)
    return Parts(
        names=_scaled(looked.tables.names),
        columns=_scaled(looked.tables.columns),
        bm25=_scaled(looked.tables.bm25),
        coverage=_scaled(looked.coverage),
        rows=_scaled(rows),
        values=values,
        preferred=preferred,
        similarity=np.maximum(looked.tables.names, looked.tables.columns),
        mentions=looked.mentions,
    )


def combine(
    parts: Parts,
    graph: Adjacency,
    weights: CoarseWeights = DEFAULT,
    *,
    join_ranking: str = "pagerank",
    groups: NDArray[np.int32] | None = None,
) -> tuple[Array, Mapping[str, Array]]:
    """The scores ``[n_tables]`` and the weighted parts they are the sum of."""
    import numpy as np

    weighted: dict[str, Array] = {}
    base = np.zeros_like(parts.names)
    for name in ("names", "columns", "bm25", "coverage", "rows", "values", "preferred"):
        weighted[name] = np.float32(getattr(weights, name)) * getattr(parts, name)
        base = base + weighted[name]
    scores = base
    of_joins, weight = JOIN_RANKINGS[join_ranking]
    if of_joins is not None and len(base):
        weighted["joins"] = np.float32(weight) * of_joins(base, graph)
        scores = scores + weighted["joins"]
    if groups is not None:
        weighted["group"] = np.float32(weights.group) * group_best(base, groups)
        scores = scores + weighted["group"]
    return scores, weighted


def _scaled(scores: Array) -> Array:
    """Mean 0, deviation 1 over all tables; all 0 where they do not differ."""
    import numpy as np

    deviation = float(scores.std())
    if deviation < 1e-9:
        return scores * 0
    return np.asarray((scores - scores.mean()) / deviation, np.float32)
