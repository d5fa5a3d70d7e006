"""Values of any engine, exactly: as JSON and as text."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

_EXACT_INTEGER = 2**53
_PLAIN_EXPONENT = 200_000
"""Decimals beyond this power of ten keep their exponent; PostgreSQL ends at 131,072."""


def json_value(value: object) -> object:
    """A cell as JSON without loss: what JSON cannot hold exactly becomes a string.

    Decimals (plain digits, no exponent), integers beyond 2^53, UUIDs, dates and times
    (ISO 8601) and durations (``-P1DT2H0.5S``) become text, binary becomes base64, NaN
    and infinities (no JSON) become their names. Arrays and objects follow the same
    rules inside.
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= _EXACT_INTEGER else _plain(Decimal(value))
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return _plain(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return duration_text(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode("ascii")
        case Mapping():
            return _json_mapping(value)
        case UUID():
            return str(value)
        case Set():
            return sorted((json_value(v) for v in value), key=str)
        case Sequence():
            return [json_value(v) for v in value]
        case _:
            return str(value)


def text_value(value: object) -> str:
    """A cell that is not NULL as one text, exactly; nested ones and truth values as in JSON."""
    if isinstance(value, str):
        return value
    plain = json_value(value)
    if isinstance(plain, bool | list | dict):
        return json.dumps(plain, ensure_ascii=False)
    return str(plain)


def duration_text(value: timedelta) -> str:
    """ISO 8601 in days, hours, minutes and seconds, to the microsecond: ``P1DT2H3M4.5S``."""
    total = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    sign, total = ("-", -total) if total < 0 else ("", total)
    seconds, micro = divmod(total, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    fraction = f".{micro:06d}".rstrip("0") if micro else ""
    parts = [f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n]
    if seconds or fraction or not (parts or days):
        parts.append(f"{seconds}{fraction}S")
    day = f"{days}D" if days else ""
    return f"{sign}P{day}{'T' if parts else ''}{''.join(parts)}"


def _plain(value: Decimal) -> str:
    if value.is_finite() and abs(int(value.as_tuple().exponent)) <= _PLAIN_EXPONENT:
        return format(value, "f")
    return str(value)


def _json_mapping(value: Mapping[object, object]) -> object:
    """An object; pairs, where two keys have the same text and one would get lost."""
    pairs = [(text_value(k) if k is not None else "null", json_value(v)) for k, v in value.items()]
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    return [{"key": json_value(k), "value": json_value(v)} for k, v in value.items()]
