"""The logistic function of every fitted probability here."""

from __future__ import annotations

import math


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), without overflow."""
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, x))))
