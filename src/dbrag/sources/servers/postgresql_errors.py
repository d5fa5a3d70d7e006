"""PostgreSQL's errors as ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from collections.abc import Callable

_GRANT = 'let an administrator run: GRANT SELECT ON {0} TO "{1}"'


def translate(error: BaseException, location: str) -> DbragError:
    """A psycopg error as one of ours.

    Args:
        location: the URL without password.
    """
    code = getattr(error, "sqlstate", None)
    text = _one_line(str(error))
    if code is None:
        return _without_code(error, text, location)
    if code in _EXACT:
        return _EXACT[code](text, location)
    if code[:2] in _BY_CLASS and not _of_statement(error):
        return _BY_CLASS[code[:2]](text, location)
    if code in _UNKNOWN_NAMES:
        found = re.search(_UNKNOWN_NAMES[code], text)
        if found:
            name = next(group for group in found.groups() if group).strip(' "')
            # The server's hint may name a column that nobody may read.
            return UnknownName(_first_sentence(error), names=(name,))
    return ExecutionError(_first_sentence(error), _hint_of(error))


def _of_statement(error: BaseException) -> bool:
    """True if only the statement failed: the file or server of a foreign table is not there, a
    page is damaged, a function raises what it likes. Else the server ends the connection, too.
    """
    diagnosis = getattr(error, "diag", None)
    return getattr(diagnosis, "severity_nonlocalized", None) == "ERROR"


def lost(text: str, location: str) -> SourceError:
    """The error for a connection that ended in the middle."""
    return SourceError(
        f"the connection to {location!r} was lost: {text}",
        "ask again: it connects anew; if that fails, look whether the server runs",
    )


# Names as PostgreSQL quotes them: relation "x", column x.y, function f(integer).
_UNKNOWN_NAMES = {
    "42P01": r'"([^"]+)"',
    "42703": r'"([^"]+)"|column (\S+) does not exist',
    "42883": r"^function ([^(]+)\(",
    "3F000": r'"([^"]+)"',
    "42704": r'"([^"]+)"',
}


def _permission(text: str, location: str) -> DbragError:
    found = re.search(r"permission denied for (?:\w+ )*?(\w+) (\S+)$", text)
    user = re.match(r"\w+://([^@/:]*)@", location)
    who = user[1] if user and user[1] else "your role"
    what = found[2] if found else "…"
    hint = _GRANT.format(what, who)
    if found and found[1] == "schema":
        hint = f'let an administrator run: GRANT USAGE ON SCHEMA {what} TO "{who}"'
    return ExecutionError(text, hint)


_EXACT: dict[str, Callable[[str, str], DbragError]] = {
    "42501": _permission,
    "57014": lambda text, at: LimitReached(
        f"the server stopped the statement: {text}", "ask for less, or raise timeout_s"
    ),
    "25006": lambda text, at: ExecutionError(f"only reading is allowed: {text}", "write SELECT"),
    "55P03": lambda text, at: SourceBusy(
        f"a table in {at!r} is locked: {text}", "somebody is altering it; try again in a moment"
    ),
    "40001": lambda text, at: SourceBusy(f"{at!r} was changed meanwhile: {text}", "ask again"),
    "53200": lambda text, at: LimitReached(
        f"the server ran out of memory: {text}", "ask for less at once"
    ),
    "53100": lambda text, at: SourceError(
        f"the server at {at!r} has no disk space left: {text}", "free space on the server"
    ),
    "53300": lambda text, at: _too_many(text, at),
    "53400": lambda text, at: LimitReached(
        f"a limit of the server was reached: {text}", "ask for less at once"
    ),
    "3D000": lambda text, at: _no_database(text, at),
}
_BY_CLASS: dict[str, Callable[[str, str], DbragError]] = {
    "08": lost,
    "57": lost,
    "28": lambda text, at: _refused(text, at),
    "58": lambda text, at: SourceError(f"the server at {at!r} failed: {text}", "see its log"),
    "XX": lambda text, at: SourceUnreadable(
        f"the server at {at!r} reports damage: {text}", "see its log"
    ),
}


def _too_many(text: str, at: str) -> SourceError:
    return SourceBusy(
        f"{at!r} takes no more connections: {text}",
        "close other programs, or raise max_connections on the server",
    )


def _no_database(text: str, at: str) -> SourceError:
    return SourceNotFound(f"{at!r}: {text}", "list the databases: psql -l")


def _refused(text: str, at: str) -> SourceError:
    return SourceUnreadable(
        f"{at!r} refuses the connection: {text}",
        "check user and password (password_env, password_command, ~/.pgpass) and pg_hba.conf",
    )


# What libpq says where there is no code: (pattern, error). The first that matches counts.
_CONNECTING: tuple[tuple[str, Callable[[str, str], SourceError]], ...] = (
    (r"password|authentication|role .* (does not exist|not permitted)", _refused),
    (r"database .* does not exist", _no_database),
    (r"too many (clients|connections)|connection slots", _too_many),
    (
        r"\bSSL|certificate|encryption",
        lambda text, at: SourceUnreadable(
            f"{at!r} and dbrag do not agree on encryption: {text}",
            "add ?sslmode=require (or verify-full with sslrootcert=FILE) to the URL, "
            "or sslmode=disable for a server without it",
        ),
    ),
    (
        r"unsupported startup parameter",
        lambda text, at: SourceError(
            f"the connection pooler at {at!r} refuses a setting: {text}",
            "name the server itself, or set ignore_startup_parameters = options in PgBouncer",
        ),
    ),
    (
        r"starting up|shutting down|recovery",
        lambda text, at: SourceBusy(f"{at!r} is not ready: {text}", "try again in a moment"),
    ),
    (
        r"failed to resolve|translate host name",
        lambda text, at: SourceNotFound(
            f"the host of {at!r} is not known: {text}", "check its name and the network"
        ),
    ),
    (
        r"timeout|timed out",
        lambda text, at: SourceError(
            f"{at!r} does not answer: {text}", "check host, port and firewall"
        ),
    ),
)


# What libpq says beside the reason.
_NOISE = re.compile(
    r"^connection (failed|is bad): |^consuming input failed: |"
    r"connection to server (at|on socket) .*? failed: |"
    r" This probably means the server terminated abnormally before or while processing .*|"
    r" Is the server running .*\?"
)
_OPENING = (
    "connection failed",
    "connection is bad",
    "connection timeout",
    "failed to resolve",
    "multiple attempts",
    "fe_sendauth",
)


def _without_code(error: BaseException, text: str, location: str) -> DbragError:
    """Errors of the client: connecting failed, or the connection ended."""
    import psycopg

    if isinstance(error, UnicodeError):
        return ExecutionError(
            f"a text in the result is not valid UTF-8: {text}", "select other columns"
        )
    if not isinstance(error, psycopg.Error):
        return ExecutionError(text or type(error).__name__)
    opening = text.startswith(_OPENING)
    text = _NOISE.sub("", text)
    if opening:
        for pattern, make in _CONNECTING:
            if re.search(pattern, text, re.I):
                return make(text, location)
        return SourceError(
            f"cannot connect to {location!r}: {text}", "check that the server runs, host and port"
        )
    if isinstance(error, psycopg.OperationalError):
        return lost(text, location)
    return ExecutionError(text or type(error).__name__)


def _first_sentence(error: BaseException) -> str:
    """The message without the quoted statement and its marker line."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return _one_line(primary or str(error))


def _hint_of(error: BaseException) -> str:
    diagnosis = getattr(error, "diag", None)
    return _one_line(getattr(diagnosis, "message_hint", None) or "")


def _one_line(text: str) -> str:
    return " ".join(text.split())
