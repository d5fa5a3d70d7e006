"""Locks of the operating system: released whatever ends the process, kill -9 too."""

from __future__ import annotations

import os
import sys
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dbrag.errors import IndexLocked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def writer_lock(path: Path) -> Iterator[None]:
    """Be the only process that writes an index.

    Raises:
        IndexLocked: another one is; its pid is named.
    """
    descriptor, owner = owned(path)
    if descriptor is None:
        raise IndexLocked(
            f"process {owner} is writing the index in {str(path.parent)!r}",
            "wait until it has finished, then try again",
        )
    try:
        yield
    finally:
        os.close(descriptor)


def owned(path: Path) -> tuple[int | None, str]:
    """Take the lock on a file, which is made; it holds until the descriptor is closed.

    Returns:
        The descriptor with this process's number, or None with that of the process that has it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not _lock(descriptor, shared=False):
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            return None, owner or "of unknown number"
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, str(os.getpid())


class ReaderLock:
    """Keeps a generation from being cleaned up while it is read.

    It ends with ``release``, or when the last one who holds this object lets it go.
    """

    def __init__(self, path: Path) -> None:
        """Raises ``FileNotFoundError`` when the generation is already gone."""
        descriptor = os.open(path, os.O_RDONLY)
        self._release = weakref.finalize(self, os.close, descriptor)
        _lock(descriptor, shared=True)

    def release(self) -> None:
        """Let go; may be called twice."""
        self._release()


def is_read(path: Path) -> bool:
    """Whether somebody holds a :class:`ReaderLock` on ``path``."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _lock(descriptor, shared=False)
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int, *, shared: bool) -> bool:
        # Windows itself refuses to delete files in use, so readers need no lock there.
        # Byte 1 GB of the file is locked: the pid at its start stays readable.
        if shared:
            return True
        try:
            os.lseek(descriptor, 2**30, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _lock(descriptor: int, *, shared: bool) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            # A file system without locks: work unguarded rather than not at all.
            return True
        return True
