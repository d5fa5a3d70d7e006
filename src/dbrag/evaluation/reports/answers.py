"""Answers, in the layout of the paper's Table 3, and by number of gold tables."""

from __future__ import annotations

from collections.abc import Sequence

from dbrag.evaluation import paper
from dbrag.evaluation.metrics import OVERLAPS, harmonic, overlap_key
from dbrag.evaluation.records import Record
from dbrag.evaluation.reports.document import (
    DASH,
    Block,
    Paragraph,
    plain,
    printed,
    strong_columns,
    table,
)
from dbrag.evaluation.reports.runs import QuestionSet, Run, interval_of, mean, missing_rows

_KINDS = {"Row": "Row", "Column": "Column", "Column-values": "Column values", "Cell": "Cell"}
_HEADER = (
    "method",
    "EX",
    "95% by databases",
    "Table EM",
    "Table EM values",
    *(f"{told} {part}" for told in _KINDS.values() for part in ("P", "R", "F1")),
)


def answer_blocks(sets: Sequence[QuestionSet]) -> list[Block]:
    """The paper's metrics for every set of questions, one below the other."""
    if not sets:
        return []
    rows: list[list[str]] = []
    shown: set[str] = set()
    for one in sets:
        rows.append([plain(one.title)])
        figures = strong_columns([_figures(run) for run in one.runs])
        for run, (ex, *cells) in zip(one.runs, figures, strict=True):
            rows.append([plain(run.name), ex, interval_of(run, "EX"), *cells])
        rows += missing_rows(one)
        name = one.corpus.name if one.corpus else ""
        if name in paper.MTQA and name not in shown:
            shown.add(name)
            rows.append(_published(paper.MTQA[name]))
    blocks: list[Block] = [table(_HEADER, rows, "Answers, in percent")]
    blocks.append(Paragraph(_TOLD))
    if shown:
        blocks.append(Paragraph(_ABSENT))
    return [*blocks, table(*_by_groups(sets), "Execution match (EX) by group, in percent")]


_TOLD = (
    "EX is execution match. Precision and recall are means over the questions, F1 is the harmonic "
    "mean of the two, as in the authors' code. “Values” leaves the column names aside; rows and "
    "cells never count them, so they have one figure each."
)
_ABSENT = (
    "MTQA's figures are those of Pal et al. 2023, on their own questions, with the gold tables "
    "given. The figures of the paper's Table 3 are missing from the text at hand, so none of them "
    "stand here."
)


def macro(records: Sequence[Record], kind: str) -> tuple[float, float, float] | None:
    """The paper's macro precision, recall and F1 of rows, columns or cells.

    None where the records do not tell them.
    """
    keys = [overlap_key(kind, part) for part in ("P", "R")]
    if not all(any(key in record["scores"] for record in records) for key in keys):
        return None
    precision, recall = (mean(records, key) or 0.0 for key in keys)
    return precision, recall, harmonic(precision, recall)


def _figures(run: Run) -> list[float | None]:
    known = set(run.metrics)
    found = [mean(run.records, k) if k in known else None for k in ("EX", "TableEM")]
    found.append(mean(run.records, "TableEM-values") if "TableEM-values" in known else None)
    for kind in OVERLAPS:
        found += macro(run.records, kind) or (None, None, None)
    return found


def _published(one: paper.Published) -> list[str]:
    cells = dict.fromkeys(_HEADER[1:], DASH)
    cells["Table EM"] = printed(one.scores["TableEM"])
    for key in ("Row F1", "Column F1", "Cell F1"):
        cells[key] = printed(one.scores[key])
    return [f"{one.name} ({one.given} given)", *cells.values()]


def _by_groups(sets: Sequence[QuestionSet]) -> tuple[list[str], list[list[str]]]:
    """EX by number of gold tables and by whether the gold SQL says WHERE."""
    sizes = sorted({n for one in sets for run in one.runs for n in run.tables})
    header = ["method", *(f"{n} table{'s' * (n != 1)}" for n in sizes), "with WHERE", "without"]
    header += ["right database", "exactly the gold tables", "first program", "best program"]
    rows: list[list[str]] = []
    for one in sets:
        counted = ", ".join(f"{len(r):,} of {n}" for n, r in one.runs[0].tables.items())
        rows.append([f"{plain(one.title)}; by tables: {counted}"])
        figures = [_group_figures(run, sizes) for run in one.runs]
        for run, cells in zip(one.runs, strong_columns(figures), strict=True):
            rows.append([plain(run.name), *cells])
    return header, rows


def _group_figures(run: Run, sizes: Sequence[int]) -> list[float | None]:
    groups = run.tables
    found = [mean(groups.get(n, ()), "EX") for n in sizes]
    for wanted in (True, False):
        found.append(mean([r for r in run.records if r.get("where") is wanted], "EX"))
    for key in ("RightSource", "RightTables", "FirstEX", "BestEX"):
        found.append(mean(run.records, key) if key in run.metrics else None)
    return found
