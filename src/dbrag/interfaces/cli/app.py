"""The ``dbrag`` group, exit codes, and errors as text or JSON.

Only click and the standard library are imported here: ``dbrag --help`` has to be quick.
"""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from dbrag.errors import DbragError, LimitReached
from dbrag.interfaces.cli import (
    ask,
    completion,
    demo,
    doctor,
    evaluate,
    evaluate_reports,
    index,
    joins,
    learn,
    mcp,
    models,
    output,
    search,
    serve,
)
from dbrag.interfaces.cli.options import Run, common_options
from dbrag.textsafe import SecretFilter, mask_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class OnceFilter(logging.Filter):
    """Lets each message through once: a source is looked at several times in one command."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """False for a message that was there before."""
        try:
            message = record.getMessage()
        except Exception:
            return True  # logging itself reports a wrong format
        if message in self._told:
            return False
        self._told.add(message)
        return True


if logging.lastResort is not None:  # what prints the warnings of all libraries here
    logging.lastResort.addFilter(SecretFilter())
    logging.lastResort.addFilter(OnceFilter())

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

_ANSWERING = ("ask", "sql")
_TEXT_FLAGS = {"-h", "--help", "--version"}


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        import dbrag

        output.emit(f"dbrag {dbrag.__version__}")
        context.exit()


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
@common_options
@click.pass_context
def cli(context: click.Context) -> int:
    """Ask a question in plain language, get the answer computed from a whole database.

    \b
    dbrag                                        what to do next
    dbrag demo                                   write a small shop, and questions to ask it
    dbrag ask -s demo/shop.db "How many customers live in each city?"
    dbrag ask -s folder/of/databases "…"         the right database is found, too

    Exit codes: 0 answered or done, 1 failed, 2 usage, 3 source, 4 unanswerable, 5 model,
    6 limit reached, 130 interrupted, 143 terminated.
    """
    if context.invoked_subcommand is not None:
        return 0
    run = context.ensure_object(Run)
    if run.json:  # a program has forgotten something
        raise click.UsageError("Missing command", context)
    from dbrag.interfaces.cli.start import start

    return start(run)


for _command in (
    index.index,
    index.status,
    search.search,
    joins.joins,
    ask.ask,
    ask.sql,
    learn.learn,
    models.models,
    evaluate.evaluate,
    serve.serve,
    mcp.mcp,
    demo.demo,
    doctor.doctor,
    completion.completion,
):
    cli.add_command(_command)
for _command in (evaluate_reports.report, evaluate_reports.compare, evaluate_reports.stats):
    evaluate.evaluate.add_command(_command)


class _Terminated(KeyboardInterrupt):
    """SIGTERM: what runs is stopped as by Ctrl-C, on a server too."""


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise _Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: its owner decides
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code. Nothing is raised, whatever happens."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    flags = arguments[: arguments.index("--")] if "--" in arguments else arguments
    run = Run(json="--json" in flags, verbose="-v" in flags or "--verbose" in flags)
    # A guess for errors that arise before click knows the command.
    run.command = next((word for word in flags if word in cli.commands), "")
    try:
        with (
            _stopped_by_sigterm(),
            output.json_only(run.json and not _TEXT_FLAGS.intersection(flags)),
        ):
            return _run(arguments, run)
    except KeyboardInterrupt as error:
        return _exit_of(error)
    except BrokenPipeError:
        return EXIT_FAILED


def _run(arguments: list[str], run: Run) -> int:
    try:
        code = cli.main(arguments, prog_name="dbrag", standalone_mode=False, obj=run)
        return int(code or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        if run.json:
            return _usage(error, run)
        output.note(error.ctx.get_help() if error.ctx else str(error))
        return EXIT_USAGE
    except click.ClickException as error:
        return _usage(error, run)
    except (click.Abort, KeyboardInterrupt) as error:
        report(run, {"code": "interrupted", "message": "interrupted", "hint": ""})
        return _exit_of(error)
    except DbragError as error:
        return _failed(error, run)
    except MemoryError:
        return _failed(LimitReached("out of memory", "close other programs"), run)
    except BrokenPipeError:
        raise
    except SystemExit as stop:  # click's own answer to a closed pipe
        return stop.code if isinstance(stop.code, int) else EXIT_FAILED
    except Exception as error:
        return _bug(error, run)


def _exit_of(error: BaseException) -> int:
    # click makes Abort of any KeyboardInterrupt.
    terminated = isinstance(error, _Terminated) or isinstance(error.__cause__, _Terminated)
    return EXIT_TERMINATED if terminated else EXIT_INTERRUPTED


def _usage(error: click.ClickException, run: Run) -> int:
    context = getattr(error, "ctx", None)
    if context is not None:
        run.command = context.command_path.partition(" ")[2]
    path = f"dbrag {run.command}".rstrip()
    message = mask_secrets(" ".join(error.format_message().split()).rstrip("."))
    report(run, {"code": "usage", "message": message, "hint": f"{path} --help"})
    return EXIT_USAGE


def _failed(error: DbragError, run: Run) -> int:
    cause = error.__cause__
    if run.verbose and cause is not None:
        output.note(
            mask_secrets(f"cause: {type(cause).__name__}: {' '.join(str(cause).split())[:500]}")
        )
    if isinstance(error, output.OutputLost):
        run.json = False  # there is nowhere left to print it
    report(run, error.to_dict())
    return error.exit_code


def _bug(error: Exception, run: Run) -> int:
    if run.verbose:
        _traceback(error)
    where = "" if run.verbose else "run it again with -v and "
    message = mask_secrets(f"this is a bug in dbrag: {type(error).__name__}: {error}")
    report(
        run,
        {
            "code": "bug",
            "message": " ".join(message.split())[:500],
            "hint": f"{where}report the traceback",
        },
    )
    return EXIT_FAILED


def _traceback(error: BaseException) -> None:
    import traceback

    output.note(mask_secrets("".join(traceback.format_exception(error)).rstrip()))


def report(run: Run, error: dict[str, str]) -> None:
    """Tell an error: to people in a line or two, to programs as the JSON of the command."""
    if run.json:
        output.emit_json(error_json(run, error))
    else:
        output.note(f"error: {error['message']}")
        if error["hint"]:
            output.note(f"  try: {error['hint']}")


def error_json(run: Run, error: dict[str, str]) -> dict[str, Any]:
    """The JSON of a command that failed; that of ``ask`` and ``sql`` has all their keys."""
    from dbrag.types import SCHEMA_VERSION, Answer

    if run.command not in _ANSWERING:
        return {"schema": SCHEMA_VERSION, "error": error}
    unanswerable = error["code"] == "unanswerable"
    answer = Answer(
        question=run.asked,
        status="unanswerable" if unanswerable else "failed",
        text="",
        error=error,
        votes_requested=0,
        model=run.model,
        seconds=dict.fromkeys(("total", "retrieve", "reason", "execute"), 0.0),
        tokens=dict.fromkeys(("prompt", "cached", "completion", "cache_hits"), 0),
    )
    return ask.answer_json(answer, run.command)
