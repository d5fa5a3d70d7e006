"""``dbrag search``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dbrag.interfaces.cli import complete, output
from dbrag.interfaces.cli.ask import read_text, tell_remote
from dbrag.interfaces.cli.options import (
    ListCommand,
    Run,
    common_options,
    membership_option,
    pass_run,
)

if TYPE_CHECKING:
    from dbrag.settings import Settings


@click.command(cls=ListCommand, short_help="Rank the tables for a question.")
@click.argument("question", shell_complete=complete.after_list)
@click.option("--top", type=click.IntRange(1), metavar="N", help="Tables shown (default 5).")
@click.option("--k", type=click.IntRange(1), metavar="N", help="Tables ranked (default 50).")
@click.option(
    "--rerank/--no-rerank", default=None, help="Let the chat model order the best tables anew."
)
@membership_option
@click.option(
    "--tables",
    multiple=True,
    metavar="T …",
    shell_complete=complete.tables,
    help="Only these tables; several may follow.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="T …",
    shell_complete=complete.tables,
    help="Never these tables; several may follow.",
)
@click.option("--explain", is_flag=True, help="Show the parts of each score and the rows.")
@common_options
@pass_run
def search(
    run: Run,
    question: str,
    top: int | None,
    k: int | None,
    rerank: bool | None,
    membership: bool | None,
    tables: tuple[str, ...],
    exclude: tuple[str, ...],
    explain: bool,
) -> int:
    """Rank the tables for QUESTION.

    A language model is asked only with --rerank, or where the setting rerank says so.
    """
    from dbrag.interfaces.cli.notices import Events

    question = run.asked = read_text(question, "question")
    with Events(run) as events, run.database(membership=membership) as database:
        tell_remote(database.settings, chat=may_rerank(database.settings, rerank))
        result = database.search(
            question,
            top=top,
            k=k,
            tables=tables,
            exclude=exclude,
            on_event=events,
            rerank=rerank,
        )
    if run.json:
        output.emit_json(result.to_dict())
    else:
        from dbrag.interfaces.cli.render import search_lines

        output.emit("\n".join(search_lines(result, explain=explain or run.verbose)))
    return 0


def may_rerank(settings: Settings, rerank: bool | None) -> bool:
    """Whether a search may ask the chat model: by the flag, else by the setting."""
    if rerank is not None:
        return rerank
    return settings.rerank == "on" or (settings.rerank == "auto" and not settings.offline)
