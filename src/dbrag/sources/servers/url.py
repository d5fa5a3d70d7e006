"""URLs of servers: taken apart, and shown without anything secret."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from dbrag.errors import UsageError

if TYPE_CHECKING:
    from sqlalchemy import URL

SECRET = re.compile(
    r"pass(?!file)|pwd|secret|token|credential|private_?key|(api|access)_?key", re.I
)
"""Query parameters whose value is never shown; ``passfile`` is a path."""

_LONG_ENOUGH = 4
_QUERY = re.compile(r"\?\w+=")
_ODBC = "odbc_connect"
_PREFIXES = {"postgres": "postgresql"}
_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
_OWN_DRIVERS = re.compile(r"^(postgresql|mysql|mariadb)\+\w+$")
"""Dialects for which dbrag chooses the driver."""


def parse_url(place: str) -> URL:
    """An SQLAlchemy URL; a password among the parameters takes its usual place.

    Raises:
        UsageError: it cannot be read; nothing of it is repeated, since it may hold a password.
    """
    from sqlalchemy.engine import make_url

    scheme, _, rest = place.partition("://")
    scheme = _PREFIXES.get(scheme.lower(), scheme)
    try:
        url = make_url(f"{scheme}://{rest}")
    except Exception:
        # The cause would show the URL.
        raise _unreadable(scheme) from None
    behind_user = _QUERY.split(rest.partition(":")[2])[0]
    if "@" in (url.host or "") or behind_user.count("@") > 1:
        raise _unreadable(scheme)  # the rest of a password with an @ in it
    password = url.query.get("password")
    if isinstance(password, str):
        url = url.difference_update_query(["password"])
        url = url if url.password else url.set(password=password)
    user = url.query.get("user")
    if isinstance(user, str) and not url.username:
        url = url.difference_update_query(["user"]).set(username=user)
    return _with_port(url)


def _unreadable(scheme: str) -> UsageError:
    return UsageError(
        f"the URL {scheme + '://…'!r} cannot be read",
        "write dialect://user@host:port/database; in user and password, @ is %40, / is %2F, "
        ": is %3A (or give the password with password_env)",
    )


def location_of(url: URL) -> str:
    """The URL without driver of ours and without secrets: shown, logged, stored, opened again."""
    secret = [name for name in url.query if SECRET.search(name)]
    shown = with_password(url, None).difference_update_query(secret)
    odbc = shown.query.get(_ODBC)
    if odbc is not None:
        text = odbc if isinstance(odbc, str) else ";".join(odbc)
        parts = [p for p in text.split(";") if not SECRET.search(p.partition("=")[0])]
        shown = shown.update_query_dict({_ODBC: ";".join(parts)})
    shown = shown.set(drivername=_OWN_DRIVERS.sub(r"\1", shown.drivername))
    return shown.render_as_string(hide_password=True)


def with_password(url: URL, password: str | None) -> URL:
    """The URL with another password, or none (``URL.set`` takes None for "leave it")."""
    from sqlalchemy import URL

    return URL.create(
        url.drivername, url.username, password, url.host, url.port, url.database, url.query
    )


def secrets_of(url: URL) -> frozenset[str]:
    """Texts that must never be shown."""
    found = {url.password} if url.password else set()
    for name, value in url.query.items():
        texts = (value,) if isinstance(value, str) else value
        if SECRET.search(name):
            found |= set(texts)
        elif name == _ODBC:
            pairs = (part.partition("=") for text in texts for part in text.split(";"))
            found |= {value for key, _, value in pairs if SECRET.search(key)}
    return frozenset(str(text) for text in found if text)


def without_secrets(text: str, secrets: frozenset[str]) -> str:
    """``text`` with every secret in it as ``***``."""
    for secret in sorted(secrets, key=len, reverse=True):
        # A short one may be a part of any word.
        alone = len(secret) < _LONG_ENOUGH
        pattern = rf"(?<!\w){re.escape(secret)}(?!\w)" if alone else re.escape(secret)
        text = re.sub(pattern, "***", text)
    return text


def without_password(place: str) -> str:
    """What a user wrote as a server's URL, as it may be shown and stored.

    Raises:
        UsageError: it cannot be read.
    """
    return location_of(parse_url(place))


def default_name(place: str) -> str:
    """A source's name where the user gave none: its database's.

    Raises:
        UsageError: the URL cannot be read.
    """
    url = parse_url(place)
    database = url.database or ""
    if url.get_backend_name() == "postgresql":
        database = database or os.environ.get("PGDATABASE", "") or url.username or ""
    return database or url.host or url.get_backend_name()


def host_name(place: str) -> str:
    """The server's name, to tell databases of the same name apart.

    Raises:
        UsageError: the URL cannot be read.
    """
    url = parse_url(place)
    return url.host or url.get_backend_name()


def _with_port(url: URL) -> URL:
    port = _PORTS.get(url.get_backend_name())
    ours = url.host and url.port is None and "port" not in url.query
    if not ours or port is None or os.environ.get("PGPORT"):
        return url
    return url.set(port=port)
