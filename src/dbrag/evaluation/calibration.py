"""How far agreement and confidence tell right answers from wrong ones.

A call is one answer: its probability of being right as told, 0..1, and whether it was right.
Questions without an answer make no claim; they count in ``coverage`` only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from dbrag.evaluation.significance import bootstrap
from dbrag.reasoning.sureness import SURE

BINS = 10
KINDS = ("agreement", "confidence")
"""What is told of an answer, see ``dbrag.types.Answer``."""


@dataclass(frozen=True, slots=True)
class Call:
    """One answer: the probability told (0..1), whether it was right, and its database."""

    told: float
    right: bool
    db_id: str = ""


@dataclass(frozen=True, slots=True)
class Bin:
    """The calls told ``low`` to below ``high`` (the last one to 1): a bar of the diagram.

    ``mean`` is the mean probability told, ``right`` the share that was right; both are only
    defined where ``n`` is above 0, and empty bins are left out.
    """

    low: float
    high: float
    n: int
    mean: float
    right: float

    def to_dict(self) -> dict[str, float]:
        """JSON, rounded to six places."""
        return {name: round(getattr(self, name), 6) for name in self.__slots__}


def reliability(calls: Sequence[Call], bins: int = BINS) -> list[Bin]:
    """The bins of equal width that hold calls, lowest first (a reliability diagram).

    Raises:
        ValueError: no bins, or a probability outside of 0..1.
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins!r}")
    edges = [i / bins for i in range(1, bins)]
    members: list[list[Call]] = [[] for _ in range(bins)]
    for call in calls:
        if not 0 <= call.told <= 1:
            raise ValueError(f"a probability lies between 0 and 1, not {call.told!r}")
        members[bisect_right(edges, call.told)].append(call)
    return [
        Bin(
            low=i / bins,
            high=(i + 1) / bins,
            n=len(group),
            mean=fmean(call.told for call in group),
            right=fmean(call.right for call in group),
        )
        for i, group in enumerate(members)
        if group
    ]


def expected_calibration_error(calls: Sequence[Call], bins: int = BINS) -> float:
    """``Σ_b n_b/n · |right_b − mean_b|`` over bins of equal width (ECE), 0 is best.

    Source: Naeini, Cooper and Hauskrecht 2015, Obtaining well calibrated probabilities
    using Bayesian binning, AAAI.

    Raises:
        ValueError: no call.
    """
    if not calls:
        raise ValueError("a calibration error needs at least one call")
    found = reliability(calls, bins)
    return sum(one.n / len(calls) * abs(one.right - one.mean) for one in found)


def brier(calls: Sequence[Call]) -> float:
    """``mean (told − right)²``, 0 is best; always telling 1/2 gives 1/4.

    Source: Brier 1950, Verification of forecasts expressed in terms of probability,
    Monthly Weather Review 78; his sum over both classes is twice this.

    Raises:
        ValueError: no call.
    """
    if not calls:
        raise ValueError("a Brier score needs at least one call")
    return fmean((call.told - call.right) ** 2 for call in calls)


def auroc(calls: Sequence[Call]) -> float | None:
    """The chance that a right call is told higher than a wrong one, ties counting half.

    The area under the ROC curve: 1/2 tells nothing, 1 all. None where all calls are right,
    or all are wrong: it is not defined then.

    Source: Hanley and McNeil 1982, Radiology 143 (Mann–Whitney U over the number of pairs).
    """
    right = [call.told for call in calls if call.right]
    wrong = sorted(call.told for call in calls if not call.right)
    if not right or not wrong:
        return None
    below = [bisect_right(wrong, told) for told in right]
    # Those equal to it are in `below`, too, and count half.
    equal = sum(wrong.count(told) for told in right)
    return (sum(below) - equal / 2) / (len(right) * len(wrong))


def at_threshold(calls: Sequence[Call], threshold: float, questions: int) -> dict[str, Any]:
    """The calls told at least ``threshold``: how many, the share right, and the coverage.

    ``coverage`` is their share of all questions, answered or not. ``interval`` holds 95%
    bootstrap intervals of ``right``, over databases and over questions. Both are None where
    nothing is told as surely.

    Args:
        questions: number of all questions, the denominator.

    Raises:
        ValueError: fewer questions than calls.
    """
    if questions < len(calls):
        raise ValueError(f"{len(calls)} calls of only {questions} questions")
    sure = [call for call in calls if call.told >= threshold]
    found: dict[str, Any] = {"threshold": threshold, "n": len(sure)}
    found["coverage"] = round(len(sure) / questions, 6) if questions else None
    if not sure:
        return {**found, "right": None, "interval": None}
    scores = [float(call.right) for call in sure]
    over = {"databases": [call.db_id for call in sure], "questions": None}
    intervals = {unit: bootstrap(scores, units).to_dict() for unit, units in over.items()}
    return {
        **found,
        "right": round(fmean(scores), 6),
        "interval": {unit: [one["low"], one["high"]] for unit, one in intervals.items()},
    }


def calibration(
    records: Sequence[Mapping[str, Any]], thresholds: Sequence[float] = (SURE,)
) -> dict[str, Any]:
    """What ``summary.json`` tells of ``agreement`` and ``confidence``.

    For each kind, None where no answer tells it: ``n`` answers and the share ``right``
    (``EX``), the ``bins``, ``ECE``, ``Brier``, ``AUROC``, and ``sure``, the figures of
    :func:`at_threshold` for each threshold.

    Args:
        records: one per question, whole or slim.
    """
    found: dict[str, Any] = {}
    for kind in KINDS:
        calls = calls_of(records, kind)
        found[kind] = _figures(calls, thresholds, len(records)) if calls else None
    return found


def calls_of(records: Sequence[Mapping[str, Any]], kind: str) -> list[Call]:
    """The answered records as calls; those that do not tell ``kind`` are left out."""
    calls = []
    for record in records:
        told = told_in(record)
        if told.get("status") == "answered" and told.get(kind) is not None:
            right = record["scores"].get("EX", 0.0) == 1.0
            calls.append(Call(float(told[kind]), right, str(record["db_id"])))
    return calls


def told_in(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where a record holds status, agreement and confidence: in its prediction, or (slim) "told".

    A run of an older version may hold neither.
    """
    found: Mapping[str, Any] = record.get("prediction") or record.get("told") or {}
    return found


def _figures(calls: Sequence[Call], thresholds: Sequence[float], questions: int) -> dict[str, Any]:
    area = auroc(calls)
    return {
        "n": len(calls),
        "right": round(fmean(call.right for call in calls), 6),
        "ECE": round(expected_calibration_error(calls), 6),
        "Brier": round(brier(calls), 6),
        "AUROC": None if area is None else round(area, 6),
        "sure": [at_threshold(calls, threshold, questions) for threshold in thresholds],
        "bins": [one.to_dict() for one in reliability(calls)],
    }
