"""What ``dbrag serve`` can be told, and what it refuses to start with."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path

from dbrag.errors import UsageError
from dbrag.options import leave_out

_MAKE = "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"
TOKEN_VARIABLE = "DBRAG_API_TOKEN"  # noqa: S105 - the name of a variable
MIN_TOKEN_CHARS = 16
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")
_ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Times in seconds, sizes in bytes unless named otherwise.

    Attributes:
        host: address to listen on; one that is not of this machine needs a token.
        port: 0 takes a free one.
        token: what clients send as ``Authorization: Bearer …``; None: nothing is asked.
        hosts: names, beside the address itself, under which the server is reached.
        origins: web pages of other origins that may use the API (CORS).
        workers: searches, statements and look-ups that run at once.
        asks: questions that a chat model answers at once; None: 1 with a model of this
            machine, which has one context, else 4.
        queue: jobs that may wait in each of the two lanes; more are refused (429).
        timeout_s: longest time of a job, waiting included.
        body_bytes: longest body of a request.
        body_s: longest time until a request has arrived, head and body each.
        rate: requests a minute of one address; 0: no limit.
        results: finished answers kept for download, at most.
        results_mb: their memory, megabytes, by estimate; the latest is always kept.
        history: entries kept; 0 keeps none.
        history_file: file of the history; None keeps it in memory only.
        grace_s: time for running jobs when the server stops.
        log_questions: write questions and statements into the log.
    """

    host: str = "127.0.0.1"
    port: int = 8321
    token: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    workers: int = 4
    asks: int | None = None
    queue: int = 64
    timeout_s: float = 300.0
    body_bytes: int = 262_144
    body_s: float = 10.0
    rate: int = 600
    results: int = 50
    results_mb: int = 256
    history: int = 500
    history_file: str | None = None
    grace_s: float = 10.0
    log_questions: bool = False

    def __post_init__(self) -> None:
        if not self.host.strip() or not _NAME.fullmatch(self.host):
            raise UsageError(
                f"--host must be an address or a name, not {self.host!r}",
                "leave it out: 127.0.0.1, this machine alone",
            )
        if not 0 <= self.port <= 65535:
            raise UsageError(
                f"--port must be 0 to 65535, not {self.port!r}", "--port 0 takes a free one"
            )
        for name in ("workers", "queue", "results", "results_mb", "body_bytes"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"{name} must be at least 1, not {getattr(self, name)!r}",
                    leave_out(ServeOptions, name),
                )
        if self.asks is not None and self.asks < 1:
            raise UsageError(
                f"asks must be at least 1, not {self.asks!r}", leave_out(ServeOptions, "asks")
            )
        for name in ("timeout_s", "body_s"):
            if not 0 < getattr(self, name) < float("inf"):
                value = getattr(self, name)
                raise UsageError(
                    f"{name} must be positive and finite, not {value!r}",
                    leave_out(ServeOptions, name),
                )
        for name in ("rate", "history", "grace_s"):
            if not getattr(self, name) >= 0:
                raise UsageError(
                    f"{name} must not be negative, not {getattr(self, name)!r}",
                    leave_out(ServeOptions, name),
                )
        for name in self.hosts:
            if not _NAME.fullmatch(name):
                raise UsageError(
                    f"--allow-host must be a name without scheme and port, not {name!r}",
                    "for example --allow-host dbrag.example.org",
                )
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise UsageError(
                    f"--allow-origin must be scheme://host[:port], not {origin!r}",
                    "for example --allow-origin https://app.example.org",
                )
        if self.token is not None:
            _check_token(self.token)
        elif not self.is_loopback:
            raise UsageError(
                f"without a token nothing but this machine may be served, not {self.host!r}",
                f"set {TOKEN_VARIABLE} or --token-file FILE, or leave --host out",
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback_host(self.host)


def is_loopback_host(host: str) -> bool:
    """Whether an address or name is that of this machine alone; wildcards are not."""
    if host.casefold() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(file: str | None, environ: os._Environ[str] | dict[str, str]) -> str | None:
    """The token of a file, else of ``DBRAG_API_TOKEN``; None where neither is given.

    Raises:
        UsageError: the file cannot be read, or what is given can be no token.
    """
    if file is None:
        token = environ.get(TOKEN_VARIABLE)
        if token is not None:
            _check_token(token, TOKEN_VARIABLE)
        return token
    try:
        with Path(file).expanduser().open("rb") as opened:
            data = opened.read(4097)
    except OSError as error:
        raise UsageError(
            f"cannot read the token from {file!r}: {error.strerror or error}",
            "write it: python -c 'import secrets; print(secrets.token_urlsafe(32))' > FILE",
        ) from error
    try:
        token = data.decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise UsageError(f"the token in {file!r} is not plain ASCII", _MAKE) from error
    _check_token(token, f"the token in {file!r}")
    return token


def _check_token(token: str, where: str = "the token") -> None:
    """Raises:
    UsageError: it is short, or not printable ASCII; it is not repeated in the message.
    """
    if len(token) < MIN_TOKEN_CHARS:
        raise UsageError(
            f"{where} has {len(token)} characters; a token needs at least {MIN_TOKEN_CHARS}", _MAKE
        )
    if not _TOKEN.fullmatch(token) or len(token) > 4096:
        raise UsageError(f"{where} must be one line of at most 4,096 printable ASCII signs", _MAKE)
