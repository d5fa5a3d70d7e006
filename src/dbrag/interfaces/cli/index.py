"""``dbrag index`` and ``dbrag status``."""

from __future__ import annotations

import click

from dbrag.errors import SourceError
from dbrag.interfaces.cli import complete, output
from dbrag.interfaces.cli.ask import tell_remote
from dbrag.interfaces.cli.options import Run, common_options, pass_run


@click.command(short_help="Index what is new or changed in the sources.")
@click.option(
    "--drop",
    metavar="NAME",
    shell_complete=complete.sources,
    help="Remove one source from the index.",
)
@click.option("--force", is_flag=True, help="Redo what is unchanged, too.")
@common_options
@pass_run
def index(run: Run, drop: str | None, force: bool) -> int:
    """Read, profile and index what is new or changed in the sources."""
    from dbrag.interfaces.cli.notices import LiveLine, index_text
    from dbrag.types import SCHEMA_VERSION

    if drop is not None:
        _drop(run, drop)
        if run.json:
            output.emit_json({"schema": SCHEMA_VERSION, "dropped": drop})
        else:
            output.emit(f"{drop} is no longer in the index; the source itself is untouched")
        return 0
    with run.database() as database:
        tell_remote(database.settings, chat=False)
        live = LiveLine(run)
        try:
            report = database.index(progress=lambda p: live.show(index_text(p)), force=force)
        finally:
            live.clear()
    if run.json:
        output.emit_json(report.to_dict())
    else:
        from dbrag.interfaces.cli.render import index_lines

        output.emit("\n".join(index_lines(report)))
    # What was indexed before may stay, but the command did nothing: a cron job has to know.
    done = [source for source in report.sources if source.status != "skipped"]
    return 0 if done or not report.sources else SourceError.exit_code


def _drop(run: Run, name: str) -> None:
    from dbrag.index.build import drop_source
    from dbrag.index.manifest import read_manifest
    from dbrag.scope import index_dir

    try:
        with run.database() as database:
            database.drop(name)
    except SourceError:  # what cannot be opened any more is just what one takes out
        settings = run.settings()
        directory = index_dir(settings, settings.sources)
        if read_manifest(directory) is None:
            raise
        drop_source(directory, name)


@click.command(short_help="What is indexed, how old and how big it is.")
@common_options
@pass_run
def status(run: Run) -> int:
    """What is indexed, how old and how big it is, what is stale or sampled."""
    with run.database() as database:
        state = database.status()
    if run.json:
        output.emit_json(state)
    else:
        from dbrag.interfaces.cli.render import status_lines

        output.emit("\n".join(status_lines(state)))
    return 0
