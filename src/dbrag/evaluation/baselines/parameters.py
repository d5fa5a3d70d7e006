"""The numbers of the retrieval baselines: published ones, and those chosen on ``spider/train``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WalkParameters:
    """Of the personalised PageRank.

    Damping and sharpness were chosen on 1,500 questions of ``spider/train`` (seed 0) over
    ``coarse``: R@5 76.8, complete 71.5; with the damping of GERT, 0.85, 73.7 and 69.5; the
    base alone 73.0 and 61.9.

    Attributes:
        seeds: tables the walk starts from, as in GERT.
        damping: the share of steps that follow a join.
        sharpness: how much likelier it starts at a better table: softmax of this times the
            score, scaled to deviation 1 over all tables.
        steps: what is left of the walk by then is damping ^ steps.
    """

    seeds: int = 20
    damping: float = 0.5
    sharpness: float = 2.0
    steps: int = 40


@dataclass(frozen=True, slots=True)
class GreedyParameters:
    """``bonus``: what a table gains by joining one chosen before, in deviations of the score.

    Chosen on the same questions: R@5 76.6, complete 70.8 (0.5: 75.8, 67.4; 2: 73.6, 70.9).
    """

    bonus: float = 1.0


@dataclass(frozen=True, slots=True)
class JarWeights:
    """As published for Spider: w1 (columns), w2 (coverage), w3 (joins), w4 (tables), the cap."""

    columns: float = 2.0
    coverage: float = 8.0
    joins: float = 1.0
    tables: float = 10.0
    cap: float = 1.0


@dataclass(frozen=True, slots=True)
class JarParameters:
    """``top`` tables of the base are in the programme, ``size`` of them are chosen."""

    top: int = 50
    size: int = 5
    weights: JarWeights = JarWeights()


WALK = WalkParameters()
GREEDY = GreedyParameters()
JAR = JarParameters()
