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


def row_f1(predicted: Rows, gold: Rows) -> float:
    """The paper's Row EM as F1: ``2·|P ∩ G| / (|P| + |G|)`` over bags of written-out rows.

    Rows in any order; values inside a row in the given order, lower case. Equal to the
    harmonic mean of precision ``|P ∩ G| / |P|`` and recall ``|P ∩ G| / |G|``. Two tables
    without rows score 1, one without rows 0.

    Source: the paper, section 4.2, and Pal et al. 2023 (MultiTabQA).
    """
    if not predicted and not gold:
        return 1.0
    left, right = Counter(map(_row_text, predicted)), Counter(map(_row_text, gold))
    return 2 * (left & right).total() / (len(predicted) + len(gold))


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
ROW_F1 = AnswerMetric("RowF1", lambda p, g, ordered: row_f1(p.rows, g.rows))

ANSWER_METRICS: tuple[AnswerMetric, ...] = (EX, TABLE_EM, TABLE_EM_VALUES, ROW_F1)
