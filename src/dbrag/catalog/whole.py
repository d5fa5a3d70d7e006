"""What an engine knows of a whole table, put into the profile of a part of it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbrag.sources.base import ColumnStatistics
    from dbrag.types import ColumnProfile


def of_whole(
    profile: ColumnProfile, known: ColumnStatistics | None, total: int | None, rows_read: int
) -> ColumnProfile:
    """The profile with the engine's facts instead of those of the rows that were read.

    An engine's own extremes may come from a sample, too: then the wider ones stay.

    Args:
        total: rows of the whole table, counted or estimated; None leaves counts alone.
        rows_read: rows that the profile saw.
    """
    if known is None:
        return profile
    facts: dict[str, Any] = {}
    if known.distinct is not None and known.distinct >= profile.distinct:
        facts["distinct"] = known.distinct
    if total is not None and total >= rows_read:
        if known.null_share is not None:
            facts["nulls"] = max(profile.nulls, round(known.null_share * total))
        if known.frequent:
            facts["frequent"] = tuple(
                (value, round(share * total)) for value, share in known.frequent
            )
    minimum = _wider(profile.minimum, known.minimum, -1)
    if minimum is not None:
        facts["minimum"] = minimum
    maximum = _wider(profile.maximum, known.maximum, 1)
    if maximum is not None:
        facts["maximum"] = maximum
    return replace(profile, **facts, whole=tuple(sorted(facts)))


def _wider(seen: str | None, told: str | None, direction: int) -> str | None:
    """What the engine told, unless what was seen lies beyond it."""
    if seen is None or told is None:
        return told
    a, b = _ordered(seen), _ordered(told)
    if type(a) is not type(b):
        return None
    return told if (b >= a if direction > 0 else b <= a) else None


def _ordered(text: str) -> Any:
    """A number where the text is one; dates as ISO texts sort by themselves."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return number if number.is_finite() else text
