"""``dbrag learn``: verified questions with the SQL that answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dbrag.errors import UsageError
from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.ask import read_text, tell_remote
from dbrag.interfaces.cli.options import Run, common_options, pass_run

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag.database import Database
    from dbrag.reasoning.learned import Learned

_SHOWN_ROWS = 5


@click.command(short_help="Keep questions with the SQL that answers them.")
@click.argument("question", required=False)
@click.option("--sql", "statement", metavar="STATEMENT", help='Its SQL ("-": standard input).')
@click.option("--list", "list_all", is_flag=True, help="Show all pairs, and which are broken.")
@click.option("--forget", is_flag=True, help="Take QUESTION out of the file.")
@common_options
@pass_run
def learn(
    run: Run, question: str | None, statement: str | None, list_all: bool, forget: bool
) -> int:
    """Keep QUESTION with the SQL that answers it, for the same and for similar questions.

    The statement is run once, read-only. The pairs lie in a file of plain SQL that you can edit
    (setting learned): learned.sql beside dbrag.toml, else in the index.
    """
    from dbrag.interfaces import teaching
    from dbrag.interfaces.cli.notices import Events

    wanted = [name for name, given in (("--list", list_all), ("--forget", forget)) if given]
    wanted += ["--sql"] if statement is not None else []
    if len(wanted) != 1:
        raise UsageError(
            f"{' and '.join(wanted)} do not go together" if wanted else "nothing to learn is given",
            'dbrag learn "QUESTION" --sql "SELECT …", or --list, or --forget "QUESTION"',
        )
    if list_all and question is not None:
        raise UsageError(f"--list takes no question: {question!r}", "dbrag learn --list")
    if question == statement == "-":
        raise UsageError(
            "question and statement cannot both come from standard input",
            "write the question in quotes; --sql - reads the statement",
        )
    if not list_all:
        question = run.asked = read_text(question or "", "question")
    with Events(run) as events, run.database() as database:
        tell_remote(database.settings, chat=False)
        database.opened_index(events)
        learned, path = teaching.opened(database)
        if list_all:
            found = _listed(database, learned)
        elif forget:
            found = _forgotten(learned, path, question or "")
        else:
            found = _learned(
                database, path, question or "", read_text(statement or "", "statement")
            )
            learned = teaching.opened(database)[0]
        if not forget:
            learned.prepare()
    from dbrag.types import SCHEMA_VERSION

    lines = found.pop("lines")
    if run.json:
        output.emit_json({"schema": SCHEMA_VERSION, "file": str(path), **found})
    elif lines:
        output.emit("\n".join(lines))
    return 0


def _learned(database: Database, path: Path, question: str, statement: str) -> dict[str, Any]:
    from dbrag.interfaces.cli.render import count, terminal_width
    from dbrag.interfaces.cli.tables import aligned, cell_text
    from dbrag.interfaces.teaching import teach

    taught = teach(database, path, question, statement)
    result = taught.result
    names = [column.name for column in result.columns]
    shown = result.rows[:_SHOWN_ROWS]
    lines = aligned(names, shown, width=terminal_width())
    of = f"{len(shown):,} of " if len(shown) < len(result.rows) else ""
    lines += [f"{of}{count(len(result.rows), 'row')}", ""]
    lines.append(f"learned for {taught.pair.source}: {cell_text(taught.pair.question)}")
    if taught.old is not None:
        lines.append(f"instead of: {cell_text(taught.old.sql)}")
    lines.append(f"file: {path}")
    return {**taught.to_dict(), "lines": lines}


def _listed(database: Database, learned: Learned) -> dict[str, Any]:
    from dbrag.interfaces.cli.render import terminal_width
    from dbrag.interfaces.cli.tables import aligned
    from dbrag.interfaces.teaching import listed

    pairs = listed(database, learned)
    problems = [{"line": line, "message": message} for line, message in learned.problems]
    rows = [
        (p["line"], p["question"], p["source"] or "", p["problem"] or "works") for p in pairs
    ] + [(p["line"], "", "", p["message"]) for p in problems]
    rows.sort(key=lambda row: int(row[0]))
    lines = [f"{learned.path}: nothing learned yet"]
    if rows:
        lines = aligned(("line", "question", "source", "state"), rows, width=terminal_width())
        lines += ["", str(learned.path)]
    return {"pairs": pairs, "problems": problems, "lines": lines}


def _forgotten(learned: Learned, path: Path, question: str) -> dict[str, Any]:
    from dbrag.interfaces.cli.render import count
    from dbrag.interfaces.teaching import forget

    gone = forget(learned, path, question)
    return {"forgotten": gone, "lines": [f"forgotten: {count(gone, 'pair')}", f"file: {path}"]}
