"""``dbrag joins``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dbrag.errors import UsageError
from dbrag.interfaces.cli import complete, output
from dbrag.interfaces.cli.options import Run, common_options, pass_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbrag.catalog.joins import JoinEdge
    from dbrag.types import AnswerWarning


@click.command(short_help="List the joins, declared and inferred.")
@click.argument("tables", metavar="[TABLE]…", nargs=-1, shell_complete=complete.tables)
@click.option("--declared", is_flag=True, help="Only declared keys and those of dbrag.toml.")
@click.option("--inferred", is_flag=True, help="Only joins inferred from values and names.")
@common_options
@pass_run
def joins(run: Run, tables: tuple[str, ...], declared: bool, inferred: bool) -> int:
    """List the joins of the tables (default: all), each with its confidence and evidence."""
    from dbrag import scope
    from dbrag.interfaces.cli.ask import tell_remote
    from dbrag.interfaces.cli.notices import Events

    if declared and inferred:
        raise UsageError("--declared and --inferred exclude each other", "leave both out for all")
    with Events(run) as events, run.database() as database:
        tell_remote(database.settings, chat=False)
        index = database.opened_index(events)
        refs = {scope.resolve(index.catalog, name) for name in tables}
        names = {source.name for source in database.sources}
        found = [
            edge
            for edge in index.joins.edges
            if edge.left.source in names
            and (not refs or edge.left in refs or edge.right in refs)
            and (edge.declared if declared else not (inferred and edge.declared))
        ]
        warnings = index.join_problems
    if run.json:
        output.emit_json(joins_json(found, warnings))
    else:
        output.emit("\n".join(joins_lines(found, warnings)))
    return 0


def joins_json(edges: Iterable[JoinEdge], warnings: Iterable[AnswerWarning]) -> dict[str, Any]:
    """The JSON of ``dbrag joins``."""
    from dbrag.types import SCHEMA_VERSION

    return {
        "schema": SCHEMA_VERSION,
        "joins": [
            {
                "left": edge.left.to_dict(),
                "left_columns": list(edge.left_columns),
                "right": edge.right.to_dict(),
                "right_columns": list(edge.right_columns),
                "declared": edge.declared,
                "confidence": edge.confidence,
                "evidence": edge.evidence,
            }
            for edge in edges
        ],
        "warnings": [warning.to_dict() for warning in warnings],
    }


def joins_lines(edges: Sequence[JoinEdge], warnings: Iterable[AnswerWarning]) -> list[str]:
    """A table for people: declared joins first, then the most confident."""
    from dbrag.interfaces.cli.render import terminal_width
    from dbrag.interfaces.cli.tables import aligned, cell_text

    lines = ["no joins are known"]
    if edges:
        rows = [
            (
                str(edge),
                "" if edge.declared else edge.percent,
                edge.evidence or "declared",
            )
            for edge in edges
        ]
        lines = aligned(("join", "sure", "why"), rows, width=terminal_width())
    return lines + [f"warning ({w.code}): {cell_text(w.message)}" for w in warnings]
