"""How sure an answer is: p(right), calibrated on training questions.

Agreement alone says too little, since a small model repeats its own mistakes. So the
likelihood of the best program behind the answer (``reasoning/verify.py``) is put together
with the votes for and against its result, and with how likely its source is the right one
(``reasoning/source_doubt.py``), without which no program is right:

    p(right) = (1 - doubt) / (1 + exp(-(b + l·logit(likelihood) + f·for + a·against)))

``for`` counts the other ballots with the same result, ``against`` those with another one,
both cut at 2. The weights were fitted by maximum likelihood on programs that the default
model wrote for training questions of Spider (``bench/program_weights.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dbrag.logistic import sigmoid
from dbrag.reasoning.program_signs import Asked
from dbrag.reasoning.sureness import SURE, UNSURE
from dbrag.reasoning.vote import Ballot, Tally

__all__ = [
    "SURE",
    "UNSURE",
    "ConfidenceWeights",
    "confidence",
    "doubts_of",
    "features",
    "with_noise",
]

MOST_WORDS = 3
"""Words unknown to the source that are named."""
NOISY = 0.4
"""At most so sure is an answer whose program takes noisy texts as they stand. A judgement: the
databases of the fits are clean."""
MOST = 2
"""Ballots for and against that count."""


@dataclass(frozen=True, slots=True)
class ConfidenceWeights:
    """See the module's text."""

    bias: float = -0.444
    likelihood: float = 1.15
    agreed: float = 0.572
    against: float = -0.851


WEIGHTS = ConfidenceWeights()


def confidence(
    ballots: Sequence[Ballot],
    tally: Tally,
    doubt: float = 0.0,
    weights: ConfidenceWeights = WEIGHTS,
) -> float:
    """p(right) of the winning result, 0..1.

    Args:
        ballots: all that were cast, as ``tally`` counted them.
        doubt: how likely another source is meant, 0..1.
    """
    _, logit, agreed, against = features(ballots, tally)
    return (1.0 - doubt) * sigmoid(
        weights.bias
        + weights.likelihood * logit
        + weights.agreed * agreed
        + weights.against * against
    )


def with_noise(confidence: float, doubts: str) -> tuple[float, str]:
    """Confidence and doubts of an answer that is warned of noise (``reasoning/noise.py``)."""
    why = "the data are written in several ways where the SQL takes them as they stand"
    said = doubts.removeprefix("not sure: ") or "check the SQL"
    return min(NOISY, confidence), f"not sure: {why}; {said}"


def features(ballots: Sequence[Ballot], tally: Tally) -> tuple[float, float, float, float]:
    """(1, logit of the best winner's likelihood, ballots for, ballots against)."""
    best = max(ballots[i].likelihood for i in tally.winners)
    bounded = min(0.999, max(0.001, best))
    agreed = min(MOST, len(tally.winners) - 1)
    against = min(MOST, len(ballots) - len(tally.winners))
    return 1.0, math.log(bounded / (1.0 - bounded)), float(agreed), float(against)


def doubts_of(confidence: float, tally: Tally, asked: Asked) -> str:
    """Why an unsure answer may be wrong, the weightiest reason first; nothing of a surer one."""
    if confidence >= UNSURE and tally.agreement >= UNSURE:
        return ""
    found = []
    if tally.agreement < UNSURE:
        found.append("the programs tried do not agree")
    if asked.doubt > UNSURE:
        found.append("another source fits nearly as well")
    if asked.strange:
        words = ", ".join(repr(word) for word in asked.strange[:MOST_WORDS])
        found.append(f"nothing here is called {words}")
    reasons = "; ".join([*found, "check the SQL"])
    return f"not sure: {reasons}" if confidence < UNSURE else reasons
