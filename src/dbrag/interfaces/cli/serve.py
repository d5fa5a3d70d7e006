"""``dbrag serve``: the HTTP API and the page."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from dbrag.errors import UsageError
from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.options import Run, common_options, pass_run

if TYPE_CHECKING:
    from dbrag.interfaces.http.options import ServeOptions
    from dbrag.interfaces.http.service import Service

NEEDED = ("fastapi", "uvicorn", "prometheus_client", "vl_convert")


@click.command(short_help="Serve the HTTP API and the page.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="0: a free one."
)
@click.option(
    "--token-file", metavar="FILE", help="Token that clients have to send (also DBRAG_API_TOKEN)."
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Another name under which the server is reached; may be repeated.",
)
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Let pages of this origin use the API (CORS); may be repeated.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Searches and statements at once (default 4).",
)
@click.option(
    "--asks",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Questions at once (default 1 with a local model, else 4).",
)
@click.option(
    "--queue",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Requests that may wait (default 64).",
)
@click.option(
    "--request-timeout",
    "timeout_s",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="Longest time of a request, seconds (default 300).",
)
@click.option(
    "--rate",
    type=click.IntRange(0),
    metavar="N",
    help="Requests a minute of one address (default 600; 0: no limit).",
)
@click.option("--history", "history_file", metavar="FILE", help="Keep the history in FILE, too.")
@click.option("--no-history", is_flag=True, help="Keep no history.")
@click.option("--log-questions", is_flag=True, help="Write questions and SQL into the log.")
@common_options
@pass_run
def serve(
    run: Run,
    /,
    token_file: str | None,
    no_history: bool,
    **given: Any,
) -> int:
    """Serve the HTTP API under /api/v1, and the page at /.

    Without a token only this machine can connect. The log goes to standard error, one JSON object a
    line, without questions and values.
    """
    from dbrag.interfaces.http.options import ServeOptions, read_token
    from dbrag.interfaces.http.token_file import exposure

    if no_history and given["history_file"]:
        raise UsageError("--no-history and --history exclude each other", "leave one out")
    chosen = {name: value for name, value in given.items() if value is not None}
    if no_history:
        chosen["history"] = 0
    options = ServeOptions(token=read_token(token_file, os.environ), **chosen)
    check_extra()
    if not run.quiet and (warning := exposure(token_file)):
        output.note(warning)
    return _serve(run, options)


def check_extra() -> None:
    """Raises:
    UsageError: a package that serving needs is missing.
    """
    missing = [name for name in NEEDED if sys.modules.get(name, name) is None or not _found(name)]
    if missing:
        raise UsageError(
            f"dbrag serve needs packages that are not installed: {', '.join(missing)}",
            "pip install 'dbrag[serve]'",
        )


def _found(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _serve(run: Run, options: ServeOptions) -> int:
    from dbrag.interfaces.cli.ask import tell_remote
    from dbrag.interfaces.http import logs
    from dbrag.interfaces.http.server import bind, make_server, url_of
    from dbrag.interfaces.http.service import Service

    with run.database() as database:
        tell_remote(database.settings)
        service = Service(database, options)
        listening = bind(options)
        try:
            logs.set_up(_level(run))
            _tell(run, options, url_of(listening, options))
            make_server(service).run(sockets=[listening])
        finally:
            listening.close()
        if service.board.active():
            _leave(service)
    return 0


def _tell(run: Run, options: ServeOptions, url: str) -> None:
    from dbrag.types import SCHEMA_VERSION

    if run.json:
        api = f"{url}/api/v1"
        told = {"schema": SCHEMA_VERSION, "url": url, "api": api, "token": bool(options.token)}
        output.emit_json(told)
    if run.quiet:
        return
    output.note(f"serving {url} (API: {url}/api/v1); Ctrl-C stops it")
    if not options.is_loopback:
        output.note(
            "warning: questions, answers and the token go over the network unencrypted: "
            "put a proxy with TLS before it (docs/api.md)"
        )


def _level(run: Run) -> int:
    if run.quiet:
        return logging.WARNING
    return logging.DEBUG if run.verbose else logging.INFO


def _leave(service: Service) -> None:
    """End the process although a job does not: its thread would keep it for ever."""
    from dbrag.interfaces.http import logs

    logs.event("jobs_left", logging.WARNING, count=len(service.board.active()))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
