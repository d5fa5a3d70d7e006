"""The names of the retrieval baselines, and what can be set of them; imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from dbrag.errors import UsageError
from dbrag.options import leave_out

BASES = ("coarse", "bm25", "contriever", "dtr")
"""Rank tables one by one."""
ON_BASES = ("jar", "pagerank", "greedy-join")
"""Rank tables anew by their joins, over the scores of a base; ``coarse`` where none is named."""
OTHER_BASES = (*BASES, "hybrid")
"""What they can stand on: ``hybrid`` is dbrag's own search without a chat model."""
WITH_WEIGHTS = ("contriever", "dtr")
"""Bases that ``--weights`` is for."""
CONTRIEVER = "facebook/contriever-msmarco"
"""Weights of ``contriever`` where none are named."""
FROM_MODEL = "model"
"""Where sub-questions come from, if not from a file."""

RETRIEVAL_BASELINES = (
    *BASES,
    *ON_BASES,
    *(f"{method}:{base}" for method in ON_BASES for base in OTHER_BASES),
)


@dataclass(frozen=True, slots=True)
class BaselineOptions:
    """What the caller says of a baseline.

    Attributes:
        weights: of ``contriever`` or ``dtr``: a folder, or a name on the Hugging Face hub.
        sub_questions: of ``jar``: a file of JSON lines, or "model" (the chat model writes
            them); None: the question itself is the only one.
        solver_s: seconds after which the best choice of tables found so far is taken.
    """

    weights: str | None = None
    sub_questions: str | None = None
    solver_s: float = 60.0

    def check(self, method: str) -> None:
        """Refuse what the method has no use for.

        Raises:
            UsageError: an option of another method, or a wrong number of seconds.
        """
        reranker, base = parts_of(method)
        if self.weights is not None and base not in WITH_WEIGHTS:
            raise UsageError(
                f"the method {method!r} takes no weights, not {self.weights!r}",
                "--weights is for contriever and dtr",
            )
        if self.sub_questions is not None and reranker != "jar":
            raise UsageError(
                f"the method {method!r} takes no sub-questions, not {self.sub_questions!r}",
                "--sub-questions is for jar",
            )
        if not 0 < self.solver_s < float("inf"):
            raise UsageError(
                f"solver_s must be positive and finite, not {self.solver_s!r}",
                leave_out(BaselineOptions, "solver_s"),
            )


NO_OPTIONS = BaselineOptions()


def parts_of(method: str) -> tuple[str, str]:
    """``jar:bm25`` → ``("jar", "bm25")``; ``bm25`` → ``("", "bm25")``; ``jar`` is on coarse."""
    name, _, base = method.partition(":")
    if name in ON_BASES:
        return name, base or "coarse"
    return "", name


def is_baseline(method: str) -> bool:
    """Whether a retrieval method is one of these."""
    return method in RETRIEVAL_BASELINES
