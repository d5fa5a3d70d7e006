"""DuckDB's errors as ours."""

from __future__ import annotations

import re

from dbrag.errors import (
    DbragError,
    ExecutionError,
    LimitReached,
    SourceBusy,
    SourceError,
    SourceNotFound,
    SourceUnreadable,
    UnknownName,
)

_UNKNOWN = (
    r'Referenced column "(?P<n>.+?)" not found',
    r'does not have a column named "(?P<n>.+?)"',
    r'Column "(?P<n>.+?)" in (?:EXCLUDE|REPLACE|RENAME) list not found',
    r'Column "(?P<n>.+?)" does not exist',
    r'Referenced table "(?P<n>.+?)" not found',
    r'Table with name "(?P<n>.+?)" does not exist',
    r"Table with name (?P<n>.+?) does not exist",
)
_SUGGESTED = re.compile(r"(?:Candidate (?:bindings|tables)\s*:+|Did you mean)\s*:?(?P<list>.*)")
_KIND = re.compile(r"^[A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*)* Error: ")
_MAX = 300


def statement_error(error: Exception, location: str, memory_mb: int) -> DbragError:
    """An error of a running statement.

    Args:
        location: the source, for messages.
        memory_mb: the engine's memory.
    """
    import duckdb

    text = one_line(error)
    match error:
        case DbragError():
            return error
        case duckdb.OutOfMemoryException() | MemoryError():
            return LimitReached(
                f"the statement needs more than {memory_mb:,} MB of memory",
                "ask for less, or raise engine_mb (DBRAG_ENGINE_MB)",
            )
        case duckdb.InterruptException():
            return ExecutionError("the statement was cancelled", "run it again")
        case duckdb.PermissionException():
            return ExecutionError(f"only reading is allowed: {text}", "write SELECT")
        case duckdb.BinderException() | duckdb.CatalogException():
            return _unknown_name(str(error)) or ExecutionError(text)
        case duckdb.IOException() | duckdb.SerializationException():
            return SourceError(f"cannot read {location!r}: {text}", "check the file and the disk")
        case duckdb.FatalException() | duckdb.InternalException():
            return SourceError(
                f"DuckDB failed while reading {location!r}: {text}",
                "run it again; if it stays: dbrag doctor",
            )
    if "orrupt" in text:
        return _corrupt(location, text)
    return ExecutionError(text or type(error).__name__)


def is_fatal(error: BaseException) -> bool:
    """True when DuckDB answers nothing any more until it is started anew."""
    import duckdb

    return isinstance(error, (duckdb.FatalException, duckdb.InternalException))


def opening_error(error: Exception, path: str, memory_mb: int) -> DbragError:
    """An error of opening the database file ``path``."""
    import duckdb

    text = one_line(error)
    if "Could not set lock" in text:
        held = re.search(r"is held in (.+?)\. See", text)
        by = f": {held[1]}" if held else ""
        return SourceBusy(
            f"database {path!r} is locked by another program{by}",
            "close that program, or wait for it, and try again",
        )
    if "different configuration" in text or "already attached" in text:
        return SourceBusy(
            f"database {path!r} is open in this very process, to be written to",
            "close that connection first",
        )
    if "not a valid DuckDB database" in text:
        return SourceUnreadable(f"{path!r} is not a DuckDB database", "name a DuckDB file")
    if "does not exist" in text and isinstance(error, duckdb.IOException):
        return SourceNotFound(f"no file {path!r}", "was it moved? name its new place")
    if "version number" in text or "storage version" in text:
        return SourceUnreadable(
            f"{path!r} was written by another version of DuckDB: {text}",
            "pip install -U duckdb, or export it with the DuckDB that wrote it",
        )
    if "ncrypt" in text:
        return SourceUnreadable(f"{path!r} is encrypted", "encrypted databases cannot be read")
    if "orrupt" in text or "Could not read enough bytes" in text:
        return _corrupt(path, text)
    if isinstance(error, duckdb.IOException):
        return SourceUnreadable(f"cannot open {path!r}: {text}", "check its permissions")
    return statement_error(error, path, memory_mb)


def one_line(error: BaseException) -> str:
    """The message without its kind and without its excerpt of the statement."""
    text = str(error).partition("\n\nLINE ")[0]
    text = _KIND.sub("", " ".join(text.split()))
    return text if len(text) <= _MAX else text[: _MAX - 1] + "…"


def _corrupt(path: str, text: str) -> SourceUnreadable:
    return SourceUnreadable(
        f"database {path!r} is malformed: {text}", "restore it from a copy, or export what is left"
    )


def _unknown_name(text: str) -> UnknownName | None:
    first = text.partition("\n")[0]
    for pattern in _UNKNOWN:
        found = re.search(pattern, first)
        if found is None:
            continue
        suggested = _SUGGESTED.search(text.partition("\nLINE ")[0])
        names = re.findall(r'"((?:[^"]|"")+)"', suggested["list"]) if suggested else []
        close = ", ".join(names[:3])
        return UnknownName(
            _KIND.sub("", first),
            f"did you mean {close}?" if close else "",
            names=(found["n"],),
            suggestions=tuple(names[:3]),
        )
    return None
