"""How single sources and files are read: the tables ``[source.…]`` and ``[files."…"]``.

::

    schemas = ["sales", "hr"]              # all servers; default: every schema of the user
    redact = ["salary", "hr.people.email"] # columns that never leave the database

    [source.shop]                          # one source, by its name
    schemas = ["public"]
    password_env = "SHOP_PASSWORD"         # or: password_command = "pass show shop"

    [files."2024/*.csv"]                   # data files, by name or path pattern
    delimiter = ";"
    decimal = ","
    types = { postcode = "string" }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from dbrag.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What ``[source.NAME]`` says of one source.

    Attributes:
        schemas: schemas to read; empty means those of ``OpenOptions``, else all.
        password_env: environment variable that holds the password.
        password_command: a command whose first line of output is the password.
    """

    schemas: tuple[str, ...] = ()
    password_env: str | None = None
    password_command: str | None = None


@dataclass(frozen=True, slots=True)
class FileOptions:
    """What ``[files."PATTERN"]`` says of data files; None means: guess.

    Attributes:
        encoding: name of the text encoding.
        delimiter: one character between cells.
        header: line (sheet row) of the column names, from 1; 0 means there is none.
        decimal: "." or ",".
        thousands: separator of thousands, "" for none.
        dates: order of the parts of numeric dates: "dmy", "mdy" or "ymd".
        nulls: texts that mean NULL, beside the empty unquoted cell.
        types: column → "string", "int64", "double", "decimal(p,s)", "date", "timestamp",
            "time" or "bool".
        sheets: Excel sheets to read; empty means all.
        skip: leave these files out; False takes back what an earlier pattern says.
    """

    encoding: str | None = None
    delimiter: str | None = None
    header: int | None = None
    decimal: str | None = None
    thousands: str | None = None
    dates: str | None = None
    nulls: tuple[str, ...] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    sheets: tuple[str, ...] = ()
    skip: bool | None = None


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """Everything that opening sources depends on beside their names.

    Attributes:
        cache: folder for converted files; None means that none may be converted.
        schemas: schemas to read of every server; empty means all.
        redact: columns that are never read, as ``column``, ``table.column``,
            ``schema.table.column`` or with the source's name before it; ``*`` and ``?``
            stand for any characters.
        sources: by name of the source.
        files: by pattern, the later one wins.
        memory_mb: memory of the engine that reads files.
        threads: its threads; None means the cores of this machine.
    """

    cache: Path | None = None
    schemas: tuple[str, ...] = ()
    redact: tuple[str, ...] = ()
    sources: Mapping[str, SourceOptions] = field(default_factory=dict)
    files: Mapping[str, FileOptions] = field(default_factory=dict)
    memory_mb: int = 1024
    threads: int | None = None

    def schemas_of(self, source: str) -> tuple[str, ...]:
        """The schemas to read of one source; empty means all."""
        own = self.sources.get(source)
        return own.schemas if own is not None and own.schemas else self.schemas


def read_options(kind: type[T], data: Any, where: str) -> T:
    """One table of ``dbrag.toml`` as ``kind``.

    Raises:
        UsageError: no table, an unknown key, a value of another type.
    """
    if not isinstance(data, Mapping):
        raise UsageError(f"{where} must be a table, not {data!r}", f"write [{where}]")
    hints = get_type_hints(kind)
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    values = {}
    for key, value in data.items():
        if key not in names:
            known = ", ".join(names)
            raise UsageError(f"unknown key {key!r} in [{where}]", f"known keys: {known}")
        values[key] = _checked(hints[key], value, f"{key} in [{where}]")
    return kind(**values)


def _checked(hint: Any, value: Any, where: str) -> Any:
    allowed = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    for one in allowed:
        result = _as(one, value)
        if result is not None:
            return result
    raise UsageError(f"{where} must not be {value!r}", f"it takes {_readable(allowed)}")


def _as(kind: Any, value: Any) -> Any:
    """``value`` if it is of that kind, else None."""
    if kind in (str, bool, int):
        return value if type(value) is kind else None
    if kind == tuple[str, ...] and isinstance(value, (list, tuple)):
        return tuple(value) if all(isinstance(part, str) for part in value) else None
    if kind == Mapping[str, str] and isinstance(value, Mapping):
        return dict(value) if all(isinstance(part, str) for part in value.values()) else None
    return None


def _readable(allowed: tuple[Any, ...]) -> str:
    names = {str: "text", bool: "true or false", int: "a whole number"}
    return " or ".join(
        names.get(one, "a list of texts" if one == tuple[str, ...] else "a table of texts")
        for one in allowed
        if one is not type(None)
    )
