"""What a pair of columns looks like, in numbers: the ground for calling it a join."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dbrag.catalog.candidates import ColumnAt
from dbrag.catalog.names import MEASURES, ROLES, same, telling
from dbrag.catalog.sketches import containment_in_table, has_telling_values

LEAST_CONTAINED = 0.5
"""Less of the values than this in the key, and it is no join."""

_ABBREVIATED = 0.7
_CONTAINED = 0.9
_SMALL = 4


@dataclass(frozen=True, slots=True)
class Pair:
    """``column`` may refer to ``key``; ``contained`` is the share of its values found there.

    ``features`` without those that compare it with other pairs of the column.
    """

    column: ColumnAt
    key: ColumnAt
    contained: float | None
    features: dict[str, float]

    @property
    def name_fit(self) -> float:
        """How well the column's name names the key."""
        return self.features["matched"] + 0.3 * self.features["table_in"]


def compare(column: ColumnAt, key: ColumnAt) -> Pair | None:
    """All that one pair shows by itself, every feature 0..1; None if too little is contained."""
    contained = containment_in_table(column.column, key.column, key.table.share)
    if contained is not None and contained < LEAST_CONTAINED:
        return None
    c = 0.5 if contained is None else contained
    own_table = column.table.ref == key.table.ref
    names = _names(column, key)
    distinct, of = column.column.distinct, key.column.distinct
    many = min(math.log2(1 + distinct), 10) / 10
    cover = min(1.0, distinct / of) if of else 0.0
    text = float(column.column.kind != "integer")
    telling_numbers = has_telling_values(column.column) and not text
    return Pair(
        column,
        key,
        contained,
        names
        | {
            "contained": c,
            "partly": float(c < _CONTAINED),
            "unknown": float(contained is None),
            "scattered": float(telling_numbers) * many * c,
            "named_values": float(has_telling_values(column.column)) * many * c * names["full"],
            "text": text,
            "cover": cover,
            "to_primary": float(key.is_primary),
            "small": float(of < _SMALL),
            "self": float(own_table),
            "role": float(own_table and key.is_primary and not ROLES.isdisjoint(column.words)),
            "sounds_like_key": float(column.sounds_like_key),
            "to_key_name": float(key.sounds_like_key),
        },
    )


def _names(column: ColumnAt, key: ColumnAt) -> dict[str, float]:
    own = telling(column.words)
    theirs, their_table = telling(key.words), telling(key.table_words)
    matched = _share(own, their_table + theirs)
    in_name = _share(their_table, column.words)
    about_itself = own_key = 0.0
    if column.table.ref != key.table.ref:
        about_itself = _share(own, telling(column.table_words)) * (1 - matched)
        if column.is_primary and column.words != key.words:
            own_key = _share(own, telling(column.table_words))
    equal = column.words == key.words
    return {
        "matched": matched,
        "table_in": in_name,
        "full": float(matched >= 1) * in_name,
        "same_name": float(equal and bool(own)),
        "same_generic": float(equal and not own),
        "generic": float(not own),
        "measure": float(column.words[-1] in MEASURES) if column.words else 0.0,
        "suffix": float(column.words[-1:] == key.words[-1:]),
        "own": about_itself,
        "own_key": own_key,
        "key_of_table": float(not theirs or _share(theirs, their_table) >= _ABBREVIATED),
        "key_unmatched": 1 - _share(theirs, column.words + their_table) if theirs else 0.0,
    }


def _share(found: Sequence[str], among: Sequence[str]) -> float:
    """How many of the words are among others; an abbreviation counts 0.7."""
    if not found:
        return 0.0
    known = set(among)
    return sum(
        1.0 if w in known else _ABBREVIATED * any(same(w, o) for o in known) for w in found
    ) / len(found)


def beside_rivals(pairs: Sequence[Pair]) -> list[dict[str, float]]:
    """Features of all pairs of one column, with what they are beside each other."""
    best = max((pair.name_fit for pair in pairs), default=0.0)
    alone = sum(pair.name_fit >= best for pair in pairs)
    features = []
    for pair in pairs:
        first = (1 / alone) if pair.name_fit >= best else 0.0
        rivals = math.log2(len(pairs)) * (1 - first)
        features.append(pair.features | {"best_name": first, "rivals": rivals})
    return features
