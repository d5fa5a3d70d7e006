"""All programs that were voted on, not the winner alone: ``FirstEX`` and ``BestEX``.

``FirstEX`` is execution match of the first program, the greedy one, after its repairs:
what there would be without a vote. ``BestEX`` is 1 where any of the programs is right:
what a perfect choice among them would reach (oracle accuracy, best of N).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError
from dbrag.evaluation.metrics import execution_match

if TYPE_CHECKING:
    from dbrag.evaluation.datasets import GoldAnswer
    from dbrag.types import Execution

FIRST, BEST = "FirstEX", "BestEX"
PROGRAM_METRICS = (FIRST, BEST)
"""Keys of :func:`program_scores`."""

RunSql = Callable[[str, str], "Execution"]
"""Runs a statement on a named source, read-only and within the limits."""


@dataclass(frozen=True, slots=True)
class Voted:
    """What one attempt ended with: the statement that ran, None where none did."""

    source: str
    sql: str | None


def voted_programs(trace: Sequence[Mapping[str, Any]]) -> tuple[Voted, ...]:
    """The outcome of every attempt in an answer's trace, in the order they were made.

    "program" events hold whole programs, "step" events parts of one; in both ``round`` counts
    the repairs of an attempt. A "vote" event, or a round that does not go on, ends an
    attempt. As in ``reasoning.attempt`` the last of its programs that ran stands. It ran on
    the source of the "select" event before it.
    """
    found: list[Voted] = []
    source, running, last, written = "", False, 0, -1
    for event in trace:
        stage = event.get("stage")
        if stage == "select":
            source = str(event["source"])
        elif stage == "vote":
            running = False
        elif stage in ("program", "step"):
            whole, round_ = stage == "program", int(event.get("round", 0))
            if not running or round_ < last or (whole and round_ == written):
                found.append(Voted(source, None))
                running, written = True, -1
            last = round_
            if whole:
                written = round_
                if event.get("error") is None and event.get("row_count") is not None:
                    found[-1] = Voted(source, str(event["sql"]))
    return tuple(found)


def program_scores(
    programs: Sequence[Voted],
    answer: tuple[str | None, float],
    gold: GoldAnswer,
    ordered: bool,
    run: RunSql,
) -> dict[str, float]:
    """``FirstEX`` and ``BestEX`` of one question.

    Every distinct program is run once more; one that fails now, or goes over a limit, is
    wrong. The answer itself counts for ``BestEX``, so it is never below ``EX``. A method
    that tells no programs has written one: the answer's.

    Args:
        programs: from :func:`voted_programs`.
        answer: the answer's statement and its ``EX``; that one is not run again.
        ordered: the rows' order counts.
    """
    sql, score = answer
    if not programs:
        return {FIRST: score, BEST: score}
    known: dict[str | None, float] = {None: 0.0}
    if sql is not None:
        known[sql] = score
    for program in programs:
        if program.sql is not None and program.sql not in known:
            known[program.sql] = _scored(program.source, program.sql, gold, ordered, run)
    return {FIRST: known[programs[0].sql], BEST: max(score, *known.values())}


def _scored(source: str, sql: str, gold: GoldAnswer, ordered: bool, run: RunSql) -> float:
    try:
        return float(execution_match(run(source, sql).rows, gold.rows, ordered))
    except DbragError:
        return 0.0
