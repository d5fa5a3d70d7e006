"""``dbrag doctor``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.options import Run, common_options, pass_run

if TYPE_CHECKING:
    from dbrag.doctor import Check

_WIDTH = 17
"""Of the names; a longer one, of a source, pushes its message to the right."""


@click.command(short_help="Check machine, settings, models, sources and index.")
@click.option("--deep", is_flag=True, help="Read local weights for their SHA-256, too.")
@click.option("--call", is_flag=True, help="Let the chat model answer a fixed few words, too.")
@common_options
@pass_run
def doctor(run: Run, deep: bool, call: bool) -> int:
    """Check what dbrag needs here: each finding with the next command to type.

    Nothing is built, fetched or changed. Exit code 1 if something is a problem; warnings are none.
    """
    from dbrag.doctor import Wanted, examine

    arguments = {
        "sources": run.sources,
        "index": run.index,
        "model": run.model,
        "schemas": run.schemas,
    }
    wanted = Wanted(arguments, run.config, next_flags(run), deep=deep, call=call)
    found: list[Check] = []
    for check in examine(wanted):
        found.append(check)
        if not run.json and not (run.quiet and check.status == "ok"):
            output.emit("\n".join(check_lines(check)))
    problems = sum(check.status == "problem" for check in found)
    if run.json:
        from dbrag.types import SCHEMA_VERSION

        checks = [check.to_dict() for check in found]
        output.emit_json({"schema": SCHEMA_VERSION, "ok": not problems, "checks": checks})
    elif not run.quiet:
        output.emit(f"\n{sum_line(found)}")
    return 1 if problems else 0


def check_lines(check: Check) -> list[str]:
    """One line, and the next command below it."""
    from dbrag.interfaces.cli.tables import cell_text

    lines = [f"{check.status:8} {cell_text(check.name):{_WIDTH}} {cell_text(check.message)}"]
    if check.hint:
        lines.append(f"{'':8} {'':{_WIDTH}} try: {cell_text(check.hint)}")
    return lines


def sum_line(found: list[Check]) -> str:
    """How many findings of each kind."""
    from dbrag.interfaces.cli.render import count

    number = {status: sum(c.status == status for c in found) for status in ("warning", "problem")}
    fine = len(found) - sum(number.values())
    return (
        f"{fine} ok, {count(number['warning'], 'warning')}, {count(number['problem'], 'problem')}"
    )


def next_flags(run: Run) -> str:
    """The flags of this call for the next command, with a blank before; no password."""
    from dbrag.textsafe import without_password

    words: list[str] = []
    for source in run.sources:
        words += ["-s", without_password(source) if "://" in source else source]
    for name in run.schemas:
        words += ["--schema", name]
    for flag in ("index", "config"):
        if value := getattr(run, flag):
            words += [f"--{flag}", value]
    return " " + shlex.join(words) if words else ""
