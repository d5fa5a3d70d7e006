"""How scores change with K and with L: the paper's Figures 2(a) and 2(b), from runs.

A sweep is a group of runs on the same questions that differ in nothing but the budget that is
varied and the kind of rows shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from dbrag.evaluation.reports.document import (
    Block,
    Figure,
    Heading,
    Paragraph,
    percent,
    plain,
    span,
    table,
)
from dbrag.evaluation.reports.plot import MAX_LINES, Line, Point, line_chart
from dbrag.evaluation.reports.retrieval import R5, asked_model, rankings
from dbrag.evaluation.reports.runs import ANSWERS, RETRIEVAL, Run, mean
from dbrag.evaluation.significance import bootstrap
from dbrag.evaluation.summary import score

_ROWS = {"relevant": "relevant rows", "random": "random rows", "none": "no rows"}
# Neither budgets nor what a figure could depend on.
_FREE = frozenset({"row_context", "threads", "reply_cache"})


@dataclass(frozen=True)
class Kind:
    """A figure of the paper: the runs it is of, what is varied, and the scores drawn."""

    name: str
    title: str
    task: str
    setting: str
    budget: Callable[[Run], float | None]
    x_title: str
    y_title: str
    scores: Callable[[Run], list[tuple[str, Run, str]]]


def _coarse_budget(run: Run) -> float | None:
    """K: tables shown to the model, as recorded, else as set."""
    told = [r["rerank"]["k"] for r in run.records if "k" in (r.get("rerank") or {})]
    if told:
        return float(median(told))
    value = run.settings.get("rerank_k")
    return None if value is None else float(value)


def _row_budget(run: Run) -> float | None:
    """L: rows of each table; none are shown where the context is "none"."""
    if run.settings.get("program_rows") != "context":
        return None  # its prompts do not depend on L
    if run.settings.get("row_context") == "none":
        return 0.0
    value = run.settings.get("context_rows")
    return None if value is None else float(value)


def _orders(run: Run) -> list[tuple[str, Run, str]]:
    if not asked_model(run):
        return []
    names = {"model": "the model alone", "fused": "fused", "prior": "before the model"}
    return [(names.get(one.order, one.order), one.run, R5) for one in rankings(run)]


def _answer_scores(run: Run) -> list[tuple[str, Run, str]]:
    return [(told, run, key) for told, key in (("EX", "EX"), ("Table EM", "TableEM"))]


KINDS = (
    Kind(
        "figure-2a",
        "Figure 2(a): tables shown to the reranking model, K",
        RETRIEVAL,
        "rerank_k",
        _coarse_budget,
        "K, tables shown",
        "Recall@5, percent",
        _orders,
    ),
    Kind(
        "figure-2b",
        "Figure 2(b): rows of each table in the prompts, L",
        ANSWERS,
        "context_rows",
        _row_budget,
        "L, rows of each table",
        "right answers, percent",
        _answer_scores,
    ),
)


def sweep_blocks(runs: Sequence[Run]) -> list[Block]:
    """A figure and its values for every sweep; nothing where there is none."""
    blocks: list[Block] = []
    for kind in KINDS:
        found = [group for group in _groups(runs, kind) if len(_budgets(group, kind)) > 1]
        for number, group in enumerate(found, start=1):
            name = kind.name if len(found) == 1 else f"{kind.name}-{number}"
            blocks += _figure(group, kind, name)
    return blocks


def _groups(runs: Sequence[Run], kind: Kind) -> list[list[Run]]:
    """Runs that differ in what is varied only."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if run.task == kind.task and run.records and kind.budget(run) is not None:
            rest = {k: v for k, v in run.settings.items() if k not in {*_FREE, kind.setting}}
            ids = sorted(str(record["id"]) for record in run.records)
            key = json.dumps([run.data, run.file, run.method, rest, ids], default=str)
            groups.setdefault(key, []).append(run)
    return list(groups.values())


def _budgets(group: Sequence[Run], kind: Kind) -> set[float | None]:
    return {kind.budget(run) for run in group}


def _figure(group: Sequence[Run], kind: Kind, name: str) -> list[Block]:
    points: dict[str, dict[float, Point]] = {}
    twice: list[str] = []
    for run in group:
        x = kind.budget(run)
        if x is None:
            continue
        for told, scored, key in kind.scores(run):
            line = points.setdefault(_line_name(run, told, kind), {})
            if x in line:
                twice.append(run.name)
            else:
                line[x] = _point(x, scored, key)
    lines = [Line(told, tuple(found.values())) for told, found in points.items()]
    drawn = sorted(lines, key=lambda line: -len(line.points))[:MAX_LINES]
    what = f"{kind.title}. {plain(group[0].data)}, {len(group[0].records):,} questions"
    caption = f"{what}; bars are 95% intervals by bootstrap over databases"
    svg = line_chart(drawn, kind.x_title, kind.y_title, what)
    blocks: list[Block] = [Heading(3, kind.title), Figure(name, caption, svg)]
    if len(drawn) < len(lines):
        left = ", ".join(line.name for line in lines if line not in drawn)
        blocks.append(Paragraph(f"Not drawn, but in the table: {left}."))
    if twice:
        names = ", ".join(plain(one) for one in dict.fromkeys(twice))
        blocks.append(Paragraph(f"Left out, since another run has the same budgets: {names}."))
    return [*blocks, _values(lines, kind)]


def _line_name(run: Run, told: str, kind: Kind) -> str:
    rows = str(run.settings.get("row_context", ""))
    if kind.task == ANSWERS and rows == "none":
        rows = "relevant"  # without rows both kinds are the same point, L = 0
    return f"{_ROWS.get(rows, rows)}, {told}".removeprefix(", ")


def _point(x: float, run: Run, key: str) -> Point:
    scores = [score(record, key) for record in run.records]
    interval = bootstrap(scores, [str(record["db_id"]) for record in run.records])
    return Point(x, mean(run.records, key) or 0.0, interval.low, interval.high)


def _values(lines: Sequence[Line], kind: Kind) -> Block:
    xs = sorted({point.x for line in lines for point in line.points})
    rows = []
    for line in lines:
        at = {point.x: point for point in line.points}
        cells = []
        for x in xs:
            point = at.get(x)
            cells.append(
                "–" if point is None else f"{percent(point.y)} ({span(point.low, point.high)})"
            )
        rows.append([plain(line.name), *cells])
    header = [kind.y_title, *(f"{kind.x_title[0]} = {x:g}" for x in xs)]
    return table(header, rows, "The values drawn, with their intervals")
