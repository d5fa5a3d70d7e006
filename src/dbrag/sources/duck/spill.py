"""Private temporary folders for intermediate results, gone even after a crash.

A folder holds a locked file as long as its process lives. Folders whose lock is free were
left by a process that was killed; they may hold a user's data, so the next one deletes them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from contextlib import suppress

_PREFIX = "dbrag-duckdb-"
_ALIVE = "alive"
_YOUNG_S = 60.0
"""A folder without a lock may just be in the making."""

_lock = threading.Lock()
_swept = False


def make_folder() -> tuple[str, int]:
    """A new folder that nobody else may enter, and the open file that keeps it."""
    global _swept
    with _lock:
        if not _swept:
            _swept = True
            sweep(tempfile.gettempdir())
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    file = os.open(os.path.join(folder, _ALIVE), os.O_CREAT | os.O_RDWR, 0o600)
    _try_lock(file)
    return folder, file


def remove_folder(folder: str, file: int) -> None:
    """Delete a folder and let go of its lock."""
    with suppress(OSError):
        os.close(file)
    shutil.rmtree(folder, ignore_errors=True)


def sweep(place: str) -> None:
    """Delete the folders below ``place`` that this user's dead processes left."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _sweep_one(entry.path)


def _sweep_one(folder: str) -> None:
    status = os.stat(folder, follow_symlinks=False)
    mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    if not mine or time.time() - status.st_mtime < _YOUNG_S:
        return
    try:
        file = os.open(os.path.join(folder, _ALIVE), os.O_RDWR)
    except FileNotFoundError:
        shutil.rmtree(folder, ignore_errors=True)
        return
    if _try_lock(file):
        remove_folder(folder, file)
    else:
        os.close(file)


def _try_lock(file: int) -> bool:
    """Lock the file for this process; False where another holds it, or nobody can tell."""
    try:
        import fcntl
    except ImportError:  # Windows: a file in use cannot be deleted there
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
