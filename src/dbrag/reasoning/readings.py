"""Two readings: when votes split, the other meaning is told with its own answer.

The difference is put into words from the accounts of both programs, so that whoever
asked can say which of them was meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbrag.reasoning.attempt import Attempt
from dbrag.reasoning.evidence import answer_text
from dbrag.reasoning.explanation import Account, account
from dbrag.reasoning.vote import Tally
from dbrag.types import Program, Reading, Table, TableRef

MOST_READINGS = 2
"""Readings told beside the answer."""
_MOST_TEXTS = 3

_WORDS: Mapping[str, tuple[str, str, str]] = {
    "tables": ("reads {} instead of {}", "also reads {}", "does not read {}"),
    "joins": ("joins {} instead of {}", "also joins {}", "does not join {}"),
    "filters": (
        "keeps what fulfils: {}; instead of: {}",
        "keeps only what fulfils: {}",
        "does not ask that {}",
    ),
    "groups": ("groups by {} instead of {}", "groups by {}", "does not group by {}"),
    "results": ("shows {} instead of {}", "also shows {}", "does not show {}"),
    "sets": ("differs in: {}; instead of: {}", "also: {}", "without: {}"),
    "order": ("orders by {} instead of {}", "orders by {}", "does not order by {}"),
    "limit": ("shows {} instead of {}", "shows {} only", "shows all rows, not {}"),
    "columns": ("reads {} instead of {}", "also reads {}", "does not read {}"),
}
"""Part of an account → how a change of it, an addition and an omission are said."""


def readings_of(
    tally: Tally, attempts: Sequence[Attempt], by_ref: Mapping[TableRef, Table]
) -> tuple[Reading, ...]:
    """The readings that have as many votes as the answer, the earliest first.

    Args:
        attempts: what the positions of the tally mean; each has a program and a result.
    """
    winner = attempts[tally.winners[0]].program
    found = []
    for rivals in tally.rivals[:MOST_READINGS]:
        attempt = attempts[rivals[0]]
        if winner is None or attempt.program is None or attempt.execution is None:
            continue
        told = difference(_account(winner, by_ref), _account(attempt.program, by_ref))
        text = answer_text(attempt.execution)
        found.append(Reading(text, told, attempt.program, attempt.execution, len(rivals)))
    return tuple(found)


def difference(first: Account, other: Account) -> str:
    """What the other program does that the first does not, and the other way round."""
    before, after = _texts(first), _texts(other)
    said: list[str] = []
    for part, (changed, added, left_out) in _WORDS.items():
        if part == "columns" and said:
            continue  # told with the parts that read them
        if part == "joins" and before["tables"] != after["tables"]:
            continue
        if part == "order" and _sorts_alike(before, after):
            continue
        gained = [text for text in after[part] if text not in before[part]]
        lost = [text for text in before[part] if text not in after[part]]
        if gained and lost:
            said.append(changed.format(_few(gained), _few(lost)))
        elif gained:
            said.append(added.format(_few(gained)))
        elif lost:
            said.append(left_out.format(_few(lost)))
    return "; ".join(said) or "does the same in other words: compare the SQL"


def _sorts_alike(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> bool:
    """Whether both sort in the same directions by what each shows: that is told once."""

    def shown(told: Mapping[str, Sequence[str]]) -> list[str] | None:
        pairs = [text.rpartition(", ") for text in told["order"]]
        known = all(any(key in result for result in told["results"]) for key, _, _ in pairs)
        return [direction for _, _, direction in pairs] if known else None

    one = shown(before)
    return one is not None and one == shown(after) and before["results"] != after["results"]


def _account(program: Program, by_ref: Mapping[TableRef, Table]) -> Account:
    return account(program, [by_ref[ref] for ref in program.tables if ref in by_ref])


def _texts(told: Account) -> dict[str, tuple[str, ...]]:
    return {
        "tables": tuple(str(ref) for ref, _ in told.tables),
        "joins": told.joins,
        "filters": told.filters,
        "groups": told.groups,
        "results": told.results,
        "sets": told.sets,
        "order": told.order,
        "limit": (told.limit,) if told.limit else (),
        "columns": tuple(f"{ref}.{name}" for ref, name in told.columns),
    }


def _few(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_TEXTS
    return ", ".join([*texts[:_MOST_TEXTS], *([f"{more:,} more"] if more > 0 else [])])
