"""``dbrag mcp``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from dbrag.errors import UsageError
from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.options import Run, common_options, pass_run

if TYPE_CHECKING:
    from dbrag.interfaces.http.options import ServeOptions


@click.command(short_help="Serve the sources to agents (Model Context Protocol).")
@click.option(
    "--http",
    "address",
    metavar="[HOST:]PORT",
    help="Over streamable HTTP instead of standard input and output (HOST default: this machine "
    "only; any other needs a token).",
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="Ask clients for the token in FILE (else for that of DBRAG_API_TOKEN, if there is one).",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Another name by which clients reach the server; may be repeated.",
)
@click.option(
    "--request-timeout",
    type=click.FloatRange(1, 86_400),
    default=900.0,
    show_default=True,
    metavar="S",
    help="Seconds that a call may take, indexing included.",
)
@common_options
@pass_run
def mcp(
    run: Run,
    address: str | None,
    token_file: str | None,
    hosts: tuple[str, ...],
    request_timeout: float,
) -> int:
    """Serve the sources to agents: search tables, describe one, find values, query, ask.

    An agent starts this command itself and speaks with it by standard input and output; with
    --http it stands for itself. Nothing is indexed before the first call (dbrag index does it).
    """
    from dbrag.interfaces.mcp.failures import server_class

    server_class()  # a missing extra is told before anything is opened
    if address is None and (token_file or hosts):
        raise UsageError("--token-file and --allow-host are for --http", "add --http 8322")
    if address is None and run.json:
        raise UsageError(
            "--json has nothing to print: standard output belongs to the protocol",
            "leave --json out, or add --http 8322",
        )
    from dbrag.interfaces.http.token_file import exposure
    from dbrag.interfaces.mcp.server import build_server
    from dbrag.interfaces.mcp.service import Service
    from dbrag.interfaces.mcp.transports import http_options, run_http, run_stdio

    options = None
    if address is not None:
        options = http_options(address, token_file, hosts, request_timeout)
        if not run.quiet and (warning := exposure(token_file)):
            output.note(warning)
    with run.database() as database:
        service = Service(database, call_s=request_timeout)
        server = build_server(service, verbose=run.verbose)
        code = 0
        if options is not None:
            run_http(server, service, options, lambda url: _ready(run, options, url))
        else:
            if output.is_terminal(sys.stdin) and not run.quiet:
                output.note("speaking MCP on standard input: agents start it (docs/mcp.md)")
            code = run_stdio(server, service)
        if code or service.busy:
            _leave(code)
    return 0


def _leave(code: int) -> None:
    """End the process although a thread does not: one waits for standard input, or for an engine.

    An index that was being made is as it was before.
    """
    if code:
        output.note("error: interrupted")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _ready(run: Run, options: ServeOptions, url: str) -> None:
    """Say where it is served: to programs as JSON, to people in a line."""
    from dbrag.types import SCHEMA_VERSION

    if run.json:
        output.emit_json({"schema": SCHEMA_VERSION, "url": url, "token": bool(options.token)})
    if run.quiet:
        return
    output.note(f"serving MCP at {url}; Ctrl-C stops it")
    if not options.is_loopback:
        output.note(
            "warning: questions, results and the token go over the network unencrypted: put a "
            "proxy with TLS before it (docs/mcp.md)"
        )
