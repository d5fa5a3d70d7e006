"""A chat model that remembers its replies: ``CachedModel``, a wrapper around any other.

One SQLite file in the cache folder, shared by processes. Its key is a hash of all that a
reply depends on: which model at which endpoint (local weights by their SHA-256), its
parameters, and the prompt. The prompt itself is not stored, the replies' text is; the
file is readable by its owner only. Replies that were sampled together stay together:
asking for five gives the same five again.

Every operation opens the file anew and is one transaction, so a process that is killed
leaves it whole. A file that cannot be read or written is told once, and the model answers
without it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dbrag.models.base import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from dbrag.models.base import ChatModel, Prompt

log = logging.getLogger(__name__)
T = TypeVar("T")

FILE_NAME = "replies.sqlite"
MAX_BYTES = 64_000_000
"""Of the file; some 100,000 replies. Beyond it the oldest go."""
BUSY_S = 2.0
"""How long to wait for another process before going on without the cache."""
FORMAT = 1
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS replies (number INTEGER PRIMARY KEY AUTOINCREMENT, "
    "key BLOB NOT NULL UNIQUE, model TEXT NOT NULL, replies TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS weights (path TEXT PRIMARY KEY, bytes INTEGER NOT NULL, "
    "changed INTEGER NOT NULL, sha256 TEXT NOT NULL)",
)


class CacheUnusable(Exception):
    """The file is damaged, of another version, or cannot be written; caught in here."""


@dataclass(frozen=True, slots=True)
class CacheState:
    """What ``dbrag models cache`` shows; ``problem`` is empty for a file that works."""

    path: str
    calls: int
    bytes: int
    problem: str = ""


class ReplyCache:
    """The file of replies in ``folder``; safe under several threads and processes.

    Args:
        max_bytes: size of the file beyond which the oldest entries go.
    """

    def __init__(self, folder: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.path = folder / FILE_NAME
        self._max_bytes = max_bytes
        self._told = False
        self._lock = threading.Lock()

    def get(self, key: bytes, n: int) -> list[Reply] | None:
        """The ``n`` replies under ``key``, or None."""
        if not self.path.exists():
            return None

        def read(connection: sqlite3.Connection) -> list[Reply] | None:
            row = connection.execute("SELECT replies FROM replies WHERE key = ?", (key,)).fetchone()
            return None if row is None else _replies(row[0], n)

        return self._tried(read)

    def put(self, key: bytes, model: str, replies: Sequence[Reply]) -> None:
        """Remember ``replies``; the oldest entries go where the file gets too big."""
        text = json.dumps([[r.text, r.logprob, r.finish] for r in replies])

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO replies (key, model, replies) VALUES (?, ?, ?)",
                (key, model, text),
            )
            self._shrink(connection)

        self._tried(write, writes=True)

    def weights_sha256(self, path: Path) -> str:
        """SHA-256 of a file of weights, computed once for each size and time of change.

        Raises:
            OSError: it cannot be read.
        """
        path = path.resolve()
        found = path.stat()
        key = (str(path), found.st_size, found.st_mtime_ns)

        def read(connection: sqlite3.Connection) -> str | None:
            sql = "SELECT sha256 FROM weights WHERE path = ? AND bytes = ? AND changed = ?"
            row = connection.execute(sql, key).fetchone()
            return str(row[0]) if row else None

        known = self._tried(read) if self.path.exists() else None
        if known is not None:
            return known
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO weights VALUES (?, ?, ?, ?)", (*key, digest))

        self._tried(write, writes=True)
        return digest

    def state(self) -> CacheState:
        """Entries and size; never raises."""
        if not self.path.exists():
            return CacheState(str(self.path), 0, 0)
        size = self.path.stat().st_size
        try:
            with closing(self._opened()) as connection:
                calls = connection.execute("SELECT count(*) FROM replies").fetchone()[0]
        except (sqlite3.Error, OSError, CacheUnusable) as error:
            return CacheState(str(self.path), 0, size, str(error))
        return CacheState(str(self.path), int(calls), size)

    def clear(self) -> None:
        """Delete the file, damaged or not.

        Raises:
            OSError: it cannot be deleted.
        """
        for suffix in ("", "-journal"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    # ---- the file -------------------------------------------------------------------

    def _opened(self) -> sqlite3.Connection:
        """A connection inside no transaction, the tables made.

        Raises:
            sqlite3.Error, OSError, CacheUnusable: the file cannot be used.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Made here and not by SQLite: replies quote the user's data.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        if os.name == "posix" and self.path.stat().st_mode & 0o077:  # copied, restored
            self.path.chmod(0o600)
        connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, FORMAT):
                raise CacheUnusable(f"it was written by another version of dbrag ({version})")
            if version == 0:
                connection.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _tried(self, work: Callable[[sqlite3.Connection], T], *, writes: bool = False) -> T | None:
        """What ``work`` gives in one transaction; None, told once, where the file fails."""
        try:
            with closing(self._opened()) as connection:
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                done = work(connection)
                connection.execute("COMMIT")
                return done
        except (sqlite3.Error, OSError, CacheUnusable) as error:
            self._tell(error)
            return None

    def _tell(self, error: Exception) -> None:
        with self._lock:
            if self._told:
                return
            self._told = True
        log.warning(
            "the reply cache %r cannot be used (%s): the model is asked without it; "
            "dbrag models cache --clear deletes the file",
            str(self.path),
            error,
        )

    def _shrink(self, connection: sqlite3.Connection) -> None:
        while _used_bytes(connection) > self._max_bytes:
            removed = connection.execute(
                "DELETE FROM replies WHERE number IN (SELECT number FROM replies "
                "ORDER BY number LIMIT (SELECT max(1, count(*) / 10) FROM replies))"
            ).rowcount
            if removed < 1:
                return


class CachedModel:
    """A chat model that asks ``model`` only for what it has not answered before.

    Replies from the cache have ``Reply.cached`` set and cost no tokens. Whatever else
    the wrapped model offers (``token_count``, ``load``) is passed through.

    Args:
        identity: which weights, or which endpoint; called at the first sample.
    """

    def __init__(self, model: ChatModel, cache: ReplyCache, identity: Callable[[], str]) -> None:
        self._model = model
        self._cache = cache
        self._identity_of = identity
        self._identity: str | None = None

    @property
    def name(self) -> str:
        """The wrapped model's."""
        return self._model.name

    @property
    def remote(self) -> bool:
        """The wrapped model's."""
        return self._model.remote

    @property
    def context_tokens(self) -> int:
        """The wrapped model's."""
        return self._model.context_tokens

    def sample(
        self,
        prompt: Prompt,
        n: int = 1,
        *,
        temperature: float = 0.0,
        max_tokens: int = 400,
        schema: Mapping[str, Any] | None = None,
        stop: Sequence[str] = (),
        seed: int = 0,
    ) -> list[Reply]:
        """All ``n`` from the cache, or all ``n`` from the model.

        Raises:
            ModelError: as the wrapped model; failures are not remembered.
        """
        parameters: dict[str, Any] = {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "schema": None if schema is None else dict(schema),
            "stop": tuple(stop),
            "seed": seed,
        }
        if self._identity is None:
            self._identity = self._identity_of()
        key = reply_key(self._identity, self.name, prompt, n, parameters)
        known = self._cache.get(key, n)
        if known is not None:
            return known
        replies = self._model.sample(
            prompt,
            n,
            temperature=temperature,
            max_tokens=max_tokens,
            schema=schema,
            stop=stop,
            seed=seed,
        )
        self._cache.put(key, self.name, replies)
        return replies

    def close(self) -> None:
        """Close the wrapped model."""
        self._model.close()

    def __getattr__(self, name: str) -> Any:
        if name == "_model":  # half-made, by copy or pickle: there is nothing to ask
            raise AttributeError(name)
        return getattr(self._model, name)


def reply_key(
    identity: str, name: str, prompt: Prompt, n: int, parameters: Mapping[str, Any]
) -> bytes:
    """SHA-256 over everything that a call's replies depend on.

    The order of a schema's keys counts: grammars follow it.
    """
    parts = [FORMAT, identity, name, n, dict(parameters), prompt.messages()]
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def _replies(text: str, n: int) -> list[Reply]:
    """The stored replies ``[n]``.

    Raises:
        CacheUnusable: it is not what ``put`` writes.
    """
    try:
        found = [
            Reply(str(said), logprob=logprob, finish=finish, cached=True)
            for said, logprob, finish in json.loads(text)
        ]
    except (ValueError, TypeError) as error:
        raise CacheUnusable("an entry is damaged") from error
    if len(found) != n or any(reply.finish not in ("stop", "length") for reply in found):
        raise CacheUnusable("an entry is damaged")
    return found


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
