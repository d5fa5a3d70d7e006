"""Retrieval whole (section 3.3 of the paper): coarse ranking, then reranking where wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from dbrag.models.embed import remote_encoder_warnings
from dbrag.retrieval import coarse
from dbrag.retrieval.auto import is_wanted
from dbrag.retrieval.context import row_context
from dbrag.retrieval.hints import question_warnings
from dbrag.retrieval.rerank import Reranked, Reranker
from dbrag.retrieval.timing import StageTimer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.row_search import RowMode
    from dbrag.index.store import Index
    from dbrag.models.base import ChatModel, Embedder
    from dbrag.settings import Settings
    from dbrag.types import AnswerWarning, Candidate, Table, TableRef


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The tables for a question, best first; ``reranked`` tells of the chat model's part.

    ``hints`` are warnings about the question itself.
    """

    candidates: tuple[Candidate, ...]
    reranked: Reranked | None = None
    hints: tuple[AnswerWarning, ...] = ()

    @property
    def warnings(self) -> tuple[AnswerWarning, ...]:
        """For the reader of the result."""
        return self.hints + (self.reranked.warnings if self.reranked else ())


@dataclass(frozen=True, slots=True)
class Retriever:
    """Finds tables as the settings say.

    Attributes:
        embedder: the text encoder.
        chat_model: gives the chat model; called only where it reranks.
        loaded: the chat model, where it is loaded already.
    """

    settings: Settings
    embedder: Embedder
    chat_model: Callable[[], ChatModel]
    loaded: ChatModel | None

    def coarse(
        self,
        index: Index,
        question: str,
        *,
        sources: Collection[str],
        tables: Collection[TableRef] | None = None,
        exclude: Collection[TableRef] = (),
        k: int | None = None,
        timer: StageTimer | None = None,
    ) -> Retrieved:
        """The ``k`` best tables of some sources; the chat model is not asked.

        Args:
            tables: consider only these; ``exclude``: never these.
            timer: is told the seconds of each stage.

        Raises:
            EncoderMismatch, IndexUnusable: the index does not fit or is damaged.
        """
        settings, timer = self.settings, timer or StageTimer()
        candidates = coarse.rank(
            index,
            self.embedder,
            question,
            k=k or settings.k,
            sources=sources,
            tables=tables,
            exclude=exclude,
            join_ranking=settings.join_ranking,
            groups=index.groups if settings.membership else None,
            row_search=cast("RowMode", settings.row_search),
            timer=timer,
        )
        with timer.stage("hints"):
            hints = remote_encoder_warnings(self.embedder, settings.row_search)
            hints += question_warnings(index, self.embedder, question, candidates)
        return Retrieved(tuple(candidates), hints=hints)

    def reranked(
        self,
        index: Index,
        question: str,
        found: Retrieved,
        *,
        rerank: bool | None = None,
        on_event: Callable[[Mapping[str, Any]], None] | None = None,
        timer: StageTimer | None = None,
    ) -> Retrieved:
        """The same tables in the order of the chat model, where it is to rerank.

        Args:
            found: from :meth:`coarse`.
            rerank: whether the chat model orders them anew; None as the settings say.
            on_event: told of a reranking.
            timer: is told the seconds of the stage "rerank".

        Raises:
            IndexUnusable: the index is damaged.
            ModelError: the chat model was to rerank and fails.
        """
        settings, candidates, timer = self.settings, found.candidates, timer or StageTimer()
        if not is_wanted(
            settings, rerank, len(candidates), loaded=self.loaded, load=self.chat_model
        ):
            return found
        vector = self._vector(question)
        with timer.stage("rerank"):
            done = Reranker(self.chat_model(), settings).rerank(index, question, candidates, vector)
        if on_event:
            on_event(done.event())
        return replace(found, candidates=done.candidates, reranked=done)

    def rows(
        self, index: Index, question: str, tables: Sequence[Table]
    ) -> dict[TableRef, tuple[Mapping[str, Any], ...]]:
        """The row context of tables as the settings say, see :func:`row_context`.

        Raises:
            IndexUnusable: the index is damaged, or lacks the row vectors asked for.
        """
        return row_context(
            index,
            question,
            tables,
            kind=self.settings.row_context,
            limit=self.settings.context_rows,
            mode=cast("RowMode", self.settings.row_search),
            vector=self._vector(question),
        )

    def _vector(self, question: str) -> NDArray[np.float32] | None:
        """Of the question, ``[dim]``, where rows are found by vectors."""
        return None if self.settings.row_search == "text" else self.embedder.encode([question])[0]
