"""Retrieval, in the layouts of the paper's Table 1 and Table 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from dbrag.evaluation import paper
from dbrag.evaluation.records import Record
from dbrag.evaluation.reports.document import (
    DASH,
    Block,
    Heading,
    Paragraph,
    best,
    plain,
    printed,
    strong_columns,
    table,
)
from dbrag.evaluation.reports.runs import (
    QuestionSet,
    Run,
    interval_of,
    mean,
    mean_of_groups,
    missing_rows,
)

R5, CR5 = "R@5", "CR@5"
_ORDERS = {
    "base": "its base",
    "prior": "before the model",
    "model": "the model alone",
    "fused": "fused",
}
BEFORE = ("base", "prior")
"""Orders that a method was given: no rankings of its own."""
_OWN = {"rerank-only": "model"}
"""The order that a reranking by a model ends with; "fused" where it is not said here."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A ranking that was scored: a run's own, or a further order of the same call."""

    name: str
    order: str
    run: Run


def retrieval_blocks(sets: Sequence[QuestionSet]) -> list[Block]:
    """Recall by number of gold tables, for each set of questions; the paper's beside it."""
    blocks: list[Block] = []
    for one in sets:
        blocks += [Heading(3, plain(one.title)), *_recall(one)]
    if any(one.corpus is not None and one.corpus.name == "Spider" for one in sets):
        blocks += [Heading(3, "The paper: Spider, 985 questions"), *_paper_table_1()]
    return blocks


def _recall(one: QuestionSet) -> list[Block]:
    ranked = [r for run in one.runs for r in rankings(run)]
    at_5 = [r for r in ranked if R5 in r.run.metrics]
    blocks: list[Block] = []
    if not at_5:
        return [Paragraph("These rankings are not deep enough for Recall@5.")]
    sizes = list(one.runs[0].tables)
    header = ["method", *(_size(n, len(one.runs[0].tables[n])) for n in sizes), "average"]
    header += ["95% by databases", "mean of groups", "CR@5", "R@1", "R@50"]
    spider = one.corpus is not None and one.corpus.name == "Spider"
    header += ["the paper"] if spider else []
    figures = [_figures(r.run, sizes) for r in at_5]
    rows = []
    for r, cells in zip(at_5, strong_columns(figures), strict=True):
        n = len(sizes) + 1
        row = [plain(r.name), *cells[:n], interval_of(r.run, R5), *cells[n:]]
        rows.append([*row, _paper(r)] if spider else row)
    rows += missing_rows(one)
    blocks.append(table(header, rows, "Recall@5 by number of gold tables, in percent"))
    return blocks


def _figures(run: Run, sizes: Sequence[int]) -> list[float | None]:
    groups = run.tables
    found = [mean(groups[n], R5) for n in sizes]
    found += [mean(run.records, R5), mean_of_groups(run, R5)]
    return found + [_known(run, key) for key in (CR5, "R@1", "R@50")]


def _known(run: Run, key: str) -> float | None:
    return mean(run.records, key) if key in run.metrics else None


def _size(n: int, questions: int) -> str:
    return f"{n}-table ({questions:,})"


def rankings(run: Run) -> list[Ranked]:
    """A run's own ranking, before it the further orders of the same call."""
    names = list(dict.fromkeys(n for record in run.records for n in record.get("orders") or ()))
    known = list(_ORDERS)
    found = [
        Ranked(f"{run.name}, {_ORDERS.get(name, name)}", name, as_order(run, name))
        for name in sorted(names, key=lambda n: known.index(n) if n in known else len(known))
    ]
    own = _OWN.get(run.method, "fused") if asked_model(run) else ""
    return [*found, Ranked(f"{run.name}, {_ORDERS[own]}" if own else run.name, own, run)]


def asked_model(run: Run) -> bool:
    """Whether a chat model ordered tables: then its order is told, or what was before it."""
    return any({"prior", "model"} & set(record.get("orders") or ()) for record in run.records)


def as_order(run: Run, name: str) -> Run:
    """The run as if a further order were its own; questions that were not reranked keep theirs."""
    records: list[Record] = [
        {**record, "scores": (record.get("orders") or {}).get(name, record["scores"])}
        for record in run.records
    ]
    return replace(run, records=tuple(records))


def _paper(ranked: Ranked) -> str:
    """The paper's average for what comes closest, with its name."""
    name = paper.counterpart(ranked.run.method, ranked.run.settings, ranked.order)
    row = next((row for row in paper.TABLE_1 if row.name == name), None)
    return DASH if row is None else f"{printed(row.average)} {row.name}"


def _paper_table_1() -> list[Block]:
    header = ["method", *(_size(n, count) for n, count in paper.QUERIES.items())]
    header += ["average", "mean of groups"]
    rows: list[list[str]] = []
    group = ""
    for row in paper.TABLE_1:
        if row.group != group:
            group = row.group
            rows.append([group])
        rows.append([row.name, *_published(row)])
    caption = "As published (its Table 1; GPT-3.5-turbo, text-embedding-3-small), in percent"
    told = (
        "Its average is the mean over the questions: so it follows from its four groups within "
        "rounding. The mean of the groups is not printed there, and is computed from them here."
    )
    return [table(header, rows, caption), Paragraph(told)]


def _published(row: paper.Recall5) -> list[str]:
    groups = [printed(row.by_tables[n]) for n in paper.QUERIES]
    return [*groups, printed(row.average), printed(paper.over_groups(row))]


# ---- Table 2 ------------------------------------------------------------------------


def reranking_blocks(sets: Sequence[QuestionSet]) -> list[Block]:
    """Recall@5 before and after a reranking, a column for each model; nothing without one."""
    blocks: list[Block] = []
    spider = False
    for one in sets:
        runs = [run for run in one.runs if asked_model(run)]
        if runs:
            blocks += [Heading(3, plain(one.title)), *_reranking(runs)]
            spider = spider or (one.corpus is not None and one.corpus.name == "Spider")
    if spider:
        blocks += [Heading(3, "The paper: Spider, 985 questions, K = 50"), *_paper_table_2()]
    return blocks


def _reranking(runs: Sequence[Run]) -> list[Block]:
    columns = [ranked for run in runs for ranked in rankings(run)]
    header = ["questions", *(plain(ranked.name) for ranked in columns)]
    sizes = runs[0].tables
    figures: list[tuple[str, list[float | None]]] = [
        (_size(n, len(members)), [mean(column.run.tables[n], R5) for column in columns])
        for n, members in sizes.items()
    ]
    figures.append(("average", [mean(column.run.records, R5) for column in columns]))
    figures.append(("mean of groups", [mean_of_groups(column.run, R5) for column in columns]))
    figures.append(("CR@5, average", [_known(column.run, CR5) for column in columns]))
    rows = [[name, *best(cells)] for name, cells in figures]
    blocks: list[Block] = [table(header, rows, "Recall@5 by the order that is scored, in percent")]
    blocks.append(
        table(
            [
                "run",
                "model",
                "rows shown",
                "K",
                "calls",
                "valid replies",
                "ms of the model, median",
            ],
            [_told(run) for run in runs],
            "How the model was asked",
        )
    )
    return blocks


def _told(run: Run) -> list[str]:
    told = [r["rerank"] for r in run.records if "k" in (r.get("rerank") or {})]
    votes, valid = (sum(int(one.get(key, 0)) for one in told) for key in ("votes", "valid"))
    shown = f"{100 * valid / votes:.1f}% of {votes:,}" if votes else DASH
    seconds = sorted(
        r["stages"]["rerank"] for r in run.records if "rerank" in (r.get("stages") or {})
    )
    settings = run.settings
    return [
        plain(run.name),
        plain(run.model or "unknown"),
        f"{settings.get('row_context', DASH)}, {settings.get('context_rows', DASH)} each",
        f"{fmean(one['k'] for one in told):g}" if told else DASH,
        f"{len(told):,}",
        shown,
        f"{1000 * seconds[len(seconds) // 2]:,.0f}" if seconds else DASH,
    ]


def _paper_table_2() -> list[Block]:
    header = ["questions", *(row.name for row in paper.TABLE_2)]
    rows = [
        [_size(n, count), *(printed(row.by_tables[n]) for row in paper.TABLE_2)]
        for n, count in paper.QUERIES.items()
    ]
    rows.append(["average", *(printed(row.average) for row in paper.TABLE_2)])
    rows.append(["mean of groups", *(printed(paper.over_groups(row)) for row in paper.TABLE_2)])
    return [table(header, rows, "As published (its Table 2), in percent")]
