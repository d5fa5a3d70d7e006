"""Errors of any DB-API driver as ours, by their standard class and what their text says."""

from __future__ import annotations

import re

from dbrag.errors import (
    DbragError,
    ExecutionError,
    LimitReached,
    SourceError,
    SourceNotFound,
    SourceUnreadable,
    UnknownName,
)

_UNKNOWN = re.compile(
    r"no such (column|table)|unknown column|invalid (column|object) name|invalid identifier"
    r"|(column|relation|table|object|view|identifier)\b.{0,80}\b(does not exist|doesn't exist"
    r"|not found|cannot be (resolved|found))|unresolved_column|table_or_view_not_found"
    r"|ORA-00904|ORA-00942|unrecognized name",
    re.I,
)
_TIME = re.compile(
    r"time(d)?[ -_]?out|max_statement_time|exceeded.{0,40}time|cancel|interrupted|aborted by user",
    re.I,
)
_DENIED = re.compile(
    r"access denied|login failed|authentication|password|not authori[sz]ed to connect"
    r"|ORA-01017|invalid credentials|unauthori[sz]ed|401",
    re.I,
)
_UNREACHED = re.compile(
    r"refused|could not connect|can't connect|cannot connect|unable to (connect|open)"
    r"|name or service|getaddrinfo|no route|unreachable|could not translate host"
    r"|database .{0,80} does not exist|unknown database|ORA-12\d\d\d",
    re.I,
)
_LOST = re.compile(
    r"lost connection|gone away|connection.{0,30}(closed|lost|reset|terminat)|broken pipe"
    r"|server closed|not connected|interface error|administrator command",
    re.I,
)
_NO_RIGHT = re.compile(r"permission|privilege|command denied|ORA-01031", re.I)
_NAME = re.compile(r"[`'\"\[]([^`'\"\]]+)[`'\"\]]|(?:column|table): (\S+)")


def translate(error: BaseException, location: str) -> DbragError:
    """A driver's error as one of ours.

    Args:
        location: the URL without password.
    """
    if isinstance(error, DbragError):
        return error
    names = {kind.__name__ for kind in type(error).__mro__}
    text = " ".join(str(error).split())
    if _UNKNOWN.search(text):
        found = _NAME.search(text)
        name = next((part for part in found.groups() if part), "") if found else ""
        return UnknownName(text, names=(name,) if name else ())
    if _TIME.search(text) and not _UNREACHED.search(text):
        return LimitReached(f"the server stopped the statement: {text}", "ask for less")
    connecting = names & {"OperationalError", "InterfaceError", "OSError", "InternalError"}
    if connecting and _UNREACHED.search(text):
        hint = "is it running, and are host, port and database right?"
        return SourceNotFound(f"cannot reach {location!r}: {text}", hint)
    if _LOST.search(text) or (connecting and not text):
        hint = "run it again: a new one will be opened"
        return SourceError(f"the connection to {location!r} was lost: {text}", hint)
    if _NO_RIGHT.search(text):
        return ExecutionError(
            f"the database user has no right to do this: {text}",
            "grant SELECT to the user dbrag connects with",
        )
    if _DENIED.search(text):
        hint = "check user and password: password_env or password_command in [source.NAME]"
        return SourceUnreadable(f"{location!r} does not let us in: {text}", hint)
    if "read-only" in text.lower() or "read only" in text.lower() or "readonly" in text.lower():
        return ExecutionError(f"only reading is allowed: {text}", "write SELECT")
    if isinstance(error, OSError) or names & {"InterfaceError"}:
        return SourceError(
            f"{location!r} cannot be read: {text}", "run it again; if it stays: dbrag doctor"
        )
    return ExecutionError(text or type(error).__name__)
