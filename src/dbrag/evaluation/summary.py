"""From records to ``summary.json``: means, intervals, costs, versions; no data values."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import metadata
from statistics import fmean, median
from typing import Any

from dbrag import __version__
from dbrag.evaluation.significance import bootstrap
from dbrag.types import SCHEMA_VERSION

_LIBRARIES = (
    "bm25s",
    "lancedb",
    "numpy",
    "onnxruntime",
    "pyarrow",
    "sqlalchemy",
    "sqlglot",
    "tokenizers",
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
    failed) counts 0. ``interval`` holds 95% bootstrap intervals over databases (null with
    a single one) and over questions. ``seconds`` are wall time per question.

    Args:
        records: one per question.
        metrics: the keys to report.
        identity: names and hashes of the models in use, added to ``versions``.
    """
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault(int(record["n_tables"]), []).append(record)
    codes = Counter(str(r["error"]["code"]) for r in records if r.get("error"))
    return {
        "schema": SCHEMA_VERSION,
        "task": config.get("task"),
        "method": config.get("method"),
        "n": len(records),
        "failed": codes.total(),
        "errors": dict(sorted(codes.items())),
        **_means(records, metrics),
        "by_tables": {
            str(n): {"n": len(members), **_means(members, metrics)}
            for n, members in sorted(groups.items())
        },
        "interval": {key: _interval(records, key) for key in metrics},
        "seconds": _quantiles([float(r["seconds"]) for r in records]),
        "tokens": _tokens(records),
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


def _means(records: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> dict[str, float]:
    return {key: round(fmean(score(r, key) for r in records), 6) for key in metrics}


def _interval(records: Sequence[Mapping[str, Any]], key: str) -> dict[str, Any]:
    scores = [score(r, key) for r in records]
    over = {"databases": [str(r["db_id"]) for r in records], "questions": None}
    found = {unit: bootstrap(scores, members).to_dict() for unit, members in over.items()}
    return {unit: [interval["low"], interval["high"]] for unit, interval in found.items()}


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(median(seconds), 4),
        "p95": round(quantile(seconds, 0.95), 4),
        "total": round(sum(seconds), 1),
    }


def _tokens(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Medians per question; ``median`` is of prompt and completion together."""
    tokens = [r["tokens"] for r in records]
    kinds = ("prompt", "cached", "completion")
    return {
        "median": median(t.get("prompt", 0) + t.get("completion", 0) for t in tokens),
        **{kind: median(t.get(kind, 0) for t in tokens) for kind in kinds},
    }
