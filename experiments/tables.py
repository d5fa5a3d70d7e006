"""Tables of finished runs: ``summary``, ``paper``, ``calibration``, ``compare``.

``publish`` keeps a run in the repository: ids and scores only.

Each takes the folder or the file of a run, see ``--help``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbrag.errors import DbragError
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
            told = {run.stem: calibration(read_records(run), thresholds) for run in given.runs}
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


def _measured(runs: list[Path]) -> dict[str, Mapping[str, Any]]:
    """The summaries by run; of what was not run, standard error tells why."""
    found = {run.stem: read_summary(run) for run in runs}
    for name, summary in found.items():
        if "not_run" in summary:
            told = summary["not_run"]
            print(f"{name} not run: {told['reason']}. {told['command']}", file=sys.stderr)
    return {name: summary for name, summary in found.items() if "not_run" not in summary}


def _probability(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, not {text!r}")
    return value


def _compare(a: Path, b: Path, metrics: list[str] | None, questions: bool) -> None:
    comparisons = compare(a, b, metrics)
    print(comparison_table(comparisons, a.stem, b.stem), end="")
    if questions:
        for comparison in comparisons:
            print(f"\n{comparison.metric}: {b.stem} wins {', '.join(comparison.wins) or '–'}")
            print(f"{comparison.metric}: {b.stem} loses {', '.join(comparison.losses) or '–'}")


if __name__ == "__main__":
    sys.exit(main())
