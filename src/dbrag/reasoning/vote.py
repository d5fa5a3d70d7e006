"""Voting by executed result.

Programs vote with what they computed, not with their text: two programs agree when
their results are the same bag of rows under one order of columns, float noise aside.
Failed programs have no vote; empty and all-zero results lose against any other
(value-aware voting), since for a small model they mostly mean a wrong filter. A vote
counts as much as its program is likely to be right.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbrag.types import Execution


def cell_key(value: Any) -> str:
    """A cell as text in which equal values are equal: 3, 3.0 and Decimal("3.00") agree.

    Numbers keep six significant digits; integers are exact.
    """
    match value:
        case None:
            return "∅"
        case bool():
            return f"n{int(value)}"
        case int():
            return f"n{value}"
        case float() | Decimal():
            number = float(value)
            if math.isfinite(number) and number == int(number) and abs(number) < 2**53:
                return f"n{int(number)}"
            return f"n{number:.6g}"
        case bytes():
            return f"b{hashlib.sha256(value).hexdigest()}"
        case _:
            return f"s{value}"


def result_key(execution: Execution) -> str:
    """A hash that is equal for results with the same rows, whatever their order or
    that of their columns.

    Columns are ordered by their sorted cells; two columns with equal cells in another
    alignment may part equal results, which costs a vote and never joins different ones.
    """
    # with the length of each, lest a cell that holds the separator joins its neighbour
    keyed = [[_framed(cell_key(value)) for value in row] for row in execution.rows]
    width = len(execution.columns)
    columns = sorted(range(width), key=lambda i: sorted(row[i] for row in keyed))
    rows = sorted("\x1f".join(row[i] for i in columns) for row in keyed)
    digest = hashlib.sha256(f"{width}\x1e".encode())
    for row in rows:
        digest.update(row.encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()


def _framed(key: str) -> str:
    return f"{len(key)}:{key}"


def is_hollow(execution: Execution) -> bool:
    """True for a result that carries nothing: no rows, or only NULLs and zeros."""
    return all(value is None or value == 0 for row in execution.rows for value in row)


@dataclass(frozen=True, slots=True)
class Ballot:
    """One program's vote: the key of its result, whether that carries anything, and how
    likely the program is right (``reasoning/verify.py``)."""

    key: str
    hollow: bool
    likelihood: float = 1.0


@dataclass(frozen=True, slots=True)
class Tally:
    """The outcome: positions of the winning ballots, best first, and the agreement.

    ``rivals`` are the other counted groups that are as large or larger, the strongest first.
    """

    winners: tuple[int, ...]
    agreement: float
    rivals: tuple[tuple[int, ...], ...] = ()

    @property
    def split(self) -> bool:
        """Whether another result has as many votes."""
        return bool(self.rivals)


def tally(ballots: Sequence[Ballot]) -> Tally | None:
    """Count: the group whose programs are likeliest together wins, on a tie the earliest.

    Hollow groups count only when there is no other. ``agreement`` is the winners'
    share of all ballots.
    """
    if not ballots:
        return None
    solid = [i for i, ballot in enumerate(ballots) if not ballot.hollow]
    groups: dict[str, list[int]] = {}
    for i in solid or range(len(ballots)):
        groups.setdefault(ballots[i].key, []).append(i)
    weight = {key: sum(ballots[i].likelihood for i in group) for key, group in groups.items()}
    ranked = sorted(groups, key=lambda key: (-weight[key], groups[key][0]))
    best = sorted(groups[ranked[0]], key=lambda i: (-ballots[i].likelihood, i))
    rivals = tuple(tuple(groups[key]) for key in ranked[1:] if len(groups[key]) >= len(best))
    return Tally(tuple(best), len(best) / len(ballots), rivals)


def decided(ballots: Sequence[Ballot], outstanding: int) -> bool:
    """True when the ballots still to come cannot change the winner, were they all certain."""
    solid: dict[str, float] = {}
    for ballot in ballots:
        if not ballot.hollow:
            solid[ballot.key] = solid.get(ballot.key, 0.0) + ballot.likelihood
    weights = sorted(solid.values(), reverse=True)[:2]
    return bool(weights) and weights[0] > sum(weights[1:]) + outstanding
