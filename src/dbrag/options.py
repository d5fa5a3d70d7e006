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

    [notes."shop.customers"]               # what the user knows of a table
    description = "people who bought at least once"
    synonyms = ["clients", "buyers"]
    preferred = true                       # before similar tables
    columns = { cust_nm = "full name", st = { synonyms = ["state"] } }
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
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
class ColumnNote:
    """What the user says of a column: in plain words, and what else it is called."""

    description: str = ""
    synonyms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableNote:
    """What ``[notes."TABLE"]`` says of a table.

    Attributes:
        description: what it holds, in plain words.
        synonyms: other names for it.
        preferred: among similar tables this one first.
        columns: column → what it holds; a text alone is its description.
    """

    description: str = ""
    synonyms: tuple[str, ...] = ()
    preferred: bool = False
    columns: Mapping[str, ColumnNote] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """What ``[joins]`` says: corrections of what is declared or inferred.

    Attributes:
        add: joins, written ``shop.orders.customer_id = shop.customers.id``.
        remove: what is none, in either direction.
    """

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


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
    """One table of ``dbrag.toml`` as ``kind``; what is one already stays.

    Raises:
        UsageError: no table, an unknown key, a value of another type.
    """
    if isinstance(data, kind):
        return data
    if not isinstance(data, Mapping):
        raise UsageError(f"{where} must be a table, not {data!r}", f"write [{where}]")
    hints = get_type_hints(kind)
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    values = {}
    for key, value in data.items():
        if key not in names:
            near = difflib.get_close_matches(str(key), names, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            known = ", ".join(names)
            raise UsageError(f"unknown key {key!r} in [{where}]", f"{hint}known keys: {known}")
        values[key] = _checked(hints[key], value, f"{key} in [{where}]")
    return kind(**values)


MAX_SYNONYMS = 20
MAX_SYNONYM_CHARS = 60


def read_notes(
    data: Any, where: str = "notes", _names: tuple[str, ...] = ()
) -> dict[str, TableNote]:
    """The table ``[notes]``: name of a table → :class:`TableNote`.

    ``[notes.shop.customers]``, without quotes, is the same as ``[notes."shop.customers"]``.

    Raises:
        UsageError: no table, an unknown key, a value of another type, too many synonyms.
    """
    if not isinstance(data, Mapping):
        raise UsageError(f"{where} must be a table, not {data!r}", 'write [notes."TABLE"]')
    notes: dict[str, TableNote] = {}
    for key, value in data.items():
        names = (*_names, _name(key, where))
        here = f'notes."{".".join(names)}"'
        if not _names and key in _KEYS and not isinstance(value, Mapping):
            raise UsageError(
                f"{key!r} in [notes] names no table", f'write [notes."TABLE"], then {key}'
            )
        if not _names and not isinstance(value, Mapping | str | TableNote):
            raise UsageError(
                f"{key!r} in [notes] must be a table or text, not {value!r}",
                "a setting stands above the first [table] of the file",
            )
        found = (
            read_notes(value, here, names)
            if _is_a_part(value)
            else {".".join(names): _table_note(value, here)}
        )
        if twice := notes.keys() & found.keys():
            raise UsageError(f"[notes] names {min(twice)!r} twice", "write one entry for it")
        notes |= found
    return notes


def leave_out(kind: type[Any], name: str, *, variable: bool = False) -> str:
    """The way out of a value that is out of range: the field's default.

    Args:
        kind: the dataclass of the field.
        variable: whether ``DBRAG_…`` sets it, too.
    """
    default = next(one.default for one in fields(kind) if one.name == name)
    also = f" (DBRAG_{name.upper()})" if variable else ""
    told = "" if default in (None, MISSING, ()) else f", {default!r}"
    return f"leave {name}{also} out for the default{told}"


def _name(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise UsageError(
            f"[{where}] holds the name {key!r}, which is no text", f"write it as text: {str(key)!r}"
        )
    return key


_KEYS = tuple(one.name for one in fields(TableNote))


def _is_a_part(value: Any) -> bool:
    """Whether a table of ``[notes]`` holds no note, but tables that do."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(one, Mapping) for one in value.values())
        and not any(difflib.get_close_matches(str(key), _KEYS, n=1, cutoff=0.75) for key in value)
    )


def _table_note(value: Any, where: str) -> TableNote:
    if isinstance(value, TableNote):
        return value
    if isinstance(value, str):
        return TableNote(description=value)
    columns = value.get("columns", {}) if isinstance(value, Mapping) else {}
    if not isinstance(columns, Mapping):
        raise UsageError(f"columns in [{where}] must not be {columns!r}", "it takes a table")
    rest = value
    if isinstance(value, Mapping):
        rest = {key: one for key, one in value.items() if key != "columns"}
    note = read_options(TableNote, rest, where)
    read = {
        _name(name, f"{where}.columns"): _column_note(one, f'{where}.columns."{name}"')
        for name, one in columns.items()
    }
    return replace(_few(note, where), columns=read)


def _column_note(value: Any, where: str) -> ColumnNote:
    if isinstance(value, str):
        return ColumnNote(description=value)
    return _few(read_options(ColumnNote, value, where), where)


Note = TypeVar("Note", TableNote, ColumnNote)


def _few(note: Note, where: str) -> Note:
    if len(note.synonyms) > MAX_SYNONYMS:
        raise UsageError(
            f"[{where}] has {len(note.synonyms)} synonyms, at most {MAX_SYNONYMS} are used",
            "keep those that people ask with; a longer text belongs into description",
        )
    for name in note.synonyms:
        if not name.strip() or len(name) > MAX_SYNONYM_CHARS:
            raise UsageError(
                f"a synonym in [{where}] must have 1 to {MAX_SYNONYM_CHARS} characters, "
                f"not {name[:80]!r}",
                "a longer text belongs into description",
            )
    return note


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
