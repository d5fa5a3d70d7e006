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
    from dbrag.reasoning.learned_file import Pair

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
        learned, path = _opened(database)
        if list_all:
            found = _listed(database, learned)
        elif forget:
            found = _forgotten(learned, path, question or "")
        else:
            found = _learned(
                database, path, question or "", read_text(statement or "", "statement")
            )
            learned = _opened(database)[0]
        if not forget:
            learned.prepare()
    from dbrag.types import SCHEMA_VERSION

    lines = found.pop("lines")
    if run.json:
        output.emit_json({"schema": SCHEMA_VERSION, "file": str(path), **found})
    elif lines:
        output.emit("\n".join(lines))
    return 0


def _opened(database: Database) -> tuple[Learned, Path]:
    """The learned pairs and their file.

    Raises:
        UsageError: learning is off, or the file cannot be read.
    """
    from dbrag.reasoning.learned import Learned

    learned = Learned.of(database.settings, database.index_dir, database.embedder)
    if learned.unreadable is not None:
        raise learned.unreadable
    if learned.path is None:
        raise UsageError('learned is "off"', "name a file: learned in dbrag.toml, or DBRAG_LEARNED")
    return learned, learned.path


def _learned(database: Database, path: Path, question: str, statement: str) -> dict[str, Any]:
    from dbrag import scope
    from dbrag.interfaces.cli.render import count
    from dbrag.interfaces.cli.tables import aligned, cell_text
    from dbrag.reasoning.learned_file import Pair, write_pair

    question = " ".join(scope.checked_question(question).split())
    source, admitted = scope.admit_anywhere(statement, database.sources)
    result = database.run_sql(source.name, statement)
    old = write_pair(path, Pair(question, statement, source.name))
    lines = aligned([column.name for column in result.columns], result.rows[:_SHOWN_ROWS])
    lines += [count(len(result.rows), "row"), ""]
    lines.append(f"learned for {source.name}: {cell_text(question)}")
    if old is not None:
        lines.append(f"instead of: {cell_text(old.sql)}")
    lines.append(f"file: {path}")
    return {
        "question": question,
        "source": source.name,
        "sql": admitted.sql,
        "tables": [table.to_dict() for table in admitted.tables],
        "row_count": len(result.rows),
        "replaced": old is not None,
        "lines": lines,
    }


def _listed(database: Database, learned: Learned) -> dict[str, Any]:
    from dbrag.errors import DbragError
    from dbrag.interfaces.cli.render import terminal_width
    from dbrag.interfaces.cli.tables import aligned
    from dbrag.reasoning.learned import admit

    sources = {source.name: source for source in database.sources}
    catalog = database.opened_index().catalog
    pairs = []
    for pair in learned.pairs:
        entry: dict[str, Any] = {
            "question": pair.question,
            "source": pair.source or None,
            "sql": pair.sql,
            "line": pair.line,
            "tables": [],
            "problem": None,
        }
        try:
            solved = admit(pair, sources, catalog)
            entry["source"] = solved.source
            entry["tables"] = [table.to_dict() for table in solved.admitted.tables]
        except DbragError as error:
            entry["problem"] = error.message
        pairs.append(entry)
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
    import difflib

    from dbrag.interfaces.cli.render import count
    from dbrag.reasoning.learned_file import fold, remove_pairs

    gone: list[Pair] = [p for p in learned.pairs if fold(p.question) == fold(question)]
    if not gone:
        questions = [pair.question for pair in learned.pairs]
        near = difflib.get_close_matches(question, questions, n=1)
        raise UsageError(
            f"the question {question[:200]!r} is not among the learned ones",
            f'dbrag learn --forget "{near[0]}"' if near else "dbrag learn --list",
        )
    remove_pairs(path, gone)
    lines = [f"forgotten: {count(len(gone), 'pair')}", f"file: {path}"]
    return {"forgotten": len(gone), "lines": lines}
