"""What a model reads that writes a program step by step.

The prompt of the tables stays as it is, so that its evaluated part can be reused; only the
task in it is another. Cells, column names and messages are data, as in ``prompts``.
"""

from __future__ import annotations

from dataclasses import replace

from dbrag.models.base import Prompt
from dbrag.reasoning.looks import Look
from dbrag.reasoning.names import shown as shown_name
from dbrag.reasoning.program import LAST_STEP
from dbrag.reasoning.prompts import MAX_PROBLEM_CHARS
from dbrag.textsafe import one_line

MAX_LOOK_COLUMNS = 30
"""Columns of a step that are shown."""

_TASK = (
    "Write the program step by step. A step is one SELECT under a name; later steps read it "
    f"by that name. The step that gives the answer is called {LAST_STEP}. Name every computed "
    "column. Write the first step only, as: name: SELECT …"
)
_ONLY_TASK = f"Write the program as one SELECT, as: {LAST_STEP}: SELECT …"


def first_step(prompt: Prompt, *, only: bool = False) -> Prompt:
    """The prompt of a program, asking for its first step.

    Args:
        prompt: one of ``prompts``: the last two lines of its request are the task and the
            question.
        only: there may be no other step.
    """
    hints, question = prompt.request.split("\n")[:-2], prompt.request.split("\n")[-1]
    return replace(prompt, request="\n".join([*hints, _ONLY_TASK if only else _TASK, question]))


def next_step(name: str, look: Look, dialect: str, *, last: bool) -> str:
    """The follow-up after a step that is sound.

    Args:
        name: of the step.
        last: only one more step may be written.
    """
    called = shown_name(name, dialect)
    lines = [f"Step {called}: {_told(look)}."]
    if look.columns:
        more = len(look.columns) - MAX_LOOK_COLUMNS
        names = [
            f"{shown_name(column, dialect)} {type_}".strip()
            for column, type_ in look.columns[:MAX_LOOK_COLUMNS]
        ]
        lines.append(f"-- columns: {', '.join(names)}" + (f", and {more} more" if more > 0 else ""))
    if look.rows:
        lines.append("-- rows:")
        lines += ["-- " + " | ".join(row[:MAX_LOOK_COLUMNS]) for row in look.rows]
    if look.row_count == 0:
        lines.append(
            "Check its compared values, joins and filters; if they are wrong, write the step "
            "again under the same name."
        )
    if last:
        task = f"Write the last step, as: {LAST_STEP}: SELECT …"
    else:
        task = f"Write the next step, as: name: SELECT … (the last is called {LAST_STEP})"
    lines.append(f"{task}, or DONE if step {called} gives the answer.")
    return "\n".join(lines)


def step_again(problem: str, name: str, dialect: str, *, ran: bool = False) -> str:
    """The follow-up after a step that failed or whose result is suspicious.

    Args:
        name: of the step; empty where it has none.
        ran: it did not fail, so its result may be right.
    """
    called = shown_name(name, dialect) if name else "name"
    what = "Write the corrected step" if name else "Write one step"
    stands = ", or DONE if the result is right" if ran else ""
    return f"{one_line(problem, MAX_PROBLEM_CHARS)}\n{what}, as: {called}: SELECT …{stands}"


def _told(look: Look) -> str:
    if look.missing:
        return f"not looked at ({one_line(look.missing, MAX_PROBLEM_CHARS)})"
    if look.row_count == 0:
        return "no rows"
    if look.more:
        return f"more than {look.row_count:,} rows"
    return "1 row" if look.row_count == 1 else f"{look.row_count:,} rows"
