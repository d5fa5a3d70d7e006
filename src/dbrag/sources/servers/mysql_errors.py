"""Errors of MySQL, MariaDB and PyMySQL as ours; none repeats a password."""

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

_NAME = re.compile(r"'([^']*)'")
_DENIED = frozenset({1044, 1045, 1251, 1698, 1820, 1862, 2058, 2059, 2061, 3118, 3955})
_NOT_THERE = frozenset({1049, 1129, 1130})
_NO_RIGHT = frozenset({1142, 1143, 1227, 1356, 1370})
_LOST = frozenset({1053, 1077, 1079, 1080, 1927, 2006, 2013, 2014, 2055, 4031})
_UNREACHED = frozenset({2002, 2003, 2005})
_TIME = frozenset({1969, 3024, 1907})
_MEMORY = frozenset({1037, 1038, 1041, 1114, 1135, 1153, 3171})
_LOCKED = frozenset({1205, 1213, 1412})


def translate(error: BaseException, location: str) -> DbragError:
    """A driver's error as one of ours.

    Args:
        location: the URL without password.
    """
    if isinstance(error, DbragError):
        return error
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = " ".join(str(error.args[1] if len(error.args) > 1 else error).split())
    known = _of_connection(number, text, location) or _of_limits(number, text, location)
    if known is not None:
        return known
    if number in (1054, 1109, 1146, 1305):
        return UnknownName(text, names=tuple(_NAME.findall(text)[:1]))
    if number in _NO_RIGHT:
        return ExecutionError(
            f"the database user has no right to do this: {text}",
            "GRANT SELECT ON database.* TO the user dbrag connects with",
        )
    if number in (1792, 1290, 1836):
        return ExecutionError(f"only reading is allowed: {text}", "write SELECT")
    if "'cryptography' package is required" in text:
        return SourceUnreadable(
            f"{location!r} asks for the password in a way that PyMySQL cannot do unencrypted",
            "use an encrypted connection or a socket, or: pip install cryptography",
        )
    if number == 0 and isinstance(error, (UnicodeError, ValueError, RuntimeError)):
        return ExecutionError(
            f"the driver cannot read the answer: {type(error).__name__}", "select other columns"
        )
    if number == 0:
        return _lost(location)
    return ExecutionError(text or type(error).__name__)


def of_statement(error: BaseException) -> BaseException:
    """What a statement raised in a session that stands: being refused is about what it reads."""
    number = error.args[0] if error.args else 0
    if number not in _DENIED and number not in _NOT_THERE:
        return error
    text = " ".join(str(error.args[1] if len(error.args) > 1 else error).split())
    return ExecutionError(
        f"the server refuses to read what the statement names: {text}",
        "if it is a view: its definer may be gone or have no right, see SHOW CREATE VIEW",
    )


def _of_connection(number: int, text: str, location: str) -> DbragError | None:
    if number in _UNREACHED:
        reason = re.search(r"\(([^()]*(?:\([^()]*\))?[^()]*)\)\s*$", text)
        return SourceNotFound(
            f"cannot reach the server of {location!r}: {reason[1] if reason else text}",
            "is it running, and are host and port right?",
        )
    if number in _DENIED:
        return SourceUnreadable(
            f"{location!r} does not let us in: {text}",
            "check user and password: password_env or password_command in [source.NAME], "
            "MYSQL_PWD, or [client] in ~/.my.cnf",
        )
    if number == 1049:
        return SourceNotFound(f"{location!r}: {text}", "name a database that exists")
    if number in (1040, 1203, 1226):
        return SourceBusy(
            f"{location!r} takes no more connections: {text}", "try again in a moment"
        )
    if number in (1129, 1130):
        return SourceUnreadable(
            f"{location!r} does not let this machine in: {text}", "ask its administrator"
        )
    if number == 2026:
        return SourceUnreadable(
            f"no encrypted connection to {location!r}: {text}", "check ssl_ca and the certificate"
        )
    if number in _LOST:
        return _lost(location)
    return None


def _of_limits(number: int, text: str, location: str) -> DbragError | None:
    if number in _TIME:
        return LimitReached(
            "the server stopped the statement: it took longer than the time limit",
            "ask for less, or raise timeout_s (DBRAG_TIMEOUT_S)",
        )
    if number == 1317:
        return LimitReached(
            "the statement was cancelled on the server", "run it again, or ask for less"
        )
    if number in _MEMORY:
        return LimitReached(f"the server ran out of memory or space: {text}", "ask for less")
    if number in _LOCKED:
        return SourceBusy(
            f"{location!r} is being changed by another program: {text}", "try again in a moment"
        )
    return None


def _lost(location: str) -> SourceError:
    return SourceError(
        f"the connection to {location!r} was lost", "run it again: a new one will be opened"
    )
