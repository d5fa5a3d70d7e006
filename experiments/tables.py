"""Tables of finished runs: ``summary``, ``paper``, ``calibration``, ``compare``.

``publish`` keeps a run in the repository: ids and scores only.

Each takes the folder or the file of a run, see ``--help``.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dbrag.errors import DbragError, UsageError
from dbrag.evaluation.calibration import SURE, calibration
from dbrag.evaluation.compare import compare
from dbrag.evaluation.records import read_records, read_summary, write_slim
from dbrag.evaluation.report import (
    calibration_table,
    comparison_table,
    paper_table,
    reliability_table,
    summary_table,
)
from dbrag.evaluation.scripts import run_script

_NEEDED = ("n", "failed", "interval", "by_tables", "seconds", "tokens")


def main(arguments: list[str] | None = None) -> int:
    """Run one of the commands; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    summary = commands.add_parser("summary", help="summaries side by side")
    summary.add_argument("runs", nargs="+", type=Path)
    paper = commands.add_parser("paper", help="the paper's metrics and groups")
    paper.add_argument("runs", nargs="+", type=Path)
    sure = commands.add_parser("calibration", help="right or wrong by agreement and confidence")
    sure.add_argument("runs", nargs="+", type=Path)
    sure.add_argument(
        "--threshold",
        action="append",
        type=_probability,
        help=f"sure from this on; may be repeated (default: {SURE:g})",
    )
    paired = commands.add_parser("compare", help="two runs, paired by question")
    paired.add_argument("a", type=Path)
    paired.add_argument("b", type=Path)
    paired.add_argument("--metric", action="append", help="only this one; may be repeated")
    paired.add_argument("--questions", action="store_true", help="also list wins and losses")
    publish = commands.add_parser("publish", help="ids and scores only, for the repository")
    publish.add_argument("run", type=Path)
    publish.add_argument("target", type=Path)
    given = parser.parse_args(arguments)
    try:
        if given.command == "summary":
            print(summary_table(_measured(given.runs)), end="")
        elif given.command == "paper":
            print(paper_table(_measured(given.runs)), end="")
        elif given.command == "calibration":
            thresholds = given.threshold or [SURE]
            told = {
                name: calibration(read_records(run), thresholds)
                for name, run in _named(given.runs).items()
            }
            print(calibration_table(told), reliability_table(told), sep="\n", end="")
            for name in [name for name, kinds in told.items() if not any(kinds.values())]:
                print(f"{name} tells neither agreement nor confidence", file=sys.stderr)
        elif given.command == "compare":
            _compare(given.a, given.b, given.metric, given.questions)
        else:
            write_slim(given.run, given.target)
    except DbragError as error:
        print(f"{error.message}. {error.hint}".rstrip(), file=sys.stderr)
        return error.exit_code
    return 0


def _named(runs: Sequence[Path]) -> dict[str, Path]:
    """Runs by name: that of the folder or file, with its place where two have the same."""
    names = [(run if run.is_dir() else run.with_suffix("")).resolve().name for run in runs]
    alike = {name for name, n in Counter(names).items() if n > 1}
    return {str(run) if name in alike else name: run for name, run in zip(names, runs, strict=True)}


def _measured(runs: list[Path]) -> dict[str, Mapping[str, Any]]:
    """The summaries by run; of what was not run, standard error tells why."""
    found = {name: read_summary(run) for name, run in _named(runs).items()}
    for name, summary in found.items():
        if "not_run" in summary:
            told = summary["not_run"]
            print(f"{name} not run: {told['reason']}. {told['command']}", file=sys.stderr)
    measured: dict[str, Mapping[str, Any]] = {
        name: summary for name, summary in found.items() if "not_run" not in summary
    }
    for name, told in measured.items():
        lacking = [key for key in _NEEDED if key not in told]
        if lacking:
            raise UsageError(
                f"the summary of {name!r} lacks {lacking[0]!r}", "take the file as it was written"
            )
    return measured


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, not {text!r}")
    return value


def _compare(a: Path, b: Path, metrics: list[str] | None, questions: bool) -> None:
    comparisons = compare(a, b, metrics)
    left, right = (*_named([a, b]), str(b))[:2]  # one name only where a run is compared with itself
    print(comparison_table(comparisons, left, right), end="")
    if questions:
        for comparison in comparisons:
            print(f"\n{comparison.metric}: {right} wins {', '.join(comparison.wins) or '–'}")
            print(f"{comparison.metric}: {right} loses {', '.join(comparison.losses) or '–'}")


if __name__ == "__main__":
    sys.exit(run_script(main))
