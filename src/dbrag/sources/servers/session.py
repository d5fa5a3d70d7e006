"""``ServerSession``: one read-only transaction on a server."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, ExecutionError, LimitReached

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dbrag.sources.servers.engine import ServerEngine

log = logging.getLogger(__name__)


class ServerSession:
    """One read-only transaction on a server, used by one thread at a time."""

    def __init__(
        self,
        raw: Any,
        engine: ServerEngine,
        explain: Callable[[Exception], DbragError],
        timeout_s: float,
    ) -> None:
        self._raw = raw
        self._engine = engine
        self._explain = explain
        self._timeout_s = timeout_s
        self._busy = threading.Lock()
        self._cursor: Any = None
        self._begun = False
        self._started = 0.0
        self.spoiled = False
        """The connection must not be used again."""

    def execute(self, sql: str) -> Sequence[str]:
        """Start a statement; the names of its result columns, duplicates kept.

        Raises:
            ExecutionError: the server rejects it; UnknownName for an unknown name.
            SourceError: the connection is lost.
            LimitReached: the server's limits.
        """
        with self._busy:
            try:
                self._close_cursor()
                self._begin()
                self._started = time.monotonic()
                self._cursor = self._engine.cursor(self._raw)
                self._cursor.execute(sql)
                description = self._cursor.description
            except Exception as error:
                raise self._translated(error) from error
        return [column[0] for column in description or ()]

    def fetch(self, n: int) -> list[tuple[Any, ...]]:
        """The next at most ``n`` rows of the statement, empty at the end.

        Raises:
            ExecutionError, SourceError, LimitReached: as ``execute``.
        """
        with self._busy:
            if self._cursor is None:
                return []
            try:
                rows = list(self._cursor.fetchmany(n))
                if len(rows) < n:
                    self._close_cursor(whole=True)
                return rows
            except Exception as error:
                raise self._translated(error) from error

    def begin(self) -> None:
        """Start the transaction.

        Raises:
            SourceError: the connection is lost.
        """
        try:
            self._begin()
        except Exception as error:
            raise self._translated(error) from error

    def cancel(self) -> None:
        """Stop the running statement on the server; may be called from another thread."""
        # A late cancel would hit the next user of the connection.
        self.spoiled = True
        try:
            self._engine.cancel(self._raw)
        except Exception as error:
            log.debug("cancel: %s", type(error).__name__)

    def finish(self) -> bool:
        """End statement and transaction; True when the connection may be used again."""
        if not self._busy.acquire(timeout=1.0):
            return False  # a statement that not even a cancel has ended
        try:
            self._close_cursor()
            self._engine.end(self._raw)
        except Exception as error:
            log.debug("end of a session: %s", type(error).__name__)
            return False
        finally:
            self._busy.release()
        return not self.spoiled

    def _begin(self) -> None:
        if not self._begun:
            self._engine.begin(self._raw, self._timeout_s)
            self._begun = True

    def _close_cursor(self, whole: bool = False) -> None:
        """End the statement; one that has not ended by itself takes its transaction with it."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()
            if not whole:
                self._restart()

    def _restart(self) -> None:
        self._engine.end(self._raw)
        self._begun = False

    def _time_is_up(self) -> bool:
        # The server's clock started a little earlier.
        return time.monotonic() - self._started >= 0.95 * self._timeout_s

    def _translated(self, error: Exception) -> DbragError:
        ours = self._explain(error)
        if isinstance(ours, LimitReached) and self._time_is_up():
            ours = LimitReached(
                f"stopped by the server after {self._timeout_s:g} s, the time limit", ours.hint
            )
        elif not isinstance(ours, ExecutionError):
            self.spoiled = True
        return ours
