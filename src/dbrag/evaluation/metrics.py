"""Metrics: one formula a function, and metrics as values whose text is their key.

>>> str(Recall(5))
'R@5'
>>> Recall(5)(gold=["a", "b"], ranked=["a", "c"])
0.5

Every score is a share from 0 to 1. A run's figure is the mean over all its questions:
the denominator is the gold questions, and a question that failed scores 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dbrag.evaluation.matching import same_rows
from dbrag.values import json_value

Rows = Sequence[Sequence[Any]]


class ResultTable(Protocol):
    """A table as metrics see it: names ``[n_columns]`` and rows ``[n_rows][n_columns]``."""

    @property
    def columns(self) -> Sequence[str]:
        """Names, may repeat."""
        ...

    @property
    def rows(self) -> Rows:
        """Any values a database returns."""
        ...


# ---- retrieval ----------------------------------------------------------------------


def recall_at_k(gold: Collection[Hashable], ranked: Sequence[Hashable], k: int) -> float:
    """``|gold ∩ top k| / |gold|`` (the paper's Recall@k).

    Repeated entries in ``ranked`` take a place each; fewer than ``k`` entries are fine.

    Raises:
        ValueError: no gold table at all: the share is undefined.
    """
    if not gold:
        raise ValueError("recall needs at least one gold table")
    wanted = set(gold)
    return len(wanted.intersection(ranked[:k])) / len(wanted)


def complete_recall_at_k(gold: Collection[Hashable], ranked: Sequence[Hashable], k: int) -> float:
    """1 when every gold table is in the top k, else 0 (complete recall: GERT, REaR).

    Raises:
        ValueError: no gold table at all.
    """
    return float(recall_at_k(gold, ranked, k) == 1.0)


@dataclass(frozen=True, slots=True)
class Recall:
    """``R@k`` as a value: see :func:`recall_at_k`."""

    k: int

    def __str__(self) -> str:
        return f"R@{self.k}"

    def __call__(self, gold: Collection[Hashable], ranked: Sequence[Hashable]) -> float:
        """Score one question."""
        return recall_at_k(gold, ranked, self.k)


@dataclass(frozen=True, slots=True)
class CompleteRecall:
    """``CR@k`` as a value: see :func:`complete_recall_at_k`."""

    k: int

    def __str__(self) -> str:
        return f"CR@{self.k}"

    def __call__(self, gold: Collection[Hashable], ranked: Sequence[Hashable]) -> float:
        """Score one question."""
        return complete_recall_at_k(gold, ranked, self.k)


RetrievalMetric = Recall | CompleteRecall

RETRIEVAL_METRICS: tuple[RetrievalMetric, ...] = (
    Recall(1),
    Recall(5),
    Recall(15),
    Recall(50),
    CompleteRecall(5),
    CompleteRecall(15),
    CompleteRecall(50),
)


def retrieval_metrics(k: int) -> tuple[RetrievalMetric, ...]:
    """The metrics that a ranking of depth ``k`` can tell, ``R@k`` and ``CR@k`` among them."""
    fitting = [metric for metric in RETRIEVAL_METRICS if metric.k <= k]
    return tuple(dict.fromkeys([*fitting, Recall(k), CompleteRecall(k)]))


# ---- answers ------------------------------------------------------------------------


def execution_match(predicted: Rows, gold: Rows, ordered: bool) -> bool:
    """Same bag of rows under one consistent permutation of the columns (EX).

    Column names do not count, duplicates do. NULL equals NULL only. Numbers are equal
    within 1e-6 relative, whatever their type (1 = 1.0 = Decimal("1.00")); 0 equals 0
    only. Text is compared exactly, and never equals a number. Dates, times and UUIDs
    count as their ISO text, binary as base64. Two results without rows are equal.

    Source: execution accuracy of Spider's test suites (Zhong et al. 2020), with bags
    and a tolerance in place of its plain equality.

    Args:
        ordered: the rows' order counts: where the gold SQL orders its outermost query.
    """
    return same_rows(predicted, gold, ordered=ordered)


def table_exact_match(predicted: ResultTable, gold: ResultTable, names: bool = True) -> bool:
    """The paper's Table EM: both tables, written out in lower case, are the same text.

    ``col : a | b row 1 : v | v …``; order of rows and columns counts, so does the way
    a number is written.

    Source: the paper, section 4.2, and Pal et al. 2023 (MultiTabQA).

    Args:
        names: the column names count too.
    """
    return _as_text(predicted, names) == _as_text(gold, names)


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of two bags is the same: ``precision`` of the predicted, ``recall`` of the gold."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean, ``2·|P ∩ G| / (|P| + |G|)``; 0 where nothing is common."""
        return harmonic(self.precision, self.recall)


def harmonic(precision: float, recall: float) -> float:
    """``2·p·r / (p + r)``; 0 where both are."""
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


def overlap(predicted: Sequence[Hashable], gold: Sequence[Hashable]) -> Overlap:
    """``|P ∩ G| / |P|`` and ``|P ∩ G| / |G|`` over bags, so duplicates count.

    Two empty bags are the same (1 and 1); an empty one and another have nothing in common.
    """
    if not predicted and not gold:
        return Overlap(1.0, 1.0)
    common = (Counter(predicted) & Counter(gold)).total()
    if not common:
        return Overlap(0.0, 0.0)
    return Overlap(common / len(predicted), common / len(gold))


def row_overlap(predicted: ResultTable, gold: ResultTable) -> Overlap:
    """The paper's Row EM: rows in any order, their values in the given order.

    Values are compared as written, in lower case and without blanks around them, here and
    for columns and cells. Column names never count. A cell is one value, whatever it holds:
    the authors' code splits cells at ``|``.

    Source: the paper, section 4.2, and Pal et al. 2023 (MultiTabQA).
    """
    return overlap(_cells(predicted), _cells(gold))


def column_overlap(predicted: ResultTable, gold: ResultTable, names: bool = True) -> Overlap:
    """The paper's Column EM: columns in any order, their values in the given order.

    Two tables without rows have the same columns if their names are the same or do not count.

    Args:
        names: the name is the first value of its column.
    """
    return overlap(_as_columns(predicted, names), _as_columns(gold, names))


def cell_overlap(predicted: ResultTable, gold: ResultTable) -> Overlap:
    """The paper's Cell EM: cells in any order; column names never count."""
    left, right = ([cell for row in _cells(table) for cell in row] for table in (predicted, gold))
    return overlap(left, right)


def _cells(table: ResultTable) -> list[tuple[str, ...]]:
    """Rows of cells as text ``[n_rows][n_columns]``."""
    return [tuple(_cell_text(value) for value in row) for row in table.rows]


def _as_columns(table: ResultTable, names: bool) -> list[tuple[str, ...]]:
    rows = _cells(table)
    if names:
        rows = [tuple(name.strip().lower() for name in table.columns), *rows]
    return list(zip(*rows, strict=True))


def _cell_text(value: Any) -> str:
    return str(json_value(value)).strip().lower()


def _as_text(table: ResultTable, names: bool) -> str:
    parts = ["col : " + " | ".join(table.columns)] if names else []
    parts += [f"row {i} : {_row_text(row)}" for i, row in enumerate(table.rows, start=1)]
    return " ".join(parts).lower()


def _row_text(row: Sequence[Any]) -> str:
    return " | ".join(str(json_value(value)) for value in row).lower()


@dataclass(frozen=True, slots=True)
class AnswerMetric:
    """A metric of answers as a value; called with both tables and whether order counts."""

    key: str
    formula: Callable[[ResultTable, ResultTable, bool], float] = field(repr=False)

    def __str__(self) -> str:
        return self.key

    def __call__(self, predicted: ResultTable, gold: ResultTable, ordered: bool) -> float:
        """Score one question."""
        return self.formula(predicted, gold, ordered)


EX = AnswerMetric("EX", lambda p, g, ordered: float(execution_match(p.rows, g.rows, ordered)))
TABLE_EM = AnswerMetric("TableEM", lambda p, g, ordered: float(table_exact_match(p, g)))
TABLE_EM_VALUES = AnswerMetric(
    "TableEM-values", lambda p, g, ordered: float(table_exact_match(p, g, names=False))
)


def _column_values(predicted: ResultTable, gold: ResultTable) -> Overlap:
    return column_overlap(predicted, gold, names=False)


OVERLAPS: dict[str, Callable[[ResultTable, ResultTable], Overlap]] = {
    "Row": row_overlap,
    "Column": column_overlap,
    "Column-values": _column_values,
    "Cell": cell_overlap,
}
"""What precision, recall and F1 are told of; "-values" leaves the column names aside."""


def overlap_key(kind: str, part: str) -> str:
    """The key of a metric: ``RowP``, ``ColumnF1-values``; ``part`` is "P", "R" or "F1"."""
    name, dash, rest = kind.partition("-")
    return f"{name}{part}{dash}{rest}"


def _overlap_metrics() -> tuple[AnswerMetric, ...]:
    parts: dict[str, Callable[[Overlap], float]] = {
        "P": lambda found: found.precision,
        "R": lambda found: found.recall,
        "F1": lambda found: found.f1,
    }

    def metric(kind: str, part: str) -> AnswerMetric:
        formula, take = OVERLAPS[kind], parts[part]
        return AnswerMetric(overlap_key(kind, part), lambda p, g, ordered: take(formula(p, g)))

    return tuple(metric(kind, part) for kind in OVERLAPS for part in parts)


ANSWER_METRICS: tuple[AnswerMetric, ...] = (EX, TABLE_EM, TABLE_EM_VALUES, *_overlap_metrics())
