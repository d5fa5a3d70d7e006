"""Answers and results as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.interfaces.cli.render import agreement_words, count, duration
from dbrag.interfaces.notebook import markup
from dbrag.interfaces.notebook.picture import figure
from dbrag.reasoning.sureness import in_words

if TYPE_CHECKING:
    from dbrag.types import Answer, Execution, Reading

_READING_ROWS = 5


def answer_html(answer: Answer) -> str:
    """What it is, how sure it is, what to know, the result, the chart, the program."""
    parts = [markup.paragraph(answer.question, "dbrag-faint"), _head(answer)]
    parts += [markup.line(_facts(answer), "dbrag-faint"), markup.notes(answer.warnings)]
    parts.append(_readings(answer))
    if answer.execution is not None:
        parts += [markup.result_table(answer.execution), figure(answer.execution)]
    if answer.program is not None:
        head = f"SQL ({markup.own(answer.program.dialect)})"
        parts.append(markup.details(head, markup.sql_block(answer.program.sql), is_open=True))
    return markup.block(*parts)


def execution_html(execution: Execution) -> str:
    """The result and its chart."""
    spent = markup.line(f"computed in {duration(execution.seconds)}", "dbrag-faint")
    return markup.block(markup.result_table(execution), figure(execution), spent)


def reading_html(reading: Reading) -> str:
    """One way to read a question."""
    return markup.block(_reading(reading, markup.MAX_ROWS))


def _head(answer: Answer) -> str:
    if answer.status == "answered" or not answer.error:
        return markup.paragraph(answer.text, "dbrag-text")
    what = "Not answered" if answer.status == "unanswerable" else "Failed"
    told = markup.own(answer.error.get("message", ""), markup.MAX_TEXT_CHARS)
    head = markup.line(f"{what}: {told}", "dbrag-text")
    hint = answer.error.get("hint", "")
    return head + (markup.line(f"What to do: {markup.own(hint)}") if hint else "")


def _facts(answer: Answer) -> str:
    facts = []
    if answer.confidence is not None:
        facts.append(f"<b>{in_words(answer.confidence)}</b>")
    if answer.status == "answered" and answer.votes_requested:
        facts.append(agreement_words(answer))
    if answer.tables:
        facts.append("from " + ", ".join(markup.own(table) for table in answer.tables))
    if (total := answer.seconds.get("total")) is not None:
        facts.append(duration(total))
    if answer.model:
        facts.append(markup.own(answer.model))
    return " · ".join(facts)


def _readings(answer: Answer) -> str:
    """The answer's own reading beside the others."""
    if not answer.readings:
        return ""
    head = markup.line("<b>The question can be read in more than one way</b>")
    first = f'<div class="dbrag-part"><p>This answer:</p>{markup.paragraph(answer.text)}</div>'
    others = "".join(_reading(reading, _READING_ROWS) for reading in answer.readings)
    return head + first + others + markup.line("To choose one, say it in the question.")


def _reading(reading: Reading, max_rows: int) -> str:
    table = markup.result_table(reading.execution, max_rows)
    program = markup.sql_block(reading.program.sql)
    return (
        f'<div class="dbrag-part"><p>Another reading ({count(reading.votes, "program")}):</p>'
        f"{markup.paragraph(reading.text)}"
        f"<p>It {markup.own(reading.difference, markup.MAX_TEXT_CHARS)}</p>"
        f"{markup.details('Its result and SQL', table, program)}</div>"
    )
