"""Results in MySQL's binary protocol, for columns of type ``FLOAT``.

As text the servers send six digits of a ``FLOAT``: 16777216 comes as 16777200, and
123456.79 as 123457. In a prepared statement the four bytes themselves come. So each
statement is prepared, which tells its columns without running it; one with a ``FLOAT``
among them is run that way.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from dbrag.sources.servers.mysql_values import converter

if TYPE_CHECKING:
    from collections.abc import Callable

_PREPARE, _EXECUTE, _CLOSE = 0x16, 0x17, 0x19
# Killed, out of time (MariaDB, MySQL), waited too long for a lock.
_STOPPED = frozenset({1317, 1969, 3024, 1205})
FLOAT = 4
"""The type's number in the protocol."""
_DOUBLE = 5
_UNSIGNED = 0x20
# Width and code of whole numbers by type: TINY, SHORT, LONG, LONGLONG, INT24, YEAR.
_WHOLE = {1: (1, "b"), 2: (2, "h"), 3: (4, "i"), 8: (8, "q"), 9: (4, "i"), 13: (2, "h")}
_DATE_TYPES = frozenset({7, 10, 12, 14})
_DATE_ONLY = frozenset({10, 14})
_TIME = 11


def prepare(raw: Any, sql: bytes) -> int | None:
    """The number of the prepared statement; None if it has no ``FLOAT``, or cannot be prepared.

    What is wrong with a statement is told by running it as text.

    Raises:
        pymysql.Error: the connection is lost, or the statement was stopped.
    """
    try:
        raw._execute_command(_PREPARE, sql)
        data = raw._read_packet().get_all_data()
    except Exception as error:
        if not raw.open or (error.args and error.args[0] in _STOPPED):
            raise
        return None
    number, columns, parameters = struct.unpack_from("<IHH", data, 1)
    _skip_fields(raw, parameters)
    kinds = _skip_fields(raw, columns)
    if FLOAT in kinds and not parameters:
        return int(number)
    close(raw, number)
    return None


def execute(raw: Any, number: int) -> None:
    """Start a prepared statement; ``raw._result`` then gives its rows as text would."""
    raw._execute_command(_EXECUTE, struct.pack("<IBI", number, 0, 1))
    raw._affected_rows = raw._read_query_result(unbuffered=True)
    result = raw._result
    if result.unbuffered_active:
        readers = [_reader(field) for field in result.fields]
        result._read_row_from_packet = lambda packet: row_of(packet.get_all_data(), readers)


def close(raw: Any, number: int) -> None:
    """Forget a prepared statement, of which no row is left to read."""
    if raw.open:
        raw._execute_command(_CLOSE, struct.pack("<I", number))


def _skip_fields(raw: Any, count: int) -> list[int]:
    """Read so many descriptions of columns; their types."""
    from pymysql.protocol import FieldDescriptorPacket

    kinds = [raw._read_packet(FieldDescriptorPacket).type_code for _ in range(count)]
    if count:
        raw._read_packet()  # the end of the list
    return kinds


_Reader = Any  # Callable[[bytes, int], tuple[Any, int]]: a value, and where the next begins


def row_of(data: bytes, readers: list[_Reader]) -> tuple[Any, ...]:
    """The cells of one row."""
    count = len(readers)
    nulls = int.from_bytes(data[1 : 1 + (count + 9) // 8], "little") >> 2
    place = 1 + (count + 9) // 8
    row = []
    for i, read in enumerate(readers):
        value = None
        if not nulls >> i & 1:
            value, place = read(data, place)
        row.append(value)
    return tuple(row)


def _reader(field: Any) -> _Reader:
    kind = field.type_code
    if kind in _WHOLE:
        width, code = _WHOLE[kind]
        return _number(width, "<" + (code.upper() if field.flags & _UNSIGNED else code))
    if kind == FLOAT:
        return lambda data, place: (single(data[place : place + 4]), place + 4)
    if kind == _DOUBLE:
        return _number(8, "<d")
    read = converter(kind, field.charsetnr)
    if kind in _DATE_TYPES:
        return _sized(lambda cell: read(_date(cell, field.scale, kind in _DATE_ONLY)))
    if kind == _TIME:
        return _sized(lambda cell: read(_time(cell, field.scale)))
    return lambda data, place: _text(data, place, read)


def _number(width: int, code: str) -> _Reader:
    form = struct.Struct(code)
    return lambda data, place: (form.unpack_from(data, place)[0], place + width)


def _sized(read: Callable[[bytes], Any]) -> _Reader:
    """A cell that begins with its length in one byte."""
    return lambda data, place: (
        read(data[place + 1 : place + 1 + data[place]]),
        place + 1 + data[place],
    )


def _text(data: bytes, place: int, read: Callable[[bytes], Any]) -> tuple[Any, int]:
    first = data[place]
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first, 0)
    start = place + 1 + width
    size = int.from_bytes(data[place + 1 : start], "little") if width else first
    return read(data[start : start + size]), start + size


def single(raw: bytes) -> float:
    """A number of four bytes as the shortest decimal that is the same four bytes."""
    (value,) = struct.unpack("<f", raw)
    for digits in range(1 if abs(value) < 2**-126 else 6, 10):
        short = float(f"{value:.{digits}g}")
        try:
            if struct.pack("<f", short) == raw:
                return short
        except OverflowError:  # rounded up beyond the greatest one
            continue
    return float(value)


def _date(cell: bytes, scale: int, only: bool) -> bytes:
    """A date as the text protocol writes it."""
    year, month, day, hour, minute, second, micro = struct.unpack("<HBBBBBI", cell.ljust(11, b"\0"))
    text = f"{year:04}-{month:02}-{day:02}"
    if not only:
        text += f" {hour:02}:{minute:02}:{second:02}{_fraction(micro, scale)}"
    return text.encode()


def _time(cell: bytes, scale: int) -> bytes:
    """A time as the text protocol writes it."""
    negative, days, hour, minute, second, micro = struct.unpack("<BIBBBI", cell.ljust(12, b"\0"))
    sign = "-" if negative else ""
    text = f"{sign}{24 * days + hour:02}:{minute:02}:{second:02}{_fraction(micro, scale)}"
    return text.encode()


def _fraction(micro: int, scale: int) -> str:
    return "." + f"{micro:06}"[:scale] if 0 < scale <= 6 else ""
