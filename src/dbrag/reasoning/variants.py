"""How the programs that vote are sampled."""

from __future__ import annotations

from dataclasses import dataclass

from dbrag.reasoning.select import Selection
from dbrag.types import TableRef

VOTE_TEMPERATURE = 0.7


@dataclass(frozen=True, slots=True)
class Variant:
    """How one vote is sampled: which tables the model sees, and how freely it writes."""

    tables: tuple[TableRef, ...]
    temperature: float
    seed: int


def plan_votes(
    selection: Selection, votes: int, temperature: float = VOTE_TEMPERATURE
) -> tuple[Variant, ...]:
    """The first vote is greedy on the selected tables; then greedy ones on the other
    table sets, since different tables err differently; then ones sampled at ``temperature``."""
    variants = [Variant(selection.tables, 0.0, 0)]
    for tables in selection.alternatives[: max(0, (votes - 1) // 2)]:
        variants.append(Variant(tables, 0.0, 0))
    while len(variants) < votes:
        variants.append(Variant(selection.tables, temperature, len(variants)))
    return tuple(variants[:votes])
