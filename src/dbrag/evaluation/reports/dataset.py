"""The statistics of a data set for people, with the paper's figures where it is one of its."""

from __future__ import annotations

from collections.abc import Callable

from dbrag.evaluation.paper import Corpus
from dbrag.evaluation.reports.document import (
    DASH,
    Block,
    Document,
    Heading,
    Paragraph,
    plain,
    table,
)
from dbrag.evaluation.statistics import DataStatistics, QuestionStatistics, Spread

_SPREAD = ("least", "median", "mean", "95th percentile", "most", "total")


def statistics_document(found: DataStatistics) -> Document:
    """The statistics for people, with the paper's figures where it is one of its data sets."""
    corpus = found.corpus
    rows = [
        ["tables of a database", *_spread(corpus.tables)],
        ["columns of a table", *_spread(corpus.columns)],
        ["rows of a table", *_spread(corpus.rows)],
    ]
    for one in found.questions:
        name = plain(one.name)
        rows.append([f"gold answers of {name}"])
        rows += [
            ["rows of an answer", *_spread(one.rows)],
            ["columns of an answer", *_spread(one.columns)],
            ["cells of an answer", *_spread(one.cells)],
        ]
    blocks: list[Block] = [_counts(found), table(["", *_SPREAD], rows, "How they spread")]
    for told in (*corpus.unread, *corpus.skipped):
        blocks.append(Paragraph(f"Not counted: {plain(told)}"))
    if found.questions:
        blocks += [Heading(2, "Questions"), _questions(found)]
    if found.known is not None:
        blocks += [Heading(2, "Beside the paper"), *_beside(found, found.known)]
    return Document(f"The data set {plain(found.name)}", tuple(blocks))


def _spread(spread: Spread | None) -> list[str]:
    if spread is None:
        return [DASH] * len(_SPREAD)
    s = spread
    return [
        f"{s.least:,}", f"{s.median:,g}", f"{s.mean:,.2f}", f"{s.p95:,}", f"{s.most:,}",
        f"{s.total:,}",
    ]  # fmt: skip


def _counts(found: DataStatistics) -> Block:
    corpus = found.corpus
    rows = [
        ["databases", f"{corpus.databases:,}"],
        ["tables", f"{corpus.tables.total if corpus.tables else 0:,}"],
        ["… without rows", f"{corpus.empty:,}"],
        ["… whose name another table has, too", f"{corpus.same_name:,}"],
        ["views", f"{corpus.views:,}"],
        ["columns", f"{corpus.columns.total if corpus.columns else 0:,}"],
        ["rows", f"{corpus.rows.total if corpus.rows else 0:,}"],
        ["declared foreign keys", f"{corpus.keys:,}"],
    ]
    return table(["corpus", "count"], rows)


def _questions(found: DataStatistics) -> Block:
    every = [*found.questions, *([found.together] if found.together else [])]
    sizes = sorted({n for one in every for n in one.by_tables})
    lines: list[tuple[str, Callable[[QuestionStatistics], int | None]]] = [
        ("questions", lambda one: one.n),
        *((f"… of {n} table{'s' * (n != 1)}", _of_size(n)) for n in sizes),
        ("databases asked", lambda one: one.databases),
        ("gold tables", lambda one: one.gold),
        ("… that differ in name or content", lambda one: one.distinct),
        ("with gold SQL", lambda one: one.with_sql),
        ("… that says WHERE", lambda one: one.where),
        ("… that orders its rows", lambda one: one.ordered),
        ("gold answers without rows", lambda one: one.empty),
        ("gold SQL that fails", lambda one: one.failed),
        ("gold answers that are not known", lambda one: one.unknown),
    ]
    rows = [
        [name, *(DASH if (n := count(one)) is None else f"{n:,}" for one in every)]
        for name, count in lines
    ]
    return table(["", *(plain(one.name) for one in every)], rows)


def _of_size(n: int) -> Callable[[QuestionStatistics], int]:
    return lambda one: one.by_tables.get(n, 0)


def _beside(found: DataStatistics, known: Corpus) -> list[Block]:
    """The paper's counts and ours, and why they differ."""
    corpus, questions = found.corpus, found.questions
    rows = [
        ["databases", _count_of(known.databases), f"{corpus.databases:,}"],
        ["tables", _count_of(known.tables), f"{corpus.tables.total if corpus.tables else 0:,}"],
    ]
    for one in (found.together,) if found.together else questions[:1]:
        rows.append(["gold tables that differ", DASH, _count_of(one.distinct)])
    for one in questions:
        if not one.name.startswith("dev"):
            continue  # the paper evaluates on dev only
        rows.append([f"questions, {plain(one.name)}", _count_of(known.questions), f"{one.n:,}"])
        rows += [
            [f"… of {n} table{'s' * (n != 1)}", f"{count:,}", f"{one.by_tables.get(n, 0):,}"]
            for n, count in known.by_tables.items()
        ]
    blocks: list[Block] = [table(["", f"paper, {known.name}", "here"], rows)]
    return [*blocks, *(Paragraph(f"**{key}**: {why}.") for key, why in known.differs.items())]


def _count_of(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"
