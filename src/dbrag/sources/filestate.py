"""Whether a user's file is there and as it was, told without opening it as a database."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from dbrag.errors import SourceError, SourceNotFound, SourceUnreadable
from dbrag.sources.filelocks import plain_read

if TYPE_CHECKING:
    from collections.abc import Iterable

_BLOCK_BYTES = 2**20


def change_mark(path: str) -> tuple[int, ...]:
    """Size, times and inode: what differs after somebody wrote to a file; () when it is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def digest_of(paths: Iterable[str]) -> str:
    """BLAKE2b over the bytes of files that belong together.

    Raises:
        SourceNotFound, SourceUnreadable: one is gone, or may not be read.
    """
    digest = hashlib.blake2b(digest_size=32)
    for path in paths:
        try:
            with plain_read(path) as file:
                while block := file.read(_BLOCK_BYTES):
                    digest.update(block)
        except OSError as error:
            raise file_error(path, error) from error
        digest.update(b"\0end of file\0")
    return digest.hexdigest()


def file_error(path: str, error: OSError) -> SourceError:
    """An error of the operating system as one of ours."""
    if isinstance(error, FileNotFoundError):
        return SourceNotFound(f"no file {path!r}", "was it moved? name its new place")
    reason = error.strerror or str(error)
    return SourceUnreadable(f"cannot read {path!r}: {reason}", "check its permissions")
