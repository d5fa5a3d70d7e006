"""Columns of values as Arrow, without rounding: the type that holds them all, or text.

Text it is for ``uuid``, for ``json`` (nested values), for ``decimal`` (more than 76
digits, NaN) and for ``mixed`` (kinds that no one Arrow type holds); see ``text_value``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dbrag.values import text_value

if TYPE_CHECKING:
    import pyarrow as pa

AS_TEXT = frozenset({"uuid", "json", "decimal", "mixed"})
"""Types of result columns that are text in Arrow."""

_INT64 = 2**63
_EXACT_DOUBLE = 2**53
_DIGITS_128 = 38
_DIGITS_256 = 76
_MAX_DURATION = timedelta(microseconds=_INT64 - 1)

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    # In order: a bool is an int, a datetime is a date.
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (Decimal, "decimal"),
    (str, "string"),
    ((bytes, bytearray, memoryview), "binary"),
    (datetime, "datetime"),
    (date, "date"),
    (time, "time"),
    (timedelta, "duration"),
    (UUID, "uuid"),
    ((Mapping, Set), "json"),
    (Sequence, "list"),
)
_SIMPLE = {
    "bool": "bool",
    "float": "double",
    "string": "string",
    "binary": "binary",
    "date": "date32[day]",
    "uuid": "uuid",
    "json": "json",
    "mixed": "mixed",
}


def arrow_type(values: Sequence[Any]) -> str:
    """Text of the Arrow type that holds ``values`` exactly, or a name of ``AS_TEXT``.

    Whole and floating numbers together are "double" if no whole number loses a digit;
    whole numbers and decimals are decimals. A zone is kept where all times share it.
    """
    types = set(map(type, values)) - {type(None)}
    kinds = {_kind(type_) for type_ in types}
    if not kinds:
        return "null"
    present = [v for v in values if v is not None]
    if kinds == {"int", "float"} and all(map(_exact_as_double, present)):
        return "double"
    if kinds == {"int", "decimal"}:
        return _decimal_type(present)
    if len(kinds) > 1:
        return "json" if kinds <= {"json", "list"} else "mixed"
    (kind,) = kinds
    return _SIMPLE.get(kind) or _DETAILED[kind](present)


def arrow_table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows as an Arrow table ``[n_rows, n_columns]``; ``columns`` are (name, type), names
    may repeat."""
    import pyarrow

    arrays = [
        arrow_array(pyarrow, [row[i] for row in rows], type_)
        for i, (_, type_) in enumerate(columns)
    ]
    return pyarrow.Table.from_arrays(arrays, names=[name for name, _ in columns])


def arrow_array(pa: Any, values: Sequence[Any], type_text: str) -> pa.Array:
    """Values as an Arrow array of that type; as text where it does not hold them. Never raises."""
    if type_text not in AS_TEXT:
        try:
            convert = _converter(type_text)
            ready = values if convert is None else [v if v is None else convert(v) for v in values]
            return pa.array(ready, type=_parsed(pa, type_text))
        except (pa.ArrowException, ValueError, TypeError, ArithmeticError, AttributeError):
            pass  # text holds everything
    texts = [None if v is None else text_value(v) for v in values]
    try:
        return pa.array(texts, pa.string())
    except ValueError:  # half a surrogate pair, of a damaged text
        safe = [t if t is None else t.encode("utf-8", "backslashreplace").decode() for t in texts]
        return pa.array(safe, pa.string())


def _kind(type_: type) -> str:
    return next((name for base, name in _KINDS if issubclass(type_, base)), "mixed")


def _exact_as_double(value: Any) -> bool:
    if isinstance(value, float) or -_EXACT_DOUBLE <= value <= _EXACT_DOUBLE:
        return True
    try:
        return bool(int(float(value)) == value)
    except OverflowError:
        return False


def _int_type(values: Sequence[int]) -> str:
    if min(values) >= -_INT64 and max(values) < _INT64:
        return "int64"
    return _decimal_type((min(values), max(values)))


def _decimal_type(values: Sequence[Any]) -> str:
    whole, scale = 1, 0
    for value in values:
        number = value if isinstance(value, Decimal) else Decimal(value)
        if not number.is_finite():
            return "decimal"
        if number:
            whole = max(whole, number.adjusted() + 1)
        scale = max(scale, -int(number.as_tuple().exponent))
    return _decimal_of(whole + scale, scale)


def _decimal_of(precision: int, scale: int) -> str:
    if precision > _DIGITS_256:
        return "decimal"
    if precision > _DIGITS_128:
        return f"decimal256({precision}, {scale})"
    # Always the whole width: the type of a query's column does not change with its rows.
    return f"decimal128({_DIGITS_128}, {scale})"


def _datetime_type(values: Sequence[datetime]) -> str:
    zones = {_zone(value) for value in values}
    if len(zones) > 1 or None in zones:
        return "mixed"
    (zone,) = zones
    return f"timestamp[us, tz={zone}]" if zone else "timestamp[us]"


def _zone(value: datetime) -> str | None:
    """Arrow's name of the zone, "" without one, None where Arrow has no name for it."""
    offset = value.utcoffset()
    if offset is None:
        return ""
    try:
        value.astimezone(UTC)
    except OverflowError:  # the first or last hours of the calendar
        return None
    key = getattr(value.tzinfo, "key", None)
    if isinstance(key, str) and key:
        return key
    minutes, rest = divmod(offset, timedelta(minutes=1))
    if rest:
        return None
    hours, minutes = divmod(abs(minutes), 60)
    return f"{'-' if offset < timedelta(0) else '+'}{hours:02d}:{minutes:02d}" if offset else "UTC"


def _time_type(values: Sequence[time]) -> str:
    return "time64[us]" if all(value.tzinfo is None for value in values) else "mixed"


def _duration_type(values: Sequence[timedelta]) -> str:
    return "duration[us]" if max(map(abs, values)) <= _MAX_DURATION else "mixed"


def _list_type(values: Sequence[Sequence[Any]]) -> str:
    inner = arrow_type([item for value in values for item in value])
    return "json" if inner in AS_TEXT else f"list<item: {inner}>"


_DETAILED: dict[str, Callable[[Any], str]] = {
    "int": _int_type,
    "decimal": _decimal_type,
    "datetime": _datetime_type,
    "time": _time_type,
    "duration": _duration_type,
    "list": _list_type,
}


def _parsed(pa: Any, text: str) -> pa.DataType:
    """The type of a text of ``arrow_type``.

    Raises:
        ValueError: it is none.
    """
    if match := re.fullmatch(r"decimal(128|256)\((\d+), (\d+)\)", text):
        make = pa.decimal128 if match[1] == "128" else pa.decimal256
        return make(int(match[2]), int(match[3]))
    if match := re.fullmatch(r"timestamp\[us, tz=(.+)\]", text):
        return pa.timestamp("us", tz=match[1])
    if match := re.fullmatch(r"list<item: (.+)>", text):
        return pa.list_(_parsed(pa, match[1]))
    return pa.type_for_alias(text)


def _converter(text: str) -> Callable[[Any], Any] | None:
    """What a value needs before Arrow takes it as that type."""
    if match := re.fullmatch(r"list<item: (.+)>", text):
        inner = _converter(match[1])
        if inner is None:
            return list
        return lambda value: [v if v is None else inner(v) for v in value]
    if text.startswith("decimal"):
        return Decimal
    if text.startswith("timestamp[us, tz="):
        return lambda value: value.astimezone(UTC)
    return {"binary": bytes, "double": float}.get(text)
