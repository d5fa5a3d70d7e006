"""From a URL and ``~/.my.cnf`` to the arguments of PyMySQL.

Only what is listed here may stand in a URL: ``local_infile``, ``init_command`` or
``client_flag`` would take a wall down.
"""

from __future__ import annotations

import logging
import os
import stat
from typing import TYPE_CHECKING, Any

from dbrag.errors import SourceError, UsageError
from dbrag.sources.servers.mysql_session import CONNECT_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import URL

log = logging.getLogger(__name__)

_PATHS = ("ssl_ca", "ssl_cert", "ssl_key")
_SWITCHES = ("ssl_disabled", "ssl_verify_cert", "ssl_verify_identity")
_KNOWN = ("unix_socket", *_PATHS, *_SWITCHES, "ssl_key_password", "connect_timeout", "charset")
_SOCKETS = ("/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock")  # noqa: S108
_OPTION_SSL = {"ssl-ca": "ssl_ca", "ssl-cert": "ssl_cert", "ssl-key": "ssl_key"}


def complete(url: URL) -> URL:
    """The URL for PyMySQL, with user, host, port and socket of ``~/.my.cnf`` filled in.

    Raises:
        UsageError: a parameter that is not known, or has no such value.
    """
    unknown = [name for name in url.query if name not in _KNOWN]
    if unknown:
        raise UsageError(
            f"unknown parameter {unknown[0]!r} in a MySQL URL",
            f"known ones: {', '.join(_KNOWN)}",
        )
    for name in _SWITCHES:
        _switch(url, name)
    _timeout(url)
    mine = options()
    url = url.set(drivername="mysql+pymysql")
    if not url.username and mine.get("user"):
        url = url.set(username=mine["user"])
    if not url.host and "unix_socket" not in url.query:
        url = _with_place(url, mine)
    if not url.query.keys() & {*_PATHS, *_SWITCHES}:
        found = {ours: mine[name] for name, ours in _OPTION_SSL.items() if mine.get(name)}
        url = url.update_query_dict(found) if found else url
    return url


def _with_place(url: URL, mine: Mapping[str, str]) -> URL:
    """Where the URL names no server: the one of the options file, else the usual socket."""
    if mine.get("socket") and not mine.get("host"):
        return url.update_query_dict({"unix_socket": mine["socket"]})
    if mine.get("host"):
        port = mine.get("port", "")
        url = url.set(host=mine["host"])
        return url.set(port=int(port)) if port.isdecimal() and not url.port else url
    sockets = [] if url.port else [path for path in _SOCKETS if os.path.exists(path)]
    if sockets:
        return url.update_query_dict({"unix_socket": sockets[0]})
    return url.set(host="127.0.0.1")


def arguments(url: URL) -> dict[str, Any]:
    """Arguments for ``pymysql.connect`` beside user, host, port and database.

    Raises:
        UsageError: as ``complete``.
    """
    found: dict[str, Any] = {
        "charset": "utf8mb4",
        "autocommit": True,
        "local_infile": False,
        "client_flag": 0,
        "init_command": None,
        "connect_timeout": _timeout(url),
        # Until the session is prepared: PyMySQL waits for ever for a greeting.
        "read_timeout": _timeout(url),
        "program_name": "dbrag",
    }
    for name in (*_PATHS, "ssl_key_password", "unix_socket"):
        if isinstance(value := url.query.get(name), str):
            found[name] = value
    for name in _SWITCHES:
        if (switch := _switch(url, name)) is not None:
            found[name] = switch
    if found.get("ssl_ca") and "ssl_verify_cert" not in found:
        # An authority is named: to be checked, not only mentioned.
        found["ssl_verify_cert"] = True
    password = url.password if url.password is not None else own_password(url.username)
    if password is not None:
        # PyMySQL would write it in Latin-1.
        found["password"] = str(password).encode()
    return found


def own_password(user: str | None) -> str | None:
    """The password of ``~/.my.cnf``, if it is this user's, else ``MYSQL_PWD``."""
    mine = options()
    if mine.get("password") and (not user or mine.get("user", user) == user):
        return mine["password"]
    return os.environ.get("MYSQL_PWD") or None


def options(path: str = "~/.my.cnf") -> dict[str, str]:
    """The section ``[client]`` of an options file; {} where there is none.

    As MySQL's own programs do, a file that everybody may write to is not used.

    Raises:
        SourceError: it cannot be read.
    """
    place = os.path.expanduser(path)
    try:
        with open(place, encoding="utf-8", errors="replace") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
                log.warning("%s is not used: everybody may write to it", place)
                return {}
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SourceError(
            f"cannot read {place!r}: {error.strerror}", "check its permissions"
        ) from error
    return _section(lines)


def _section(lines: list[str]) -> dict[str, str]:
    """Keys and values of ``[client]``, spelled with hyphens; the last one wins."""
    found: dict[str, str] = {}
    inside = False
    for line in map(str.strip, lines):
        if line.startswith("["):
            inside = line.partition("]")[0].lstrip("[").strip() == "client"
        elif inside and line and line[0] not in "#;!":
            name, equals, value = line.partition("=")
            value = value.strip()
            if value[:1] in ("'", '"') and value.find(value[0], 1) > 0:
                value = value[1 : value.find(value[0], 1)]
            else:
                value = value.partition(" #")[0].rstrip()
            if equals:
                found[name.strip().lower().replace("_", "-")] = value
    return found


def _switch(url: URL, name: str) -> bool | None:
    value = url.query.get(name)
    if value is None:
        return None
    text = str(value).lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise UsageError(f"{name} in a MySQL URL must not be {value!r}", "write true or false")


def _timeout(url: URL) -> int:
    value = url.query.get("connect_timeout", str(CONNECT_S))
    if isinstance(value, str) and value.isdecimal() and 0 < int(value) <= 3600:
        return int(value)
    raise UsageError(
        f"connect_timeout in a MySQL URL must not be {value!r}", "write whole seconds, 1 to 3600"
    )
