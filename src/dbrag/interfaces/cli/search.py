"""``dbrag search``."""

from __future__ import annotations

import click

from dbrag.errors import UsageError
from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.ask import read_text
from dbrag.interfaces.cli.options import ListCommand, Run, common_options, pass_run


@click.command(cls=ListCommand, short_help="Rank the tables for a question.")
@click.argument("question")
@click.option("--top", type=click.IntRange(1), metavar="N", help="Tables shown (default 5).")
@click.option("--k", type=click.IntRange(1), metavar="N", help="Tables ranked (default 50).")
@click.option("--rerank/--no-rerank", default=None, help="Let the chat model rerank.")
@click.option(
    "--tables", multiple=True, metavar="T …", help="Only these tables; several may follow."
)
@click.option(
    "--exclude", multiple=True, metavar="T …", help="Never these tables; several may follow."
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
    tables: tuple[str, ...],
    exclude: tuple[str, ...],
    explain: bool,
) -> int:
    """Rank the tables for QUESTION; no language model is asked."""
    from dbrag.interfaces.cli.notices import Events

    question = run.asked = read_text(question, "question")
    if rerank:
        raise UsageError("reranking by the chat model is not built yet", "leave --rerank out")
    with Events(run) as events, run.database() as database:
        result = database.search(
            question, top=top, k=k, tables=tables, exclude=exclude, on_event=events
        )
    if run.json:
        output.emit_json(result.to_dict())
    else:
        from dbrag.interfaces.cli.render import search_lines

        output.emit("\n".join(search_lines(result, explain=explain or run.verbose)))
    return 0
