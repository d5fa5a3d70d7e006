"""``dbrag ask`` and ``dbrag sql``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from dbrag.errors import UsageError
from dbrag.interfaces.cli import complete, output
from dbrag.interfaces.cli.behind import (
    Cell,
    Found,
    behind_error,
    behind_json,
    behind_lines,
    exit_code_of,
    find_rows,
    rows_behind_option,
)
from dbrag.interfaces.cli.export import STANDARD_OUTPUT, ResultFiles, file_options, tell
from dbrag.interfaces.cli.options import ListCommand, Run, common_options, pass_run

if TYPE_CHECKING:
    from dbrag.settings import Settings
    from dbrag.types import Answer

_SQL_LEAVES_OUT = ("text", "votes", "tokens")


@click.command(cls=ListCommand, short_help="Answer a question from the sources.")
@click.argument("question", shell_complete=complete.after_list)
@click.option("--votes", type=click.IntRange(1, 100), metavar="N", help="Programs voted on.")
@click.option("--dry-run", is_flag=True, help="Write and check the program, do not run it.")
@click.option(
    "--rerank/--no-rerank", default=None, help="Let the chat model order the best tables anew."
)
@click.option(
    "--tables",
    multiple=True,
    metavar="T …",
    shell_complete=complete.tables,
    help="Use only these tables; several may follow.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="T …",
    shell_complete=complete.tables,
    help="Never use these tables; several may follow.",
)
@click.option("--max-rows", type=click.IntRange(0), metavar="N", help="Rows printed.")
@rows_behind_option
@click.option("--explain", is_flag=True, help="Show how the answer came about.")
@click.option(
    "--trace",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write every stage to FILE as JSON.",
)
@file_options
@common_options
@pass_run
def ask(
    run: Run,
    question: str,
    votes: int | None,
    dry_run: bool,
    rerank: bool | None,
    tables: tuple[str, ...],
    exclude: tuple[str, ...],
    max_rows: int | None,
    rows_behind: Cell | None,
    explain: bool,
    trace: str | None,
    csv: str | None,
    parquet: str | None,
    force: bool,
) -> int:
    """Answer QUESTION from the sources ("-" reads it from standard input).

    A source that is not indexed yet, or has changed, is indexed first.
    """
    from dbrag.interfaces.cli.notices import Events
    from dbrag.interfaces.cli.tracefile import TraceFile

    question = run.asked = read_text(question, "question")
    files = result_files(run, csv, parquet, force=force)
    if dry_run and (files or rows_behind):
        raise UsageError("--dry-run computes nothing to show", "leave --dry-run out")
    if rerank and tables:
        raise UsageError("--rerank has nothing to order where --tables chooses", "leave one out")
    events = Events(run)
    with TraceFile(trace, events, question) as file, events, run.database() as database:
        tell_remote(database.settings)
        answer = database.ask(
            question,
            votes=votes,
            tables=tables,
            exclude=exclude,
            dry_run=dry_run,
            max_rows=max_rows,
            on_event=events,
            rerank=rerank,
        )
        file.answer = answer
        source_rows = find_rows(database, answer, rows_behind)
    notes = files.write(answer)
    show(run, answer, explain=explain, behind=source_rows, data_only=files.standard_output)
    tell(notes, quiet=run.quiet)
    return answer.exit_code or exit_code_of(source_rows)


@click.command(short_help="Run one read-only statement under the limits.")
@click.argument("statement")
@click.option("--max-rows", type=click.IntRange(0), metavar="N", help="Rows printed.")
@rows_behind_option
@file_options
@common_options
@pass_run
def sql(
    run: Run,
    statement: str,
    max_rows: int | None,
    rows_behind: Cell | None,
    csv: str | None,
    parquet: str | None,
    force: bool,
) -> int:
    """Run one read-only STATEMENT under the limits ("-" reads it from standard input)."""
    statement = run.asked = read_text(statement, "statement")
    files = result_files(run, csv, parquet, force=force)
    with run.database() as database:
        answer = database.sql(statement, max_rows=max_rows)
        source_rows = find_rows(database, answer, rows_behind)
    notes = files.write(answer)
    show(run, answer, explain=False, behind=source_rows, data_only=files.standard_output)
    tell(notes, quiet=run.quiet)
    return answer.exit_code or exit_code_of(source_rows)


def result_files(run: Run, csv: str | None, parquet: str | None, *, force: bool) -> ResultFiles:
    """The files that a result goes to, checked against the sources.

    Raises:
        UsageError: one that cannot or must not be written.
    """
    if csv in STANDARD_OUTPUT and run.json:
        raise UsageError(
            "--csv - and --json both want standard output", "leave one out, or name a file"
        )
    sources: tuple[str, ...] = ()
    if csv or parquet:
        settings = run.settings()
        sources = settings.sources
        if not sources and settings.index:
            from dbrag.scope import indexed_sources

            sources = indexed_sources(settings)
    return ResultFiles(csv, parquet, force=force, sources=sources)


def show(
    run: Run, answer: Answer, *, explain: bool, behind: Found = None, data_only: bool = False
) -> None:
    """Print an answer as JSON or for people; an error goes to standard error.

    Args:
        data_only: its rows went to standard output: what else there is to say does not.
    """
    if run.json:
        more = {"behind": behind_json(behind)} if behind is not None else {}
        output.emit_json(answer_json(answer, run.command) | more)
        return
    from dbrag.interfaces.cli.evidence import evidence_lines, reading_lines
    from dbrag.interfaces.cli.render import answer_lines, trace_lines

    lines = answer_lines(answer, quiet=run.quiet, rows=not data_only)
    for reading in answer.readings if not run.quiet else ():
        lines += reading_lines(reading, answer.max_rows)
    if explain:
        if answer.evidence:
            lines += ["", *evidence_lines(answer.evidence)]
        lines += ["", *trace_lines(answer.trace)]
    if behind is not None:
        lines += behind_lines(behind)
    if data_only and not run.quiet and lines:
        output.note("\n".join(lines).strip("\n"))
    elif lines and not data_only:
        output.emit("\n".join(lines))
    for error in (answer.error, behind_error(behind)):
        if error:
            output.note(f"error: {error.get('message', '')}")
            if error.get("hint"):
                output.note(f"  try: {error['hint']}")


def answer_json(answer: Answer, command: str) -> dict[str, Any]:
    """The JSON of ``ask``; that of ``sql`` has no text, votes and tokens."""
    value = answer.to_dict()
    if command == "sql":
        for name in _SQL_LEAVES_OUT:
            del value[name]
    return value


def read_text(given: str, what: str) -> str:
    """The argument, or standard input for ``-``.

    Raises:
        UsageError: it is empty, or no text.
    """
    if given == "-":
        try:
            given = sys.stdin.read()
        except UnicodeDecodeError as error:
            raise UsageError(
                f"standard input is not UTF-8 text: {error}",
                "convert it first: iconv -f latin1 -t utf-8 FILE | …",
            ) from error
    if not given.strip():
        raise UsageError(f"the {what} is empty", 'write it in quotes: "…", or "-" and pipe it')
    try:
        given.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the {what} is not valid UTF-8 text: {given!r:.80}",
            "write it as UTF-8 into a file, then: dbrag … - < FILE",
        ) from error
    return given


def tell_remote(settings: Settings, *, chat: bool = True) -> None:
    """Say once what leaves this machine for a remote chat model, if ``chat``, or encoder.

    Raises:
        ModelError: the remote model cannot be used; better now than after indexing.
    """
    from dbrag.models.embed import is_remote_encoder, load_embedder, remote_encoder_warnings
    from dbrag.models.load import is_remote, load_chat_model

    if is_remote_encoder(settings.encoder):
        encoder = load_embedder(settings)
        for warning in remote_encoder_warnings(encoder, settings.row_search):
            from dbrag.interfaces.cli.notices import tell_remote_once

            text = f"note: {warning.message} (said once per encoder)"
            tell_remote_once(f"{encoder.sha256} {text}", settings.cache_dir, text)
    if chat and is_remote(settings.model):
        model = load_chat_model(settings.model, settings)
        if model.remote:  # not so on a server of this machine
            from dbrag.interfaces.cli.notices import remote_text, tell_remote_once

            place = f"{model.name} {getattr(model, 'endpoint', '')}"
            tell_remote_once(place, settings.cache_dir, remote_text(model.name))
