"""Doubts about a program that has run: what its writer should look at once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbrag.reasoning.fan_trap import doubled_aggregate
from dbrag.reasoning.missing_values import missing_values
from dbrag.types import Execution, Program, Table

if TYPE_CHECKING:
    from dbrag.index.values import ValueIndex
    from dbrag.settings import Settings
    from dbrag.sources.base import Source


def doubt_of(
    program: Program,
    execution: Execution,
    tables: Sequence[Table],
    source: Source,
    settings: Settings,
    values: ValueIndex | None = None,
) -> str | None:
    """A sentence for a repair (``prompts.repair_request``), None where there is no doubt.

    Empty results are doubted where a compared text does not occur, others where an aggregate
    goes over rows that a join repeats. The program may be right all the same.

    Args:
        tables: all of the source that may be read.
        values: says in which columns a text occurs.

    Raises:
        IndexUnusable: the index is damaged.
    """
    missing = missing_values(program, execution, tables, source, settings, values)
    if missing is not None:
        return (
            f"That statement found nothing. {missing}. "
            "Compare with a value that occurs; if it is right, repeat the statement."
        )
    doubled = doubled_aggregate(program, tables, source, settings)
    return None if doubled is None else f"{doubled}; else repeat the statement."
