"""The same as text: for IPython in a terminal, and for whatever cannot show HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.display import StatusReport
from dbrag.interfaces.cli import render
from dbrag.interfaces.cli.tables import aligned
from dbrag.interfaces.notebook.markup import MAX_COLUMNS, MAX_ROWS, brief, cut_text, visible
from dbrag.reasoning.sureness import in_words
from dbrag.types import Answer, Candidate, Execution, IndexReport, Reading, SearchResult

if TYPE_CHECKING:
    from dbrag.display import Displayed

_WIDTH = 100
_CELL_CHARS = 400
_SQL_CHARS = 2000
_READING_ROWS = 3


def lines_of(shown: Displayed) -> list[str]:
    """A result as lines.

    Raises:
        TypeError: it is of a kind that has none.
    """
    match shown:
        case Answer():
            return _answer(shown)
        case Execution():
            return _execution(shown)
        case Reading():
            return _reading(shown, MAX_ROWS)
        case SearchResult():
            return _on_lines(render.search_lines(shown))
        case Candidate():
            return _on_lines(render.candidate_lines(shown))
        case IndexReport():
            return _on_lines(render.index_lines(shown))
        case StatusReport():
            return _on_lines(render.status_lines(shown))
    raise TypeError(f"{type(shown).__name__} has no text")


def _on_lines(lines: list[str]) -> list[str]:
    """As the command line's output has them, of characters that are seen."""
    return [visible(line) for line in lines]


def _answer(answer: Answer) -> list[str]:
    lines = [visible(answer.text)] if answer.text else []
    if answer.error and answer.status != "answered":
        lines = [f"{answer.status}: {visible(answer.error.get('message', ''))}"]
        hint = answer.error.get("hint", "")
        lines += [f"what to do: {visible(hint)}"] if hint else []
    if answer.execution is not None:
        lines += _execution(answer.execution)
    if answer.confidence is not None:
        lines.append(f"confidence: {in_words(answer.confidence)}")
    if answer.status == "answered" and answer.votes_requested:
        lines.append(f"agreement: {render.agreement_words(answer)}")
    if answer.tables:
        lines.append(f"tables: {', '.join(visible(str(table)) for table in answer.tables)}")
    if answer.sql:
        lines.append(f"sql: {visible(answer.sql, _SQL_CHARS)}")
    lines += [visible(f"warning ({one.code}): {one.message}") for one in answer.warnings]
    for reading in answer.readings:
        lines += _reading(reading, _READING_ROWS)
    return lines


def _reading(reading: Reading, max_rows: int) -> list[str]:
    programs = render.count(reading.votes, "program")
    lines = [f"another reading ({programs}): {visible(reading.text)}"]
    lines.append(f"  it {visible(reading.difference)}")
    lines += [f"  {one}" for one in _execution(reading.execution, max_rows)]
    return [*lines, f"  sql: {visible(reading.program.sql, _SQL_CHARS)}"]


def _execution(execution: Execution, max_rows: int = MAX_ROWS) -> list[str]:
    columns = execution.columns
    names = [column.name for column in columns[:MAX_COLUMNS]]
    rows = [[_short(value) for value in row[:MAX_COLUMNS]] for row in execution.rows[:max_rows]]
    lines = aligned(names, rows, width=render.terminal_width() or _WIDTH) if names else []
    return [*lines, cut_text(len(rows), len(execution.rows), len(names), len(columns))]


def _short(value: object) -> object:
    """A cell that is long is cut here, before it is laid out."""
    if isinstance(value, str | bytes | bytearray | list | tuple | dict | set):
        return brief(value, _CELL_CHARS)
    return value
