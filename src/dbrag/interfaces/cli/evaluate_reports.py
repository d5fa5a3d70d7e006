"""``dbrag eval report | compare | stats``: what runs tell, and what they were measured on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbrag.errors import UsageError
from dbrag.interfaces.cli import complete, output
from dbrag.interfaces.cli.options import Run, common_options, named, pass_run

if TYPE_CHECKING:
    from dbrag.evaluation.reports.document import Document

KINDS = {
    "won": "won",
    "lost": "lost",
    "other": "both wrong, differently",
    "alike": "both wrong, alike",
    "right": "both right",
}


@click.command()
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    metavar="[NAME=]RUN…",
    callback=named,
    shell_complete=complete.files,
)
@click.option(
    "--out",
    metavar="FILE",
    callback=named,
    help="Write FILE.md and FILE.html (default: print Markdown).",
)
@click.option(
    "--title", default="Results", show_default=True, metavar="TEXT", help="Of the report."
)
@click.option("--reference", metavar="NAME", help="Run that the others are compared with.")
@click.option(
    "--common", is_flag=True, help="Only questions that all runs of the same question file hold."
)
@click.option("--prices", metavar="FILE", callback=named, help="TOML of prices of remote models.")
@click.option(
    "--price",
    "given",
    multiple=True,
    metavar="MODEL=PROMPT,COMPLETION[,CACHED]",
    help="Price per million tokens; may be repeated.",
)
@common_options
@pass_run
def report(
    run: Run,
    /,
    runs: tuple[str, ...],
    out: str | None,
    title: str,
    reference: str | None,
    common: bool,
    prices: str | None,
    given: tuple[str, ...],
) -> int:
    """Tables and figures of runs, as Markdown and one HTML file.

    RUN is a folder of dbrag eval or a published .jsonl file: recall and answers as in the paper's
    tables with its figures beside them, intervals, paired tests, time, tokens and cost.
    """
    from dbrag.evaluation.reports.build import make_report, write_report
    from dbrag.evaluation.reports.costs import parse_price, read_prices

    _no_sources(run)
    known = read_prices(Path(prices)) if prices else {}
    known |= dict(map(parse_price, given))
    made = make_report(runs, reference=reference, prices=known, title=title, common=common)
    files = write_report(made, Path(out)) if out else []
    if run.json:
        output.emit_json({**made.to_dict(), "files": [str(file) for file in files]})
    elif files:
        output.emit("\n".join(f"wrote {file}" for file in files))
    else:
        _print(made.document)
    return 0


@click.command()
@click.argument("a", metavar="[NAME=]RUN", callback=named, shell_complete=complete.files)
@click.argument("b", metavar="[NAME=]RUN", callback=named, shell_complete=complete.files)
@click.option(
    "--metric", metavar="NAME", help="Decides (default: EX of answers, CR@5 of rankings)."
)
@click.option(
    "--questions",
    metavar="FILE",
    callback=named,
    help="The question file, to show questions and gold SQL.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(KINDS)),
    help="List these changes: won, lost, other (both wrong, differently), alike, right; may be "
    "repeated (default: the first three).",
)
@common_options
@pass_run
def compare(
    run: Run,
    /,
    a: str,
    b: str,
    metric: str | None,
    questions: str | None,
    only: tuple[str, ...],
) -> int:
    """What changed from one run to another, question by question."""
    from dbrag.evaluation.reports.diff import SHOWN, diff_document, make_diff

    _no_sources(run)
    diff = make_diff(a, b, metric, Path(questions) if questions else None)
    kinds = tuple(KINDS[one] for one in only) or SHOWN
    if run.json:
        output.emit_json(diff.to_dict(kinds))
    else:
        _print(diff_document(diff, kinds))
    return 0


@click.command()
@click.option("--data", required=True, metavar="DIR", callback=named, help="The databases.")
@click.option(
    "--questions",
    multiple=True,
    metavar="FILE",
    callback=named,
    help="JSON or CSV; may be repeated.",
)
@click.option("--distinct", is_flag=True, help="Tell equal gold tables of several databases.")
@common_options
@pass_run
def stats(run: Run, /, data: str, questions: tuple[str, ...], distinct: bool) -> int:
    """Counts of a data set: tables, columns, rows, questions, answers; no data.

    Neither an index nor a model is needed. Gold answers that a file does not hold are computed by
    their SQL. Where the data are the paper's, its counts stand beside them.
    """
    from dbrag.evaluation.reports.dataset import statistics_document
    from dbrag.evaluation.statistics import data_statistics

    _no_sources(run)
    files = [Path(one) for one in questions]
    found = data_statistics(Path(data), files, run.settings(), distinct=distinct)
    if run.json:
        output.emit_json(found.to_dict())
    else:
        _print(statistics_document(found))
    return 0


def _no_sources(run: Run) -> None:
    if run.sources:
        raise UsageError(
            f"eval reads runs and --data, not --source {run.sources[0]!r}", "leave --source out"
        )


def _print(document: Document) -> None:
    from dbrag.evaluation.reports.markdown import markdown_of

    output.emit(markdown_of(document).rstrip("\n"))
