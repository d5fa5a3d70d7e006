"""Reranking (section 3.3 of the paper): a chat model orders the best tables anew.

One listwise prompt shows the candidates with their row context and asks for the ``m``
best. The order of each valid reply is fused with the prior order by reciprocal ranks
(Cormack, Clarke and Büttcher 2009):

    fused(t) = w_prior / (c + rank_prior(t)) + w_model · mean over replies of 1 / (c + rank(t))

Every order is complete: tables that a reply does not name follow the named ones in prior
order. So no reply, however bad, adds or loses a table.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from dbrag.errors import InvalidReply, PromptTooLong
from dbrag.retrieval.context import row_context
from dbrag.retrieval.prompts import Fitted, Shown, rerank_prompt
from dbrag.retrieval.replies import read_order, reply_schema
from dbrag.types import AnswerWarning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.row_search import RowMode
    from dbrag.index.store import Index
    from dbrag.models.base import ChatModel, Prompt
    from dbrag.settings import Settings
    from dbrag.types import Candidate, TableRef

VOTE_TEMPERATURE = 0.5
"""Of the paper, for several replies; a single one is greedy."""
RETRIES = 2
LOCAL_K = 15
LOCAL_TOKENS, REMOTE_TOKENS = 4_096, 12_000
"""Default budgets: a small local model reads slowly; gpt-3.5-turbo holds 16,385."""
_SHRINKS = 4


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """Weights of the fusion; ``c`` as in the source of the formula."""

    prior: float = 1.0
    model: float = 1.0
    c: float = 60.0


DEFAULT = FusionWeights()


@dataclass(frozen=True)
class Reranked:
    """What a reranking did; ``prior``, ``model`` and the candidates are the same tables.

    Attributes:
        candidates: in fused order. Each place keeps the score it had in the prior order,
            so scores stay comparable with those of other questions; ``parts["rerank"]``
            holds the difference to the table's own.
        prior: the order before.
        model: the order of the replies alone, fused with each other; ``prior`` without any.
        model_name: ``provider:name``; ``remote``: the prompt left this machine.
        k: tables shown to the model; ``m``: tables it was asked for.
        votes: replies asked for; ``valid`` of them named a table.
        calls: requests made, retries included.
        seconds: wall time of all of it.
        tokens: "prompt", "cached", "completion"; "cache_hits": replies that cost none.
        left_out: tables, columns and rows that did not fit the prompt.
        warnings: for the reader of the result.
    """

    candidates: tuple[Candidate, ...]
    prior: tuple[TableRef, ...]
    model: tuple[TableRef, ...]
    model_name: str
    remote: bool
    k: int
    m: int
    votes: int
    valid: int
    calls: int
    seconds: float
    tokens: Mapping[str, int]
    left_out: Mapping[str, int]
    row_context: str
    warnings: tuple[AnswerWarning, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The ``rerank`` object of the JSON of ``search``."""
        return {
            "model": self.model_name,
            "k": self.k,
            "m": self.m,
            "votes": self.votes,
            "valid": self.valid,
            "calls": self.calls,
            "row_context": self.row_context,
            "seconds": round(self.seconds, 4),
            "tokens": dict(self.tokens),
            "left_out": dict(self.left_out),
        }

    def event(self) -> dict[str, Any]:
        """The entry of the trace, with the best tables before and after."""
        return {
            "stage": "rerank",
            **self.to_dict(),
            "before": [str(ref) for ref in self.prior[: self.m]],
            "by_model": [str(ref) for ref in self.model[: self.m]],
            "after": [str(c.table) for c in self.candidates[: self.m]],
        }


@dataclass
class _Talk:
    """What was asked and answered so far."""

    orders: list[tuple[int, ...]] = field(default_factory=list)
    calls: int = 0
    tokens: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("prompt", "cached", "completion", "cache_hits"), 0)
    )
    problem: str = ""


class Reranker:
    """Orders candidates anew with a chat model.

    Args:
        model: any chat model; one with ``token_count`` is asked for exact counts.
        settings: ``m``, ``rerank_k``, ``rerank_votes``, ``rerank_tokens``,
            ``row_context`` and ``context_rows``.
    """

    def __init__(
        self, model: ChatModel, settings: Settings, weights: FusionWeights = DEFAULT
    ) -> None:
        self._model = model
        self._settings = settings
        self._weights = weights

    @property
    def k(self) -> int:
        """Tables shown at most."""
        if self._settings.rerank_k is not None:
            return self._settings.rerank_k
        return self._settings.k if self._model.remote else min(LOCAL_K, self._settings.k)

    def rerank(
        self,
        index: Index,
        question: str,
        candidates: Sequence[Candidate],
        vector: NDArray[np.float32] | None = None,
    ) -> Reranked:
        """Candidates in prior order → the same in fused order.

        Two replies that name no known table are asked for again; then the prior order
        stays, with a warning.

        Args:
            vector: of the question, ``[dim]``, where rows are found by vectors.

        Raises:
            PromptTooLong: not even two tables fit.
            ModelError: the model fails or cannot be reached.
            IndexUnusable: the index is damaged, or lacks the row vectors asked for.
        """
        started = time.perf_counter()
        shown = self._shown(index, question, candidates[: self.k], vector)
        talk = _Talk()
        fitted = self._ask(question, shown, talk)
        n = len(candidates)
        orders = [complete(order, n) for order in talk.orders]
        alone = fuse(n, orders, replace(self._weights, prior=0.0))
        fused = fuse(n, orders, self._weights)
        named = {i for order in talk.orders for i in order}
        return Reranked(
            candidates=_in_order(candidates, fused, [i for i in alone if i in named]),
            prior=tuple(candidate.table for candidate in candidates),
            model=tuple(candidates[i].table for i in alone),
            model_name=self._model.name,
            remote=self._model.remote,
            k=fitted.shown,
            m=min(self._settings.m, fitted.shown),
            votes=self._settings.rerank_votes,
            valid=len(talk.orders),
            calls=talk.calls,
            seconds=time.perf_counter() - started,
            tokens=talk.tokens,
            left_out=fitted.left_out,
            row_context=self._settings.row_context,
            warnings=() if talk.orders else (_failed(self._model.name, talk),),
        )

    # ---- the prompt -----------------------------------------------------------------

    def _shown(
        self,
        index: Index,
        question: str,
        candidates: Sequence[Candidate],
        vector: NDArray[np.float32] | None,
    ) -> tuple[Shown, ...]:
        settings = self._settings
        tables = [index.catalog.by_ref[candidate.table] for candidate in candidates]
        rows = row_context(
            index,
            question,
            tables,
            kind=settings.row_context,
            limit=settings.context_rows,
            mode=cast("RowMode", settings.row_search),
            vector=vector,
        )
        place = {table.ref: i for i, table in enumerate(tables)}
        shown = []
        for table, candidate in zip(tables, candidates, strict=True):
            near = [ref for ref in index.joins.neighbours(table.ref) if ref in place]
            edges = [edge for ref in near for edge in index.joins.between(table.ref, ref)]
            columns = {c for e in edges if e.left == table.ref for c in e.left_columns}
            columns |= {c for e in edges if e.right == table.ref for c in e.right_columns}
            shown.append(
                Shown(
                    table,
                    rows[table.ref],
                    candidate.matches if settings.row_context == "relevant" else (),
                    tuple(sorted(place[ref] for ref in near)),
                    frozenset(columns),
                )
            )
        return tuple(shown)

    def _budget(self) -> int:
        """Tokens that the prompt may take."""
        default = REMOTE_TOKENS if self._model.remote else LOCAL_TOKENS
        wanted = self._settings.rerank_tokens or default
        return min(wanted, self._model.context_tokens - self._reply_tokens())

    def _reply_tokens(self) -> int:
        return 100 + 8 * self._settings.m

    # ---- the replies ----------------------------------------------------------------

    def _ask(self, question: str, shown: Sequence[Shown], talk: _Talk) -> Fitted:
        """Ask until enough replies are valid; one that the model refuses as too long
        is shortened by a third and sent again."""
        budget = self._budget()
        for attempt in range(_SHRINKS + 1):
            fitted = rerank_prompt(
                question,
                shown,
                m=self._settings.m,
                budget_tokens=budget,
                count=getattr(self._model, "token_count", None),
            )
            try:
                self._sample(fitted.prompt, fitted.shown, talk)
            except PromptTooLong:
                if attempt == _SHRINKS:
                    raise
                budget = fitted.tokens * 2 // 3
            else:
                break
        return fitted

    def _sample(self, prompt: Prompt, n_shown: int, talk: _Talk) -> None:
        """Fill ``talk`` with orders of positions ``[n_named]``, each below ``n_shown``."""
        votes = self._settings.rerank_votes
        m, strict = min(self._settings.m, n_shown), not self._model.remote
        schema: Mapping[str, Any] | None = reply_schema(m, n_shown, strict=strict)
        for attempt in range(RETRIES + 1):
            missing = votes - len(talk.orders)
            if missing < 1:
                return
            talk.calls += 1
            try:
                replies = self._model.sample(
                    prompt,
                    missing,
                    temperature=VOTE_TEMPERATURE if votes > 1 or attempt else 0.0,
                    max_tokens=self._reply_tokens(),
                    schema=schema,
                    seed=attempt * 1000,
                )
            except InvalidReply as error:
                # Some models do worse under a schema: then the reply is read as it comes.
                talk.problem, schema = error.message, None
                continue
            for reply in replies:
                talk.tokens["prompt"] += reply.prompt_tokens
                talk.tokens["cached"] += reply.cached_tokens
                talk.tokens["completion"] += reply.completion_tokens
                talk.tokens["cache_hits"] += reply.cached
                order = read_order(reply.text, n_shown, cut=reply.finish == "length")
                if order:
                    talk.orders.append(order)
                else:
                    talk.problem = f"no table is named in {reply.text[:80]!r}"


def complete(order: Sequence[int], n: int) -> list[int]:
    """All positions ``[n]``: the named ones (the first time each), then the others in order."""
    named = dict.fromkeys(i for i in order if 0 <= i < n)
    return [*named, *(i for i in range(n) if i not in named)]


def fuse(n: int, orders: Sequence[Sequence[int]], weights: FusionWeights = DEFAULT) -> list[int]:
    """The fused order of ``n`` positions in prior order 0, 1, …; ties in prior order.

    Args:
        orders: complete orders ``[n_votes][n]``; none leaves the prior order.
    """
    if not orders:
        return list(range(n))
    scores = [weights.prior / (weights.c + rank) for rank in range(1, n + 1)]
    for order in orders:
        for rank, i in enumerate(order, start=1):
            scores[i] += weights.model / len(orders) / (weights.c + rank)
    return sorted(range(n), key=lambda i: (-scores[i], i))


def _in_order(
    candidates: Sequence[Candidate], fused: Sequence[int], named: Sequence[int]
) -> tuple[Candidate, ...]:
    """The candidates with the scores of their new places."""
    choice = {i: number for number, i in enumerate(named, start=1)}
    moved = []
    for place, i in enumerate(fused):
        own, score = candidates[i], candidates[place].score
        told = f"the model's choice no. {choice[i]}" if i in choice else ""
        moved.append(
            replace(
                own,
                score=score,
                parts={**own.parts, "rerank": score - own.score},
                reason="; ".join(text for text in (own.reason, told) if text),
            )
        )
    return tuple(moved)


def _failed(model: str, talk: _Talk) -> AnswerWarning:
    return AnswerWarning(
        "rerank_failed",
        f"{model} gave no order in {talk.calls} tries ({talk.problem}): the tables stand as "
        "the search without it ranked them",
    )
