"""Intervals and tests with a fixed seed, so that a comparison prints the same twice."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000
SEED = 0


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean (or a mean difference) with its 95% bootstrap interval.

    ``low`` and ``high`` are None where there is only one unit to draw from: nothing
    can be said about others then.
    """

    mean: float
    low: float | None
    high: float | None

    def to_dict(self) -> dict[str, float | None]:
        """JSON, rounded to six places."""
        low, high = self.low, self.high
        return {
            "mean": round(self.mean, 6),
            "low": None if low is None else round(low, 6),
            "high": None if high is None else round(high, 6),
        }


def bootstrap(
    scores: Sequence[float],
    units: Sequence[Hashable] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    level: float = 0.95,
) -> Interval:
    """Percentile bootstrap of a mean (Efron 1979), over questions or over clusters.

    Clusters are drawn whole, with replacement; the statistic of a draw is the mean over
    all its questions, so large databases weigh more, as in the reported figure.

    Args:
        scores: one per question ``[n]``.
        units: the cluster (database) of each question ``[n]``; None draws questions.

    Raises:
        ValueError: no scores, or ``units`` of another length.
    """
    if not scores:
        raise ValueError("a mean needs at least one score")
    names = list(range(len(scores))) if units is None else list(units)
    if len(names) != len(scores):
        raise ValueError(f"{len(scores)} scores but {len(names)} units")
    values = np.asarray(scores, dtype=np.float64)
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    member = np.array([number[name] for name in names])
    sums = np.bincount(member, weights=values)  # [n_units]
    sizes = np.bincount(member).astype(np.float64)  # [n_units]
    mean = float(values.mean())
    if len(sums) < 2:
        return Interval(mean, None, None)
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    for start in range(0, resamples, 500):  # 500 draws at a time keep the memory small
        stop = min(start + 500, resamples)
        draw = rng.integers(len(sums), size=(stop - start, len(sums)))
        means[start:stop] = sums[draw].sum(axis=1) / sizes[draw].sum(axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(mean, float(low), float(high))


def paired_bootstrap(
    a: Sequence[float],
    b: Sequence[float],
    units: Sequence[Hashable] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    level: float = 0.95,
) -> Interval:
    """Bootstrap of the mean difference ``b − a`` over the same questions.

    Args:
        a, b: scores of two runs, question by question ``[n]``.
        units: the database of each question, to draw whole databases.

    Raises:
        ValueError: runs of different length, or none.
    """
    if len(a) != len(b):
        raise ValueError(f"paired runs differ in length: {len(a)} and {len(b)}")
    differences = [y - x for x, y in zip(a, b, strict=True)]
    return bootstrap(differences, units, resamples=resamples, seed=seed, level=level)


def mcnemar(wins: int, losses: int) -> float:
    """Exact two-sided McNemar test (1947): p-value of discordant counts.

    ``min(1, 2 · P[Binomial(wins + losses, ½) ≤ min(wins, losses)])``; 1 without any.
    """
    n = wins + losses
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, i) for i in range(min(wins, losses) + 1))
    return min(1.0, float(2 * tail / 2**n))


def wilson(successes: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927), 95% by default; sound near 0 and 1.

    ``(p + z²/2n ± z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n)`` with ``p = successes / n``.

    Raises:
        ValueError: no trial, or more successes than trials.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes!r} successes of {n!r} trials")
    p, square = successes / n, z * z / n
    centre = p + square / 2
    spread = z * math.sqrt(p * (1 - p) / n + square / (4 * n))
    low, high = ((centre + sign * spread) / (1 + square) for sign in (-1, 1))
    # Exactly 0 and 1 at the ends, where rounding would leave 1e-18.
    return (0.0 if successes == 0 else low), (1.0 if successes == n else high)


def bootstrap_median(
    values: Sequence[float],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    level: float = 0.95,
) -> Interval:
    """Percentile bootstrap of a median; ``mean`` of the result holds the median.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("a median needs at least one value")
    found = np.asarray(values, dtype=np.float64)
    middle = float(np.median(found))
    if len(found) < 2:
        return Interval(middle, None, None)
    rng = np.random.default_rng(seed)
    draws = found[rng.integers(len(found), size=(resamples, len(found)))]
    tail = (1 - level) / 2
    low, high = np.quantile(np.median(draws, axis=1), [tail, 1 - tail])
    return Interval(middle, float(low), float(high))
