"""How likely the chosen source is the wrong one, by how well the others fit.

    share = exp(s_home) / sum of exp(s) over all homes
    p(right) = 1 / (1 + exp(-(b + w·logit(share))))

with the strengths ``s`` of ``select.source_strengths``: their softmax, calibrated by a
logistic function (Platt 1999) on training questions of Spider put to all its databases,
which needs no language model (``bench/source_doubt.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dbrag.logistic import sigmoid

LEAST_SHARE = 0.001
"""Shares are kept this far from 0 and 1."""


@dataclass(frozen=True, slots=True)
class SourceWeights:
    """See the module's text."""

    bias: float = -0.87
    share: float = 0.92


WEIGHTS = SourceWeights()


def source_doubt(
    strengths: Mapping[str, float], home: str, weights: SourceWeights = WEIGHTS
) -> float:
    """1 - p(right) of a home, a source or a part of one, 0..1; 0 where there is no other.

    Args:
        strengths: home → how well it fits the question.
    """
    if not any(name != home for name in strengths):
        return 0.0
    return 1.0 - sigmoid(weights.bias + weights.share * share_logit(strengths, home))


def share_logit(strengths: Mapping[str, float], home: str) -> float:
    """logit of the home's share in the softmax of all strengths; unknown homes have 0."""
    own = strengths.get(home, 0.0)
    others = [strength for name, strength in strengths.items() if name != home]
    highest = max((own, *others))
    mine = math.exp(own - highest)
    share = mine / (mine + sum(math.exp(strength - highest) for strength in others))
    bounded = min(1.0 - LEAST_SHARE, max(LEAST_SHARE, share))
    return math.log(bounded / (1.0 - bounded))
