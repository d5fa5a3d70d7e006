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

    text = TextLoader
    if raw.info.parameter_status("server_encoding") == "SQL_ASCII":
        # Such a database holds any bytes at all.
        text = _lenient()
        for name in ("text", "varchar", "bpchar", "name", '"char"'):
            raw.adapters.register_loader(name, text)
        raw.adapters.register_loader(0, text)
    for name in _AS_TEXT:
        raw.adapters.register_loader(name, text)
    for name, loader in _date_loaders().items():
        raw.adapters.register_loader(name, loader)


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
