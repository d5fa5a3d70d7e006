"""The whole report: from runs to a document, and to files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbrag.errors import UsageError
from dbrag.evaluation.calibration import calibration
from dbrag.evaluation.records import write_text
from dbrag.evaluation.reports.answers import answer_blocks, macro
from dbrag.evaluation.reports.costs import Price, cost, cost_blocks, tokens_of
from dbrag.evaluation.reports.document import (
    DASH,
    Block,
    Code,
    Document,
    Figure,
    Heading,
    Paragraph,
    percent,
    plain,
    table,
)
from dbrag.evaluation.reports.markdown import markdown_of
from dbrag.evaluation.reports.page import html_of
from dbrag.evaluation.reports.paired import Pair, pair_blocks, pair_json, pairs
from dbrag.evaluation.reports.retrieval import reranking_blocks, retrieval_blocks
from dbrag.evaluation.reports.runs import (
    ANSWERS,
    RETRIEVAL,
    Run,
    in_common,
    mean,
    mean_of_groups,
    question_sets,
    read_runs,
)
from dbrag.evaluation.reports.sweeps import sweep_blocks
from dbrag.evaluation.significance import bootstrap
from dbrag.evaluation.summary import score
from dbrag.types import SCHEMA_VERSION

TITLE = "Results"


@dataclass(frozen=True)
class Report:
    """A report: its document, the runs and comparisons it was made from."""

    document: Document
    runs: tuple[Run, ...]
    pairs: tuple[Pair, ...]
    prices: Mapping[str, Price]

    def to_dict(self) -> dict[str, Any]:
        """JSON: the figures of the report, shares from 0 to 1."""
        return {
            "schema": SCHEMA_VERSION,
            "title": self.document.title,
            "runs": [_run_json(run, self.prices) for run in self.runs],
            "comparisons": [pair_json(pair) for pair in self.pairs],
        }


def make_report(
    specs: Sequence[str],
    *,
    reference: str | None = None,
    prices: Mapping[str, Price] | None = None,
    title: str = TITLE,
    common: bool = False,
) -> Report:
    """Read runs and lay out what they tell.

    Args:
        specs: run folders or published records, each ``PATH`` or ``NAME=PATH``.
        reference: the name of the run that the others are compared with.
        prices: of remote models, by ``provider:name``.
        common: only the questions that all runs of the same data and question file hold.

    Raises:
        UsageError: a run cannot be read, the reference is none of them, or runs that are to
            have questions in common have none.
    """
    runs = in_common(read_runs(specs)) if common else read_runs(specs)
    priced = dict(prices or {})
    found = pairs(runs, reference)
    parts = (
        ("Runs", _overview(runs)),
        ("Retrieval", retrieval_blocks(question_sets(runs, RETRIEVAL))),
        ("Reranking", reranking_blocks(question_sets(runs, RETRIEVAL))),
        ("Answers", answer_blocks(question_sets(runs, ANSWERS))),
        ("Budgets", sweep_blocks(runs)),
        ("Against the reference", pair_blocks(found) if found else []),
        ("How sure the answers were", _sureness(runs)),
        ("Time, tokens, cost", cost_blocks(runs, priced) if any(r.records for r in runs) else []),
    )
    blocks: list[Block] = []
    for heading, inner in parts:
        blocks += [Heading(2, heading), *inner] if inner else []
    return Report(Document(title, tuple(blocks)), tuple(runs), tuple(found), priced)


def write_report(report: Report, target: Path) -> list[Path]:
    """Write ``target.md``, ``target.html``, and an SVG file for each figure of the Markdown.

    The HTML file holds its figures, and loads nothing.

    Args:
        target: a path without suffix, or with ``.md`` or ``.html``; in a folder that exists or
            is made.

    Raises:
        UsageError: it cannot be written.
    """
    stem = target.with_suffix("") if target.suffix in (".md", ".html") else target
    if not stem.name:
        raise UsageError(f"no file name in {str(target)!r}", "--out runs/report")

    def place(figure: Figure) -> str:
        return f"{stem.name}-{figure.name}.svg"

    texts = {f"{stem.name}.md": markdown_of(report.document, place)}
    texts[f"{stem.name}.html"] = html_of(report.document)
    texts |= {place(figure): f"{figure.svg}\n" for figure in report.document.figures}
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_text(stem.with_name(name), text)
    except OSError as error:
        raise UsageError(
            f"cannot write the report to {str(stem)!r}: {error.strerror or error}",
            "choose another --out",
        ) from error
    return [stem.with_name(name) for name in texts]


# ---- what was run -------------------------------------------------------------------


def _overview(runs: Sequence[Run]) -> list[Block]:
    header = ["run", "task", "method", "data", "questions", "failed", "model", "encoder", "state"]
    rows = [
        [
            plain(run.name),
            run.task,
            plain(run.method or "unknown"),
            plain(run.data) if run.records else DASH,
            f"{len(run.records):,}" if run.records else DASH,
            f"{run.failed:,}" if run.records else DASH,
            plain(run.model or "none") if run.records else DASH,
            plain(_encoder(run)),
            _state(run),
        ]
        for run in runs
    ]
    blocks: list[Block] = [table(header, rows)]
    blocks += _differences([run for run in runs if run.records])
    missing = [run for run in runs if run.not_run is not None]
    if missing:
        blocks += [Heading(3, "Not run"), Paragraph("These have no figure; what would run them:")]
    for run in missing:
        told = run.not_run or {}
        blocks.append(Paragraph(f"**{plain(run.name)}**: {plain(told['reason'])}"))
        lines = tuple(told["command"].splitlines())
        blocks += [Code(lines)] if lines else []
    return blocks


def _state(run: Run) -> str:
    if run.not_run is not None:
        return f"not run: {plain(run.not_run['reason'])}"
    return "finished" if run.finished else "not finished, or its summary is missing"


def _encoder(run: Run) -> str:
    told = run.versions.get("encoder")
    name = told.get("name") if isinstance(told, Mapping) else run.settings.get("encoder")
    return str(name or DASH)


def _differences(runs: Sequence[Run]) -> list[Block]:
    """The settings in which the runs differ, so that nobody takes two things for one."""
    keys = []
    for key in dict.fromkeys(key for run in runs for key in run.settings):
        known = {repr(run.settings[key]) for run in runs if key in run.settings}
        keys += [key] if len(known) > 1 else []
    if not keys:
        return []
    rows = [
        [plain(run.name), *(plain(str(run.settings.get(key, DASH))) for key in keys)]
        for run in runs
    ]
    told = "Settings in which runs differ; a dash: the method does not depend on it, or its default"
    return [table(["run", *(f"`{key}`" for key in keys)], rows, told)]


def _sureness(runs: Sequence[Run]) -> list[Block]:
    header = ["run, told", "answers", "right", "AUROC", "ECE", "Brier", "sure from", "sure"]
    header += ["right of them", "of all questions"]
    rows = []
    for run in runs:
        for kind, told in calibration(run.records).items() if run.task == ANSWERS else ():
            for sure in (told or {}).get("sure", ()):
                area = told["AUROC"]
                rows.append(
                    [
                        f"{plain(run.name)}, {kind}",
                        f"{told['n']:,}",
                        percent(told["right"]),
                        DASH if area is None else f"{area:.3f}",
                        f"{told['ECE']:.3f}",
                        f"{told['Brier']:.3f}",
                        f"{sure['threshold']:g}",
                        f"{sure['n']:,}",
                        percent(sure["right"]),
                        percent(sure["coverage"]),
                    ]
                )
    return [table(header, rows, "Agreement of the votes and confidence")] if rows else []


# ---- JSON ---------------------------------------------------------------------------


def _run_json(run: Run, prices: Mapping[str, Price]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": run.name,
        "task": run.task,
        "method": run.method or None,
        "model": run.model,
    }
    if run.not_run is not None:
        return {**told, "not_run": dict(run.not_run)}
    paid = cost(run, prices)
    databases = [str(record["db_id"]) for record in run.records]
    scores = {key: [score(record, key) for record in run.records] for key in run.metrics}
    kinds = ("Row", "Column", "Column-values", "Cell")
    macros = {kind: macro(run.records, kind) for kind in kinds}
    return {
        **told,
        "data": run.data,
        "n": len(run.records),
        "failed": run.failed,
        "finished": run.finished,
        "scores": {key: _rounded(mean(run.records, key)) for key in run.metrics},
        "mean_of_groups": {key: _rounded(mean_of_groups(run, key)) for key in run.metrics},
        "by_tables": {
            str(n): {"n": len(found), **{k: _rounded(mean(found, k)) for k in run.metrics}}
            for n, found in run.tables.items()
        },
        "interval": {key: bootstrap(s, databases).to_dict() for key, s in scores.items()},
        "macro": {
            kind: dict(zip(("precision", "recall", "f1"), map(_rounded, found), strict=True))
            for kind, found in macros.items()
            if found is not None
        },
        "tokens": tokens_of(run),
        "cost": None if paid is None else {"amount": paid[0], "currency": paid[1] or None},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
