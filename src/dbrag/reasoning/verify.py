"""How likely a program is right: a logistic model over its signs.

After LEVER (Ni et al. 2023, "Learning to verify language-to-code generation with
execution"): programs vote with their results, and a result counts as much as its programs
are likely to be right. p(right) = 1 / (1 + exp(-w·x)), x the signs of
``reasoning/program_signs.py``; the weights were fitted by maximum likelihood (Newton's
method, L2 = 1) on programs that the default model wrote for training questions of Spider,
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
    bias=1.06,
    logprob=0.18,
    repaired=-0.97,
    mended=-0.09,
    hollow=-1.58,
    unused=-1.12,
    values_unused=-1.63,
    repeated=-1.21,
    single=1.0,
    nested=-0.4,
    unknown=-1.02,
    similarity=0.52,
    doubt=-0.69,
)


def likelihood(signs: ProgramSigns | None, weights: ProgramSigns = WEIGHTS) -> float:
    """p(right) of one program by its own signs, 0..1."""
    if signs is None:
        return UNKNOWN
    return sigmoid(sum(w * x for w, x in zip(astuple(weights), astuple(signs), strict=True)))
