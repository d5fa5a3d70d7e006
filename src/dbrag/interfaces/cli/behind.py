"""``--rows-behind``: the source rows that a row or cell of the printed answer came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import click

from dbrag.errors import DbragError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dbrag.database import Database
    from dbrag.types import Answer


Cell = tuple[int, int | str | None]
"""(row, column), from 0."""
Found: TypeAlias = "Answer | DbragError | None"
"""Source rows, or why they cannot be shown; None where none were asked for."""


class CellType(click.ParamType[Cell]):
    """``R`` or ``R:C``: a row from 1, and a column from 1 or by its name."""

    name = "cell"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Cell:
        """Positions from 0."""
        if isinstance(value, tuple):
            return value
        row, colon, column = str(value).partition(":")
        if not row.isdecimal() or int(row) < 1 or (colon and not column) or column == "0":
            self.fail(f"{value!r} is no row or row:column, as 1 or 2:total", param, ctx)
        named = int(column) - 1 if column.isdecimal() else column
        return int(row) - 1, named if colon else None


rows_behind_option: Callable[[Any], Any] = click.option(
    "--rows-behind",
    type=CellType(),
    metavar="R[:C]",
    help="Show the source rows behind row R, or behind its column C.",
)


def find_rows(database: Database, answer: Answer, cell: Cell | None) -> Found:
    """The source rows of a cell.

    An error is given back, not raised: the answer itself has to be shown all the same.
    """
    if cell is None or answer.execution is None:
        return None
    try:
        return database.source_rows(answer, *cell)
    except DbragError as error:
        return error


def behind_json(found: Answer | DbragError) -> dict[str, Any]:
    """``behind`` in the JSON: an object as of ``sql``, or ``{error}``."""
    from dbrag.interfaces.cli.ask import answer_json

    if isinstance(found, DbragError):
        return {"error": found.to_dict()}
    return answer_json(found, "sql")


def behind_lines(found: Answer | DbragError) -> list[str]:
    """The rows with their statement for people."""
    from dbrag.interfaces.cli.render import answer_lines

    if isinstance(found, DbragError):
        return []
    return ["", "source rows:", *answer_lines(found)]


def behind_error(found: Found) -> Mapping[str, str] | None:
    """Why there are no source rows to show."""
    return found.to_dict() if isinstance(found, DbragError) else None


def exit_code_of(found: Found) -> int:
    """That of the error, else 0."""
    return found.exit_code if isinstance(found, DbragError) else 0
