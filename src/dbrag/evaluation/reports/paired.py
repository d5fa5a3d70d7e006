"""Every method against the reference, paired by question, with tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dbrag.errors import UsageError
from dbrag.evaluation.compare import Comparison, compare_records
from dbrag.evaluation.reports.document import DASH, Block, Paragraph, percent, plain, span, table
from dbrag.evaluation.reports.retrieval import BEFORE, rankings
from dbrag.evaluation.reports.runs import ANSWERS, RETRIEVAL, Run
from dbrag.evaluation.significance import RESAMPLES, SEED
from dbrag.evaluation.summary import score

METRICS = {RETRIEVAL: ("R@5", "CR@5"), ANSWERS: ("EX", "TableEM")}
DEFAULT_METHOD = "dbrag"


@dataclass(frozen=True)
class Pair:
    """A run against its reference on one metric; ``holm`` is ``p`` after Holm's correction."""

    reference: str
    run: str
    found: Comparison
    p: float
    holm: float


def pairs(runs: Sequence[Run], reference: str | None = None) -> list[Pair]:
    """Every run of a task and data set against the reference, over the questions of both.

    Args:
        runs: of any tasks and data sets; those that share no question are not compared.
        reference: the name of a run; of other tasks and data sets, and by default, it is the
            first run whose method is dbrag's own, else the first.

    Raises:
        UsageError: no run is named so.
    """
    every = [ranked for run in runs if run.records for ranked in _expanded(run)]
    if reference is not None and all(run.name != reference for run in runs):
        raise UsageError(
            f"there is no run {reference!r}", f"the runs are {', '.join(r.name for r in runs)}"
        )
    found: list[Pair] = []
    for group in _groups(every):
        base = _reference(group, reference)
        found += _corrected([p for run in group if run is not base for p in _pair(base, run)])
    return found


def randomisation_p(
    a: Sequence[float], b: Sequence[float], resamples: int = RESAMPLES, seed: int = SEED
) -> float:
    """Two-sided randomisation test of a mean difference, paired by question.

    Under the null hypothesis the sign of each question's difference is a coin's: the share of
    draws whose mean is at least as far from 0, the observed one counted among them, so it is
    never 0. Source: Fisher 1935; for retrieval Smucker, Allan and Carterette 2007, CIKM.

    Args:
        a, b: scores of two runs, question by question ``[n]``.

    Raises:
        ValueError: runs of different length, or none.
    """
    if len(a) != len(b) or not a:
        raise ValueError(f"{len(a)} and {len(b)} scores cannot be paired")
    differences = np.asarray(b, np.float64) - np.asarray(a, np.float64)
    differences = differences[differences != 0]
    if not differences.size:
        return 1.0
    observed = abs(float(differences.sum()))
    rng = np.random.default_rng(seed)
    far = 0
    for start in range(0, resamples, 1000):
        draws = rng.integers(0, 2, size=(min(1000, resamples - start), differences.size))
        sums = np.abs((2 * draws - 1) @ differences)
        far += int((sums >= observed - 1e-9).sum())
    return (far + 1) / (resamples + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: ``max over the smaller ones of min(1, (m − rank) · p)``.

    Source: Holm 1979, A simple sequentially rejective multiple test procedure, Scandinavian
    Journal of Statistics 6.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [1.0] * len(p_values)
    so_far = 0.0
    for rank, i in enumerate(order):
        so_far = max(so_far, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = so_far
    return adjusted


def _expanded(run: Run) -> list[Run]:
    """A run, and before it what the model alone would do, as runs of their own.

    The order that a reranking was given is no method of that run.
    """
    found = rankings(run)
    return [replace(one.run, name=one.name) for one in found if one.order not in BEFORE]


def _groups(runs: Sequence[Run]) -> list[list[Run]]:
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.asked, []).append(run)
    return list(groups.values())


def _reference(group: Sequence[Run], name: str | None) -> Run:
    if name is not None:
        # The run's own order is the last of those that bear its name.
        named = [r for r in group if r.name == name or r.name.startswith(f"{name}, ")]
        if named:
            return named[-1]
    return next((run for run in group if run.method == DEFAULT_METHOD), group[0])


def _pair(base: Run, run: Run) -> list[Pair]:
    keys = [k for k in METRICS[run.task] if k in base.metrics and k in run.metrics]
    ids = {str(record["id"]) for record in base.records}
    if not keys or not any(str(record["id"]) in ids for record in run.records):
        return []
    return compared(base, run, keys)


def compared(base: Run, run: Run, metrics: Sequence[str]) -> list[Pair]:
    """Two runs on their shared questions, a pair for each metric, with its test.

    Raises:
        UsageError: they share no question, or lack a metric.
    """
    a = {str(record["id"]): record for record in base.records}
    b = {str(record["id"]): record for record in run.records}
    shared = [id_ for id_ in a if id_ in b]
    found = []
    for one in compare_records(a, b, metrics):
        p = one.p
        if p is None:
            x, y = ([score(side[i], one.metric) for i in shared] for side in (a, b))
            p = randomisation_p(x, y)
        found.append(Pair(base.name, run.name, one, p, p))
    return found


def _corrected(found: list[Pair]) -> list[Pair]:
    """Of one group, with Holm's correction within each metric."""
    adjusted: dict[int, float] = {}
    for metric in dict.fromkeys(pair.found.metric for pair in found):
        places = [i for i, pair in enumerate(found) if pair.found.metric == metric]
        adjusted |= dict(zip(places, holm([found[i].p for i in places]), strict=True))
    return [replace(pair, holm=adjusted[i]) for i, pair in enumerate(found)]


def pair_blocks(found: Sequence[Pair]) -> list[Block]:
    """The table of all pairs, those of one reference together."""
    rows: list[list[str]] = []
    reference = ""
    for pair in found:
        if pair.reference != reference:
            reference = pair.reference
            rows.append([f"against {plain(reference)}"])
        one = pair.found
        ends = one.questions, one.databases
        rows.append(
            [
                plain(pair.run),
                one.metric,
                f"{one.n:,}",
                percent(one.a),
                percent(one.b),
                f"{100 * one.questions.mean:+.1f}",
                *(span(interval.low, interval.high, signed=True) for interval in ends),
                f"{len(one.wins)}, {len(one.losses)}",
                _p(pair.p),
                _p(pair.holm),
            ]
        )
    header = ["method", "metric", "n", "reference", "method's", "difference", "by questions"]
    header += ["by databases", "won, lost", "p", "p, Holm"]
    return [table(header, rows, "Paired by question, in points"), Paragraph(_TOLD)]


_TOLD = (
    "Intervals are 95% bootstrap, 10,000 draws, over questions and over whole databases (a dash: "
    "there is only one). p is McNemar's exact test where every score is 0 or 1, else a "
    "randomisation test of the mean; both take questions as independent, which those of one "
    "database are not. The last column is p after Holm's correction for the methods compared with "
    "one reference."
)


def _p(value: float | None) -> str:
    return DASH if value is None else f"{value:.2g}"


def pair_json(pair: Pair) -> dict[str, Any]:
    """A pair for programs; ``p`` is that of its test, ``p_holm`` after the correction."""
    told = {"reference": pair.reference, "run": pair.run, **pair.found.to_dict()}
    return {**told, "p": pair.p, "p_holm": pair.holm}
