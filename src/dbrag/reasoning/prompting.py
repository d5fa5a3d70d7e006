"""The program prompts of one question, for several sets of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dbrag.catalog.joins import JoinGraph
from dbrag.models.base import Prompt
from dbrag.reasoning.join_paths import joins_told
from dbrag.reasoning.prompts import Fitted, fitted_prompt
from dbrag.types import AnswerWarning, Candidate, Table, TableRef

RowsOf = Callable[[Sequence[Table]], Mapping[TableRef, Sequence[Mapping[str, Any]]]]
"""Gives the rows to show of each table, column → value."""


class Prompter:
    """Called with tables, the most important first, it writes their prompt.

    Args:
        candidates: hold the values that the question mentions.
        by_ref: the tables of the catalog.
        joins: between tables that may be shown.
        solved: similar questions with their SQL, verified by the user.
        budget_tokens: what a prompt may take (``token_budget.prompt_budget``).
        report: told what a shortened prompt leaves out.
        rows: gives the rows to show of tables; None shows sample rows.
        formats, hint: see ``prompts.fitted_prompt``.
    """

    def __init__(
        self,
        question: str,
        candidates: Sequence[Candidate],
        by_ref: Mapping[TableRef, Table],
        joins: JoinGraph,
        *,
        dialect: str,
        solved: Sequence[tuple[str, str]],
        budget_tokens: int,
        report: Callable[[Mapping[str, Any]], None],
        rows: RowsOf | None = None,
        formats: bool = True,
        hint: bool = False,
    ) -> None:
        self._question = question
        self._matches = {c.table: c.matches for c in candidates}
        self._by_ref = by_ref
        self._joins = joins
        self._dialect = dialect
        self._solved = solved
        self._budget_tokens = budget_tokens
        self._report = report
        self._rows = rows
        self._formats = formats
        self._hint = hint
        self._fitted: dict[tuple[TableRef, ...], Fitted] = {}

    def __call__(self, tables: tuple[TableRef, ...]) -> Prompt:
        """The prompt of these tables.

        Raises:
            PromptTooLong: the budget has no room for the question and one table.
        """
        if tables not in self._fitted:
            shown = [self._by_ref[ref] for ref in tables]
            fitted = fitted_prompt(
                self._question,
                shown,
                dialect=self._dialect,
                matches=self._matches,
                joins=joins_told(self._joins, tables, self._question),
                solved=self._solved,
                budget_tokens=self._budget_tokens,
                rows=self._rows(shown) if self._rows else None,
                formats=self._formats,
                hint=self._hint,
            )
            self._fitted[tables] = fitted
            if fitted.shortened:
                self._report(fitted.event())
        return self._fitted[tables].prompt

    def warnings(self, tables: tuple[TableRef, ...]) -> tuple[AnswerWarning, ...]:
        """What the reader of an answer has to know of the prompt of these tables."""
        fitted = self._fitted.get(tables)
        return fitted.warnings() if fitted else ()
