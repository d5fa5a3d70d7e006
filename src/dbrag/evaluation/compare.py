"""Two runs on the same questions: how much they differ, and whether that means anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbrag.errors import UsageError
from dbrag.evaluation.records import read_records
from dbrag.evaluation.significance import Interval, mcnemar, paired_bootstrap
from dbrag.evaluation.summary import score


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric in two runs, paired by question; differences are ``b − a``.

    ``wins`` are the questions that b scores higher, ``losses`` those that a does.
    ``p`` is McNemar's exact p-value for metrics of 0 or 1, None for others.
    ``left_out`` counts the questions that only one of the runs has.
    """

    metric: str
    n: int
    left_out: int
    a: float
    b: float
    databases: Interval
    questions: Interval
    wins: tuple[str, ...]
    losses: tuple[str, ...]
    p: float | None

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {
            "metric": self.metric,
            "n": self.n,
            "left_out": self.left_out,
            "a": round(self.a, 6),
            "b": round(self.b, 6),
            "difference": {
                "databases": self.databases.to_dict(),
                "questions": self.questions.to_dict(),
            },
            "wins": list(self.wins),
            "losses": list(self.losses),
            "p": self.p,
        }


def compare(a: Path, b: Path, metrics: Sequence[str] | None = None) -> list[Comparison]:
    """Compare two runs, each a folder or a file of (slim) records.

    Args:
        metrics: keys to compare; default: all that both runs have.

    Raises:
        UsageError: a run cannot be read, they share no question, or a metric is unknown.
    """
    left = {record["id"]: record for record in read_records(a)}
    right = {record["id"]: record for record in read_records(b)}
    return compare_records(left, right, metrics)


def compare_records(
    a: Mapping[str, Mapping[str, Any]],
    b: Mapping[str, Mapping[str, Any]],
    metrics: Sequence[str] | None = None,
) -> list[Comparison]:
    """As :func:`compare`, of records by question id."""
    ids = [id_ for id_ in a if id_ in b]
    if not ids:
        raise UsageError("the two runs share no question", "run both on the same questions")
    moved = [id_ for id_ in ids if a[id_]["db_id"] != b[id_]["db_id"]]
    if moved:
        raise UsageError(
            f"question {moved[0]!r} is about another database in each run",
            "run both on the same questions",
        )
    known = [key for key in _keys(a.values()) if key in _keys(b.values())]
    for key in metrics or ():
        if key not in known:
            raise UsageError(f"the runs have no metric {key!r}", f"they have {', '.join(known)}")
    left_out = len(a.keys() ^ b.keys())
    return [_compared(key, a, b, ids, left_out) for key in metrics or known]


def _compared(
    key: str,
    a: Mapping[str, Mapping[str, Any]],
    b: Mapping[str, Mapping[str, Any]],
    ids: Sequence[str],
    left_out: int,
) -> Comparison:
    x, y = [score(a[i], key) for i in ids], [score(b[i], key) for i in ids]
    databases = [str(a[i]["db_id"]) for i in ids]
    wins = tuple(i for i, s, t in zip(ids, x, y, strict=True) if t > s)
    losses = tuple(i for i, s, t in zip(ids, x, y, strict=True) if t < s)
    binary = {*x, *y} <= {0.0, 1.0}
    return Comparison(
        metric=key,
        n=len(ids),
        left_out=left_out,
        a=sum(x) / len(x),
        b=sum(y) / len(y),
        databases=paired_bootstrap(x, y, databases),
        questions=paired_bootstrap(x, y),
        wins=wins,
        losses=losses,
        p=mcnemar(len(wins), len(losses)) if binary else None,
    )


def _keys(records: Any) -> list[str]:
    return list(dict.fromkeys(key for record in records for key in record["scores"]))
