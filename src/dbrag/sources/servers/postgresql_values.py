"""PostgreSQL's values as exact Python values; what Python cannot hold stays PostgreSQL's text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection

# JSON's numbers, an interval's months, a network's mask, a range's bounds: exact as text only.
_AS_TEXT = (
    "json",
    "jsonb",
    "interval",
    "inet",
    "cidr",
    "record",
    "int4range",
    "int8range",
    "numrange",
    "daterange",
    "tsrange",
    "tstzrange",
    "int4multirange",
    "int8multirange",
    "nummultirange",
    "datemultirange",
    "tsmultirange",
    "tstzmultirange",
)
# Their greatest values, "infinity", years BC and "24:00:00" are beyond Python's.
_OR_TEXT = {
    "date": "DateLoader",
    "time": "TimeLoader",
    "timetz": "TimetzLoader",
    "timestamp": "TimestampLoader",
    "timestamptz": "TimestamptzLoader",
}


def register_loaders(raw: Connection[Any]) -> None:
    """Let a connection give exact values, and never fail over one."""
    from psycopg.types.string import TextLoader

    if raw.info.parameter_status("server_encoding") == "SQL_ASCII":
        _take_any_bytes(raw)
    text = TextLoader if raw.info.encoding == "utf-8" else _lenient()
    for name in _AS_TEXT:
        raw.adapters.register_loader(name, text)
    for name, loader in _date_loaders().items():
        raw.adapters.register_loader(name, loader)


def text_of(raw: Connection[Any], name: str) -> str:
    """A column's name as psycopg gives it, as it really is."""
    return name if raw.info.encoding == "utf-8" else _recoded(name)


def _recoded(name: str) -> str:
    return name.encode("latin-1", "replace").decode("utf-8", "replace")


def _take_any_bytes(raw: Connection[Any]) -> None:
    """A database without an encoding holds any bytes; most are UTF-8.

    The server would refuse to send invalid UTF-8 to a client that reads it. As LATIN1
    every byte passes as it is, and we decode.
    """
    from psycopg.adapt import Dumper

    class Utf8Dumper(Dumper):
        """Text as UTF-8, whatever the connection's encoding."""

        def dump(self, obj: str) -> bytes:
            return obj.encode()

    raw.execute("SET client_encoding TO LATIN1")
    raw.adapters.register_dumper(str, Utf8Dumper)
    for name in ("text", "varchar", "bpchar", "name", '"char"'):
        raw.adapters.register_loader(name, _lenient())
    raw.adapters.register_loader(0, _lenient())


@cache
def _lenient() -> type[Any]:
    from psycopg.types.string import TextLoader

    class LenientLoader(TextLoader):
        """Text whose invalid bytes become replacement characters."""

        def load(self, data: Any) -> str:
            return bytes(data).decode("utf-8", "replace")

    return LenientLoader


@cache
def _date_loaders() -> dict[str, type[Any]]:
    from psycopg.types import datetime

    return {name: _or_text(getattr(datetime, loader)) for name, loader in _OR_TEXT.items()}


def _or_text(base: type[Any]) -> type[Any]:
    from psycopg import DataError

    class OrTextLoader(base):  # type: ignore[misc]
        """The base's value, or the server's text where Python has no such value."""

        def load(self, data: Any) -> Any:
            try:
                return super().load(data)
            except (DataError, ValueError, OverflowError):
                return bytes(data).decode()

    return OrTextLoader
