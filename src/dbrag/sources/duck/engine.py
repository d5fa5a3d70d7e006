"""A sealed DuckDB: it computes, spills into a folder of its own, and does nothing else.

The seal, in the order it is set: the user's database is opened read-only; extensions,
secrets and Python variables are out of reach; the file system and the network are
closed; the configuration is locked. What DuckDB itself cannot be forbidden (temporary
tables, writing into its own temporary folder) ``session.DuckSession`` does not let in:
it sends a single SELECT or nothing.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from dbrag.errors import SourceError
from dbrag.sources.duck.spill import make_folder, remove_folder
from dbrag.sources.statements import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duckdb import DuckDBPyConnection

LINGER_S = 2.0
"""How long an engine stays open without a session."""

SPILL = "spill"
"""Folder inside the engine's own, made by DuckDB when it is needed."""

_MAX_IDLE = 8
_SPILL = 32
"""Disk for intermediate results, as a multiple of the memory."""


def open_engine(
    *,
    memory_mb: int,
    threads: int | None,
    path: str | None = None,
    catalog: str | None = None,
    spill: str = "",
) -> DuckDBPyConnection:
    """A sealed engine over the database file ``path``, or over nothing.

    Args:
        memory_mb: memory for its tables and intermediate results.
        threads: its threads; None means the cores of this machine.
        catalog: name to give the database, which each cursor must then ``USE``; None
            takes the file's own.
        spill: folder for what does not fit into memory; "" means there is none.

    Raises:
        duckdb.Error: the file cannot be opened.
    """
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_unsigned_extensions": False,
        "allow_extension_repositories": "forbidden",
        "allow_persistent_secrets": False,
        "python_enable_replacements": False,
        "memory_limit": f"{memory_mb}MB",
        "threads": threads or os.cpu_count() or 1,
        "async_threads": 1,
        "temp_directory": spill,
        "max_temp_directory_size": f"{_SPILL * memory_mb}MB",
    }
    main = path if path is not None and catalog is None else ":memory:"
    connection = duckdb.connect(main, read_only=main == path, config=config)
    try:
        if path is not None and catalog is not None:
            file = path.replace("'", "''")
            connection.execute(f"ATTACH '{file}' AS {quoted(catalog)} (READ_ONLY)")
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        connection.execute("SET GLOBAL Calendar = 'gregorian'")
        # After this no folder can be set: the temporary one must be known by now.
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except BaseException:
        connection.close()
        raise
    return connection


class Engine:
    """An engine that is opened when needed and closed soon after its last use.

    Args:
        name: of the source, for messages.
        start: opens it, given a folder for what does not fit into memory.
        linger_s: seconds it stays open after its last use.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[str], DuckDBPyConnection],
        stop: Callable[[], None] = lambda: None,
        linger_s: float = LINGER_S,
    ) -> None:
        self._name = name
        self._start = start
        self._stop = stop
        self._linger_s = linger_s
        self._lock = threading.Lock()
        self._connection: DuckDBPyConnection | None = None
        self._spill: weakref.finalize[[str, int], Engine] | None = None
        self._timer: threading.Timer | None = None
        self._users = 0
        self._closed = False
        self._spoiled = False
        self.generation = 0

    @contextmanager
    def lease(self) -> Iterator[DuckDBPyConnection]:
        """The engine's first connection; take a ``cursor()`` of it. It stays open meanwhile.

        Raises:
            SourceError: the source was closed.
            duckdb.Error: it cannot be opened.
        """
        with self._lock:
            if self._closed:
                raise SourceError(f"source {self._name!r} is closed", "open it again")
            connection = self._opened()
            self._users += 1
        try:
            yield connection
        finally:
            with self._lock:
                self._users -= 1
                idle = self._users == 0
                if idle and (self._closed or self._spoiled):
                    self._shut()
                elif idle:
                    self._timer = threading.Timer(self._linger_s, self.release)
                    self._timer.daemon = True
                    self._timer.start()
            if idle:
                _remember_idle(self)

    def release(self) -> None:
        """Close it if nobody uses it; the next use opens it again."""
        with self._lock:
            if self._users == 0:
                self._shut()

    def close(self) -> None:
        """Close it for good; a session in use keeps it until it ends."""
        with self._lock:
            self._closed = True
            if self._users == 0:
                self._shut()

    def spoil(self) -> None:
        """After an error that DuckDB does not survive: start anew as soon as possible."""
        self._spoiled = True

    @property
    def is_open(self) -> bool:
        """True while the engine is there."""
        return self._connection is not None

    def _opened(self) -> DuckDBPyConnection:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._connection is None:
            folder, file = make_folder()
            # Also deleted at exit, should nobody close the source.
            self._spill = weakref.finalize(self, remove_folder, folder, file)
            try:
                self._connection = self._start(os.path.join(folder, SPILL))
            except BaseException:
                self._spill()
                raise
            self.generation += 1
            self._spoiled = False
        return self._connection

    def _shut(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()
            self._stop()
        if self._spill is not None:
            self._spill()
            self._spill = None


_idle_lock = threading.Lock()
_idle: OrderedDict[int, weakref.ref[Engine]] = OrderedDict()


def _remember_idle(engine: Engine) -> None:
    """Keep few idle engines: a folder may hold hundreds of DuckDB files."""
    with _idle_lock:
        _idle[id(engine)] = weakref.ref(engine)
        _idle.move_to_end(id(engine))
        over = [_idle.popitem(last=False)[1]() for _ in range(len(_idle) - _MAX_IDLE)]
    for old in over:
        if old is not None:
            old.release()
