"""Whether the sources have to do with a question at all."""

from __future__ import annotations

from collections.abc import Sequence

from dbrag.errors import DbragError, Unanswerable, UnknownName
from dbrag.index.words import stems
from dbrag.types import Candidate

SIMILARITY_FLOOR = {
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6": 0.35,
}
"""Encoder (SHA-256) → the best similarity below which no table has to do with a question.

On 400 training questions of Spider the right database was below 0.35 for 0.5% and another
one, drawn at random, for 81% (all-MiniLM-L6-v2, int8). Unknown encoders have no floor."""
MOST_WORDS = 5
"""Words of the question that are named."""


def check_evidence(candidates: Sequence[Candidate], encoder_sha256: str) -> None:
    """Refuse a question that nothing in the sources speaks of.

    Raises:
        Unanswerable: there is no table, or none resembles the question and no value in
            the data is mentioned in it.
    """
    if not candidates:
        raise Unanswerable("there is no table to answer from", "dbrag status shows what is indexed")
    best = max(candidates, key=lambda candidate: candidate.similarity)
    floor = SIMILARITY_FLOOR.get(encoder_sha256, -1.0)
    if best.similarity < floor and not any(candidate.matches for candidate in candidates):
        raise Unanswerable(
            "no table here has to do with this question: the nearest, "
            f"{best.table}, resembles it by {best.similarity:.2f} (at least {floor} is needed)",
            "dbrag search shows the nearest tables; --tables NAME uses one all the same",
        )


def cannot(
    failure: DbragError,
    errors: Sequence[DbragError | None],
    source: str,
    strange: Sequence[str],
) -> DbragError:
    """What to say where no program came to a result: that the source does not hold what is
    asked for, where both the question and the program name what is not there.

    Args:
        failure: what is told otherwise.
        errors: of all programs: one that failed for another reason knew how to answer.
        strange: words of the question that the source does not know.
    """
    if not failure.hint:
        failure.hint = "ask in other words, or name the tables that hold it: --tables NAME"
    if not isinstance(failure, UnknownName):
        return failure
    if not all(isinstance(error, UnknownName) for error in errors):
        return failure
    missing = {stem for name in failure.names for stem in stems(name)}
    words = [word for word in strange if missing & set(stems(word))]
    if not words:
        return failure
    return Unanswerable(
        f"this cannot be answered here, because nothing in {source} is called "
        f"{', '.join(map(repr, words[:MOST_WORDS]))}",
        "dbrag search shows the nearest tables; if one of them holds it under another name, "
        "tell it in [notes] or ask in its own words",
    )
