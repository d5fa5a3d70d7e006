"""How likely a program is right, given that its source is: a logistic model over its signs.

After LEVER (Ni et al. 2023, "Learning to verify language-to-code generation with
execution"): programs vote with their results, and a result counts as much as its programs
are likely to be right. p(right) = 1 / (1 + exp(-w·x)), x the signs of
``reasoning/program_signs.py``; the weights were fitted by maximum likelihood (Newton's
method, L2 = 3) on programs that the default model wrote for training questions of Spider,
with ``bench/program_weights.py``. They know nothing of any one database or model; where a
model does not tell its log-probabilities, a middling one is taken.
"""

from __future__ import annotations

from dataclasses import astuple

from dbrag.logistic import sigmoid
from dbrag.reasoning.program_signs import ProgramSigns

UNKNOWN = 0.5
"""Of a program whose text cannot be taken apart."""

WEIGHTS = ProgramSigns(
    bias=1.572,
    logprob=0.418,
    repaired=-0.883,
    mended=-0.046,
    hollow=-0.854,
    unused=-0.73,
    repeated=-1.016,
    single=0.148,
    nested=-0.093,
    unknown=-1.394,
    similarity=0.487,
)


def likelihood(signs: ProgramSigns | None, weights: ProgramSigns = WEIGHTS) -> float:
    """p(right) of one program by its own signs, where its source is the right one, 0..1."""
    if signs is None:
        return UNKNOWN
    return sigmoid(sum(w * x for w, x in zip(astuple(weights), astuple(signs), strict=True)))
