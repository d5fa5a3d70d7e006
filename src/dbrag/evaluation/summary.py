"""From records to ``summary.json``: means, intervals, costs, versions; no data values."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from statistics import fmean, median
from typing import Any

from dbrag import __version__
from dbrag.errors import UsageError
from dbrag.evaluation.calibration import calibration
from dbrag.evaluation.metrics import OVERLAPS, harmonic, overlap_key
from dbrag.evaluation.significance import bootstrap, paired_bootstrap
from dbrag.types import SCHEMA_VERSION

_LIBRARIES = (
    "bm25s",
    "lancedb",
    "numpy",
    "onnxruntime",
    "pyarrow",
    "scipy",
    "sqlalchemy",
    "sqlglot",
    "tokenizers",
    "torch",
    "transformers",
    "xllamacpp",
)


def summarise(
    records: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    config: Mapping[str, Any],
    identity: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The summary of a finished run.

    Metric values are means from 0 to 1 over all records; a record without a score (it
    failed) counts 0. ``macro`` holds the paper's precision, recall and F1 (see ``_macro``);
    ``by_tables`` and ``by_where`` the same figures by number of gold tables and by whether
    the gold SQL filters rows ("with", "without"; where it is known). ``interval`` holds 95%
    bootstrap intervals over databases (null with a single one) and over questions.
    ``seconds`` are wall time per question. ``calibration`` (of answers) tells how far
    agreement and confidence tell right answers from wrong ones.

    Args:
        records: one per question.
        metrics: the keys to report.
        identity: names and hashes of the models in use, added to ``versions``.

    Raises:
        UsageError: a question that did not fail lacks a metric.
    """
    _check_complete(records, metrics)
    codes = Counter(str(r["error"]["code"]) for r in records if r.get("error"))
    return {
        "schema": SCHEMA_VERSION,
        "task": config.get("task"),
        "method": config.get("method"),
        "n": len(records),
        "failed": codes.total(),
        "errors": dict(sorted(codes.items())),
        **_means(records, metrics),
        **_macro(records, metrics),
        "by_tables": _grouped(records, metrics, lambda record: int(record["n_tables"])),
        "by_where": _grouped(records, metrics, _where),
        "interval": {key: _interval(records, key) for key in metrics},
        "seconds": _quantiles([float(r["seconds"]) for r in records]),
        "stages": _stages(records),
        "tokens": _tokens(records),
        **_orders(records, metrics),
        **({"calibration": calibration(records)} if "EX" in metrics else {}),
        "config": dict(config),
        "versions": {**versions(), **(identity or {})},
    }


def versions() -> dict[str, str]:
    """dbrag, Python, the platform, and every library that can change a result."""
    found = {
        "dbrag": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def quantile(values: Sequence[float], q: float) -> float:
    """The nearest-rank quantile: the smallest value that at least ``q`` of all do not exceed.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(0, math.ceil(q * len(values)) - 1)]


def score(record: Mapping[str, Any], key: str) -> float:
    """A record's score; a failed question has none and counts 0."""
    return float(record["scores"].get(key, 0.0))


def _check_complete(records: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> None:
    """Refuse records of a version that did not know a metric: they would count as wrong."""
    for record in records:
        missing = [key for key in metrics if key not in record["scores"]]
        if record["scores"] and missing:
            raise UsageError(
                f"question {record['id']!r} was scored without {missing[0]} (an older version?)",
                "run it anew, into another folder: --out DIR",
            )


def _where(record: Mapping[str, Any]) -> str | None:
    known = record.get("where")
    return None if known is None else "with" if known else "without"


def _grouped(
    records: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    group_of: Callable[[Mapping[str, Any]], int | str | None],
) -> dict[str, Any]:
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for record in records:
        group = group_of(record)
        if group is not None:
            groups.setdefault(group, []).append(record)
    return {
        str(name): {"n": len(members), **_means(members, metrics), **_macro(members, metrics)}
        for name, members in sorted(groups.items())
    }


def _macro(records: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> dict[str, Any]:
    """The paper's macro figures of rows, columns and cells; nothing for other metrics.

    ``precision`` and ``recall`` are means over the questions, ``f1`` is the harmonic mean
    of the two, as in the authors' code: ``RowF1`` beside it is the mean of each question's.
    """
    found = {}
    for kind in OVERLAPS:
        keys = [overlap_key(kind, part) for part in ("P", "R")]
        if all(key in metrics for key in keys):
            precision, recall = (fmean(score(r, key) for r in records) for key in keys)
            found[kind] = {
                "precision": round(precision, 6),
                "recall": round(recall, 6),
                "f1": round(harmonic(precision, recall), 6),
            }
    return {"macro": found} if found else {}


def _means(records: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> dict[str, float]:
    return {key: round(fmean(score(r, key) for r in records), 6) for key in metrics}


def _interval(records: Sequence[Mapping[str, Any]], key: str) -> dict[str, Any]:
    scores = [score(r, key) for r in records]
    over = {"databases": [str(r["db_id"]) for r in records], "questions": None}
    found = {unit: bootstrap(scores, members).to_dict() for unit, members in over.items()}
    return {unit: [interval["low"], interval["high"]] for unit, interval in found.items()}


def _orders(records: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> dict[str, Any]:
    """The further orders of a reranking; nothing where there are none.

    ``orders`` holds their means and, in ``gain``, by how much the run's own order is
    better, paired by question, with 95% bootstrap intervals. ``rerank`` tells how many
    questions were reranked and how many of the replies were valid.
    """
    names = sorted({name for record in records for name in record.get("orders", {})})
    if not names:
        return {}
    databases = [str(record["db_id"]) for record in records]
    own = {key: [score(record, key) for record in records] for key in metrics}
    orders: dict[str, Any] = {}
    for name in names:
        as_run = [{**r, "scores": r.get("orders", {}).get(name, r["scores"])} for r in records]
        others = {key: [score(record, key) for record in as_run] for key in metrics}
        gain: dict[str, Any] = {}
        for key in metrics:
            over = {
                unit: paired_bootstrap(others[key], own[key], units)
                for unit, units in (("databases", databases), ("questions", None))
            }
            gain[key] = {
                "mean": round(over["questions"].mean, 6),
                **{unit: [i.to_dict()["low"], i.to_dict()["high"]] for unit, i in over.items()},
            }
        orders[name] = {**_means(as_run, metrics), "gain": gain}
    told = [record["rerank"] for record in records if record.get("rerank")]
    if not told and "base" in names:  # a baseline over another, which asks no model for an order
        return {"orders": orders}
    return {
        "orders": orders,
        "rerank": {
            "n": len(told),
            "valid": sum(one["valid"] for one in told),
            "votes": sum(one["votes"] for one in told),
            "k": median([one["k"] for one in told] or [0]),
        },
    }


def _stages(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Seconds of each stage over the questions that went through it."""
    names = sorted({name for record in records for name in record.get("stages") or {}})
    return {
        name: _quantiles([r["stages"][name] for r in records if name in (r.get("stages") or {})])
        for name in names
    }


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(median(seconds), 4),
        "p95": round(quantile(seconds, 0.95), 4),
        "total": round(sum(seconds), 1),
    }


def _tokens(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Medians per question; ``median`` is of prompt and completion together.

    ``cache_hits`` is the sum: replies that were remembered, and cost neither tokens nor time.
    """
    tokens = [r["tokens"] for r in records]
    kinds = ("prompt", "cached", "completion")
    return {
        "median": median(t.get("prompt", 0) + t.get("completion", 0) for t in tokens),
        **{kind: median(t.get(kind, 0) for t in tokens) for kind in kinds},
        "cache_hits": sum(t.get("cache_hits", 0) for t in tokens),
    }
