"""JAR as a method: the best tables of a base, chosen anew with their joins.

Chen, Zhang and Roth 2024, "Is table retrieval a solved problem? Exploring join-aware
multi-table retrieval" (arXiv 2404.09889); the programme is in ``jar_program``, the columns
in ``jar_columns``. The DBRAG paper sets it over Contriever, DTR and its coarse ranking.

The tables chosen come first, in the order of the base's score, then the others in that
order: JAR itself gives a set of five. Scores of a base that are not cosines are scaled to
0..1 over all tables, as the authors do with DTR's on Spider.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.evaluation.baselines.jar_columns import column_facts, headers, joinability, relevance
from dbrag.evaluation.baselines.jar_program import Choice, Problem, solve
from dbrag.evaluation.baselines.jar_questions import ask_concepts, read_sub_questions
from dbrag.evaluation.baselines.names import FROM_MODEL
from dbrag.evaluation.baselines.packages import need
from dbrag.evaluation.baselines.parameters import JAR, JarParameters
from dbrag.evaluation.baselines.remembered import encoded
from dbrag.evaluation.baselines.scorers import best_first
from dbrag.evaluation.methods import Ranking
from dbrag.reasoning.budget import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.evaluation.baselines.jar_columns import ColumnFacts
    from dbrag.evaluation.baselines.scorers import Scorer
    from dbrag.evaluation.methods import Tools
    from dbrag.models.base import Embedder
    from dbrag.types import TableRef

    Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Asked:
    """Sub-questions, where they come from ("question", "file", "model"), tokens spent."""

    parts: tuple[str, ...]
    origin: str
    tokens: Mapping[str, int]


class Jar:
    """Ranks tables by the programme.

    Args:
        scorer: the base.
        facts: of all columns.
        refs: of all tables, in the order of the catalog.
        encoder: of sub-questions and headers.
        ask: gives the sub-questions of a question.
        solver_s: seconds for the solver.
    """

    def __init__(
        self,
        scorer: Scorer,
        facts: ColumnFacts,
        refs: Sequence[TableRef],
        encoder: Embedder,
        ask: Callable[[str], Asked],
        *,
        solver_s: float = 60.0,
        parameters: JarParameters = JAR,
    ) -> None:
        self._scorer = scorer
        self._facts = facts
        self._refs = refs
        self._encoder = encoder
        self._ask = ask
        self._solver_s = solver_s
        self._parameters = parameters

    def __call__(self, question: str, k: int) -> Ranking:
        """One question.

        Where no five tables are connected the base's order stands, and the record tells
        so: ``solver`` is then "infeasible".

        Raises:
            ModelError: the encoder or the chat model fails.
        """
        started = time.perf_counter()
        scores = self._scorer.scores(question)
        order = best_first(scores)
        ranked = time.perf_counter()
        asked = self._ask(question)
        split = time.perf_counter()
        top = order[: self._parameters.top]
        choice = solve(self._problem(scores, top, asked.parts), self._solver_s)
        chosen = {int(top[i]) for i in choice.tables}
        final = [*(i for i in order if i in chosen), *(i for i in order if i not in chosen)]
        done = time.perf_counter()
        return Ranking(
            [self._refs[i] for i in final[:k]],
            others={"base": [self._refs[i] for i in order[:k]]},
            tokens=asked.tokens,
            stages={"base": ranked - started, "ask": split - ranked, "choose": done - split},
            told=_told(choice, asked),
        )

    def _problem(self, scores: Array, top: NDArray[np.int64], parts: Sequence[str]) -> Problem:
        import numpy as np

        if not self._scorer.cosine:
            known = scores[np.isfinite(scores)]
            span = float(known.max() - known.min()) or 1.0
            scores = np.where(np.isfinite(scores), (scores - known.min()) / span, 0.0)
        tables = [int(i) for i in top]
        return Problem(
            scores=scores[top].astype(np.float64),
            relevance=relevance(self._facts, tables, self._encoder.encode(list(parts))),
            joins=joinability(self._facts, tables),
            size=min(self._parameters.size, len(tables)),
            weights=self._parameters.weights,
        )


def _told(choice: Choice, asked: Asked) -> dict[str, Any]:
    return {
        "solver": choice.status,
        "solver_ms": choice.ms,
        "objective": round(choice.objective, 6),
        "sub_questions": asked.origin,
        "parts": len(asked.parts),
    }


def make_jar(tools: Tools, scorer: Scorer) -> Jar:
    """JAR over a base, with the columns of the opened index.

    Raises:
        ModelNotInstalled: scipy is missing.
        IndexUnusable: the index holds no values of columns.
        UsageError: the file of sub-questions cannot be used.
    """
    need("jar", "scipy")
    index, tables = tools.db.opened_index(), list(tools.catalog.tables)
    encoder = tools.db.embedder()
    vectors = encoded(tools.db.settings.cache_dir, encoder, headers(tables))
    return Jar(
        scorer,
        column_facts(index, tables, vectors),
        tools.catalog.refs,
        encoder,
        asker(tools),
        solver_s=tools.baseline.solver_s,
    )


def asker(tools: Tools) -> Callable[[str], Asked]:
    """Where sub-questions come from, as the options say.

    Raises:
        UsageError: the file cannot be used.
    """
    wanted = tools.baseline.sub_questions
    if wanted is None:
        return lambda question: Asked((question,), "question", {})
    if wanted == FROM_MODEL:
        return lambda question: _by_model(tools, question)
    known = read_sub_questions(Path(wanted), tools.asked)
    return lambda question: Asked(known(question), "file", {})


def _by_model(tools: Tools, question: str) -> Asked:
    parts, reply = ask_concepts(tools.model(), question)
    spent = Usage()
    spent.add(reply)
    if not parts:  # told in the record
        return Asked((question,), "question, the model's reply was unreadable", spent.tokens())
    return Asked(parts, "model", spent.tokens())
