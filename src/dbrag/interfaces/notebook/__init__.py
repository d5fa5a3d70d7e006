"""Results in notebooks: HTML without scripts, and lines where HTML cannot be shown.

answers   answers and results as HTML; others: candidates, status and reports
lines     the same as text
markup    escaped text, tables and SQL, the style
picture   the chart, drawn as for the page, as SVG that only draws

``display.Displayed`` loads this package when a notebook asks for it. A browser takes all of it as
data: no script, no address, no name or value that is not escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbrag.display import Displayed


def html_of(shown: Displayed) -> str:
    """A result as HTML.

    Raises:
        TypeError: it is of a kind that has none.
    """
    from dbrag.display import StatusReport
    from dbrag.interfaces.notebook import answers, others
    from dbrag.types import Answer, Candidate, Execution, IndexReport, Reading, SearchResult

    match shown:
        case Answer():
            return answers.answer_html(shown)
        case Execution():
            return answers.execution_html(shown)
        case Reading():
            return answers.reading_html(shown)
        case SearchResult():
            return others.search_html(shown)
        case Candidate():
            return others.candidate_html(shown)
        case IndexReport():
            return others.index_html(shown)
        case StatusReport():
            return others.status_html(shown)
    raise TypeError(f"{type(shown).__name__} has no HTML")


def lines_of(shown: Displayed) -> list[str]:
    """A result as lines of text.

    Raises:
        TypeError: it is of a kind that has none.
    """
    from dbrag.interfaces.notebook import lines

    return lines.lines_of(shown)
