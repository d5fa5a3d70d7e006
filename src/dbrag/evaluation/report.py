"""Runs as Markdown tables, figures in percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbrag.evaluation.compare import Comparison
from dbrag.evaluation.metrics import OVERLAPS, overlap_key
from dbrag.evaluation.reports.markdown import cell_markdown
from dbrag.evaluation.significance import Interval


def metric_keys(summary: Mapping[str, Any]) -> list[str]:
    """The keys of a summary that are metrics, in its order."""
    return list(summary["interval"])


def summary_table(
    summaries: Mapping[str, Mapping[str, Any]], metrics: Sequence[str] | None = None
) -> str:
    """Runs side by side, one a row, by the name given to each.

    Metrics in percent; by number of gold tables for the first metric.

    Args:
        metrics: keys to show; default: all but those that :func:`paper_table` shows.
    """
    every = dict.fromkeys(key for s in summaries.values() for key in metric_keys(s))
    keys = list(metrics or (key for key in every if key not in _DETAILS))
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


def paper_table(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """The paper's metrics, in percent: for all questions and each of its groups a row.

    Precision, recall and F1 are macro figures (``summary.json``: ``macro``); "values" leaves
    the column names aside, which rows and cells never count.
    """
    header = ["run", "questions", "n", "Table EM", "values"]
    header += [f"{_TOLD[kind]} {part}" for kind in OVERLAPS for part in ("P", "R", "F1")]
    rows = [
        [name, told, str(group["n"]), *_paper_figures(group)]
        for name, summary in summaries.items()
        for told, group in _groups(summary)
    ]
    return markdown(header, rows)


_TOLD = {"Row": "row", "Column": "column", "Column-values": "column values", "Cell": "cell"}
_DETAILS = frozenset(overlap_key(kind, part) for kind in OVERLAPS for part in ("P", "R", "F1")) - {
    "RowF1"
}


def _groups(summary: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    by_tables = summary["by_tables"]
    found = [("all", summary)]
    found += [(f"{n} table{'s' * (n != '1')}", by_tables[n]) for n in sorted(by_tables, key=int)]
    return found + [(f"{w} WHERE", group) for w, group in summary.get("by_where", {}).items()]


def _paper_figures(group: Mapping[str, Any]) -> list[str]:
    macro = group.get("macro", {})
    figures = [group.get("TableEM"), group.get("TableEM-values")]
    for kind in OVERLAPS:
        figures += [macro.get(kind, {}).get(part) for part in ("precision", "recall", "f1")]
    return [_percent(figure) for figure in figures]


def calibration_table(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """How well agreement and confidence tell right answers from wrong ones, a row a threshold.

    Args:
        runs: by name, each as ``calibration.calibration`` gives it.
    """
    header = ["run, told", "answers", "right", "ECE", "Brier", "AUROC", "sure from", "sure"]
    header += ["right of them", "by questions", "by databases", "coverage"]
    rows = []
    for name, kinds in runs.items():
        for kind, told in kinds.items():
            for sure in (told or {}).get("sure", ()):
                interval = sure["interval"] or {}
                rows.append(
                    [
                        f"{name}, {kind}",
                        str(told["n"]),
                        _percent(told["right"]),
                        _plain(told["ECE"]),
                        _plain(told["Brier"]),
                        _plain(told["AUROC"]),
                        f"{sure['threshold']:g}",
                        str(sure["n"]),
                        _percent(sure["right"]),
                        *(_within(interval.get(unit)) for unit in ("questions", "databases")),
                        _percent(sure["coverage"]),
                    ]
                )
    return markdown(header, rows)


def reliability_table(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """The share right in each bin of what was told, and the mean told there, in percent."""
    header = ["run, told", "from", "to", "answers", "mean told", "right"]
    rows = [
        [
            f"{name}, {kind}",
            *(_percent(one[edge]) for edge in ("low", "high")),
            str(one["n"]),
            *(_percent(one[key]) for key in ("mean", "right")),
        ]
        for name, kinds in runs.items()
        for kind, told in kinds.items()
        for one in (told or {}).get("bins", ())
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
    """A Markdown table; cells are escaped (:func:`cell_markdown`)."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return (
        "\n".join("| " + " | ".join(cell_markdown(c) for c in line) + " |" for line in lines) + "\n"
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _within(ends: Sequence[float | None] | None) -> str:
    """An interval of a share, in percent."""
    low, high = ends or (None, None)
    return "–" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"


def _range(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return "–"
    return f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}"
