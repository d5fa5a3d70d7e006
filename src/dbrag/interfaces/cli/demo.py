"""``dbrag demo``: a shop to play with."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.options import Run, common_options, pass_run

if TYPE_CHECKING:
    from dbrag.database import Database
    from dbrag.demo import DemoInfo, DemoQuestion

ENOUGH = 5
"""``--check`` succeeds with this many of the six, the first among them."""


@click.command(short_help="Write a small generated shop, and questions to ask it.")
@click.argument("path", required=False)
@click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="Of the rows.")
@click.option("--force", is_flag=True, help="Overwrite a file that is not the demo.")
@click.option("--ask", "ask_first", is_flag=True, help="Answer the first question, too.")
@click.option("--check", is_flag=True, help="Ask all six and compare with the gold SQL.")
@common_options
@pass_run
def demo(run: Run, path: str | None, seed: int, force: bool, ask_first: bool, check: bool) -> int:
    """Write a generated SQLite shop to PATH (default demo/shop.db) and list six questions."""
    from dbrag.demo import DEFAULT_PATH, QUESTIONS, write_demo

    info = write_demo(path or DEFAULT_PATH, seed, force=force)
    run.sources = (str(info.path),)
    if check:
        return _check(run, info)
    if ask_first:
        return _ask(run, info, QUESTIONS[0])
    if run.json:
        output.emit_json(_json(info))
    else:
        output.emit("\n".join(_lines(info)))
    return 0


def _json(info: DemoInfo) -> dict[str, Any]:
    from dbrag.demo import QUESTIONS
    from dbrag.types import SCHEMA_VERSION

    return {
        "schema": SCHEMA_VERSION,
        "path": str(info.path),
        "seed": info.seed,
        "rows": info.rows,
        "questions": [{"question": q.question, "tables": list(q.tables)} for q in QUESTIONS],
    }


def _lines(info: DemoInfo) -> list[str]:
    from dbrag.demo import QUESTIONS

    path = shlex.quote(str(info.path))
    lines = [
        f"wrote {info.path}: {len(info.rows)} tables and a view, {info.total_rows:,} rows",
        "",
        "Questions to try:",
    ]
    lines += [f'  dbrag ask -s {path} "{q.question}"' for q in QUESTIONS]
    return lines


def _ask(run: Run, info: DemoInfo, question: DemoQuestion) -> int:
    from dbrag.interfaces.cli.ask import show, tell_remote
    from dbrag.interfaces.cli.notices import Events

    if not run.json and not run.quiet:
        output.emit(f'dbrag ask -s {shlex.quote(str(info.path))} "{question.question}"\n')
    run.command, run.asked = "ask", question.question
    with Events(run) as events, run.database() as database:
        tell_remote(database.settings)
        answer = database.ask(question.question, on_event=events)
    show(run, answer, explain=False)
    return answer.exit_code


def _check(run: Run, info: DemoInfo) -> int:
    from dbrag.demo import QUESTIONS
    from dbrag.interfaces.cli.ask import tell_remote
    from dbrag.types import SCHEMA_VERSION

    results = []
    with run.database() as database:
        tell_remote(database.settings)
        for question in QUESTIONS:
            result = check_one(database, question, run)
            results.append(result)
            if not run.json:
                mark = "right" if result["right"] else "WRONG"
                output.emit(f"{mark}  {result['seconds']:5.1f} s  {question.question}")
                if not result["right"]:
                    output.emit(f"       {result['sql'] or result['error']}")
    right = sum(result["right"] for result in results)
    if run.json:
        output.emit_json(
            {
                "schema": SCHEMA_VERSION,
                "path": str(info.path),
                "right": right,
                "questions": results,
            }
        )
    else:
        output.emit(f"{right} of {len(results)} right")
    return 0 if right >= ENOUGH and results[0]["right"] else 1


def check_one(database: Database, question: DemoQuestion, run: Run) -> dict[str, Any]:
    """Ask one question and compare the result with that of its gold SQL."""
    from dbrag.evaluation.matching import same_rows
    from dbrag.interfaces.cli.notices import Events

    gold = database.sql(question.sql).execution
    with Events(run) as events:
        answer = database.ask(question.question, on_event=events)
    right = (
        answer.execution is not None
        and gold is not None
        and same_rows(answer.execution.rows, gold.rows, ordered=False)
    )
    return {
        "question": question.question,
        "right": bool(right),
        "sql": answer.sql,
        "gold": question.sql,
        "agreement": answer.agreement,
        "error": answer.error["message"] if answer.error else None,
        "seconds": float(answer.seconds.get("total", 0.0)),
    }
