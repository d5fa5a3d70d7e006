"""Cells of MySQL and MariaDB as exact Python values.

====================================  =====================================================
``DECIMAL``                           ``Decimal``
whole numbers, ``YEAR``, ``BIT(n)``   ``int`` (a ``TINYINT(1)`` is a number, as in the engine)
``FLOAT``, ``DOUBLE``                 ``float``; of a ``FLOAT`` the shortest that is the same
``DATE``, ``DATETIME``                ``date``, ``datetime``; the server's own text for what
                                      no calendar has: ``0000-00-00``, ``2020-02-31``
``TIMESTAMP``                         ``datetime`` in UTC (sessions run in UTC)
``TIME``                              the server's text: ``-838:59:59.000001`` is none of a day
text, ``ENUM``, ``SET``, ``JSON``,    ``str``; bytes that are no UTF-8 become U+FFFD
``UUID``, ``INET4``, ``INET6``
binary, ``BLOB``, ``GEOMETRY``        ``bytes``
====================================  =====================================================
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_BINARY = 63
"""Number of the character set of what is no text."""

# Numbers of the protocol (pymysql.constants.FIELD_TYPE).
_INTEGERS = frozenset({1, 2, 3, 8, 9, 13})
_FLOATS = frozenset({4, 5})
_DECIMALS = frozenset({0, 246})
_TIMESTAMP, _DATETIME, _DATE, _TIME, _BIT, _JSON = 7, 12, 10, 11, 16, 245
_DATES = frozenset({_DATE, 14})

_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?")


def converter(kind: int, charset: int) -> Callable[[bytes], Any]:
    """What makes a value of the bytes of one column.

    Args:
        kind: the type's number in the protocol.
        charset: the number of its character set; 63 is binary.
    """
    if kind in _INTEGERS:
        return int
    if kind in _FLOATS:
        return float
    if kind in _DECIMALS:
        return _decimal
    if kind in _DATES:
        return day
    if kind == _DATETIME:
        return moment
    if kind == _TIMESTAMP:
        return instant
    if kind == _BIT:
        return _bits
    if kind in (_TIME, _JSON) or charset != _BINARY:
        return _text
    return bytes


def day(raw: bytes) -> date | str:
    """A ``DATE``; its text if it is no day of the calendar."""
    text = _text(raw)
    match = _MOMENT.fullmatch(text)
    try:
        return date(*map(int, match.group(1, 2, 3))) if match else text
    except ValueError:
        return text


def moment(raw: bytes) -> datetime | str:
    """A ``DATETIME``; its text if it is no moment of the calendar."""
    text = _text(raw)
    match = _MOMENT.fullmatch(text)
    if match is None or match[4] is None:
        return text
    try:
        year, month, day_, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
        micro = int((match[7] or "").ljust(6, "0"))
        return datetime(year, month, day_, hour, minute, second, micro)
    except ValueError:
        return text


def instant(raw: bytes) -> datetime | str:
    """A ``TIMESTAMP`` of a session in UTC."""
    value = moment(raw)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _decimal(raw: bytes) -> Decimal:
    return Decimal(raw.decode("ascii"))


def _bits(raw: bytes) -> int:
    return int.from_bytes(raw, "big")
