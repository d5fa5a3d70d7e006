"""Runs as Markdown tables, figures in percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbrag.evaluation.compare import Comparison
from dbrag.evaluation.significance import Interval


def metric_keys(summary: Mapping[str, Any]) -> list[str]:
    """The keys of a summary that are metrics, in its order."""
    return list(summary["interval"])


def summary_table(
    summaries: Mapping[str, Mapping[str, Any]], metrics: Sequence[str] | None = None
) -> str:
    """Runs side by side, one a row, by the name given to each.

    Metrics in percent; by number of gold tables for the first metric.
    """
    keys = list(metrics or dict.fromkeys(k for s in summaries.values() for k in metric_keys(s)))
    sizes = sorted({size for s in summaries.values() for size in s["by_tables"]}, key=int)
    lead = keys[0] if keys else None
    split = [f"{lead}, {size} table{'s' if size != '1' else ''}" for size in sizes] if lead else []
    header = ["run", "n", "failed", *keys, *split, "s median", "s p95", "tokens"]
    rows = [
        [
            name,
            str(s["n"]),
            str(s["failed"]),
            *(_percent(s.get(key)) for key in keys),
            *(_percent(s["by_tables"].get(size, {}).get(lead)) for size in sizes if lead),
            f"{s['seconds']['median']:.3g}",
            f"{s['seconds']['p95']:.3g}",
            f"{s['tokens']['median']:.0f}",
        ]
        for name, s in summaries.items()
    ]
    return markdown(header, rows)


def comparison_table(comparisons: Sequence[Comparison], a: str = "a", b: str = "b") -> str:
    """A paired comparison, one metric a row; differences in points, 95% intervals."""
    header = ["metric", "n", a, b, f"{b} − {a}", "by questions", "by databases"]
    header += ["wins", "losses", "McNemar p"]
    rows = [
        [
            c.metric,
            str(c.n),
            _percent(c.a),
            _percent(c.b),
            f"{100 * c.questions.mean:+.1f}",
            _range(c.questions),
            _range(c.databases),
            str(len(c.wins)),
            str(len(c.losses)),
            "–" if c.p is None else f"{c.p:.3g}",
        ]
        for c in comparisons
    ]
    return markdown(header, rows)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(_escaped(c) for c in line) + " |" for line in lines) + "\n"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _range(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return "–"
    return f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}"
