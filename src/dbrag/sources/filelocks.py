"""Reading a database file beside open connections without losing their locks.

POSIX drops every lock a process holds on a file as soon as *any* descriptor of
that file is closed in the process. Hashing a file, or reading its header, while
SQLite or DuckDB reads it in another thread would so take away the engine's lock and
let a writer change pages under the reader. So descriptors opened meanwhile are parked
and closed when the last session on the file ends.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

_lock = threading.Lock()
_sessions: Counter[str] = Counter()
_parked: dict[str, list[BinaryIO]] = {}


@contextmanager
def session_on(path: str) -> Iterator[None]:
    """Marks the file ``path`` as being read by a database engine."""
    path = os.path.realpath(path)
    with _lock:
        _sessions[path] += 1
    try:
        yield
    finally:
        with _lock:
            _sessions[path] -= 1
            if not _sessions[path]:
                del _sessions[path]
                for file in _parked.pop(path, ()):
                    file.close()


@contextmanager
def plain_read(path: str) -> Iterator[BinaryIO]:
    """The file ``path`` opened for reading bytes; closed when no session needs its locks.

    Raises:
        OSError: it cannot be opened.
    """
    # Resolving takes longer than opening: only where a session may be meant.
    real = os.path.realpath(path) if _sessions else ""
    file = open(path, "rb")  # noqa: SIM115
    try:
        yield file
    finally:
        with _lock:
            real = real or (os.path.realpath(path) if _sessions else "")
            if _sessions[real]:
                _parked.setdefault(real, []).append(file)
            else:
                file.close()
