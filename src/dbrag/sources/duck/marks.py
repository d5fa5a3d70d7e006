"""Telling whether a DuckDB file changed, without opening it as a database."""

from __future__ import annotations

import hashlib
import os

from dbrag.sources import filestate
from dbrag.sources.filelocks import plain_read
from dbrag.sources.filestate import digest_of, file_error

_MAGIC = b"DUCK"
_MAGIC_AT = 8
_HEADERS_BYTES = 3 * 4096
"""The main header and two database headers, of which one is renewed at each checkpoint."""
_WHOLE_BYTES = 2**30
"""A larger file is not read for its fingerprint."""


def is_duckdb(path: str) -> bool:
    """True when the file carries DuckDB's mark.

    Raises:
        OSError: it cannot be read.
    """
    with plain_read(path) as file:
        return file.read(_MAGIC_AT + len(_MAGIC))[_MAGIC_AT:] == _MAGIC


def change_mark(path: str) -> tuple[int, ...]:
    """What differs after somebody wrote to the file or its log; () when it is gone."""
    mark: tuple[int, ...] = ()
    for part in _parts(path):
        mark += filestate.change_mark(part)
    return mark


def stamp(path: str) -> str:
    """Size, times, inode and headers of the file, and the same of its log.

    Raises:
        SourceNotFound, SourceUnreadable: the file is gone, or may not be read.
    """
    try:
        os.stat(path)
        with plain_read(path) as file:
            headers = file.read(_HEADERS_BYTES)
    except OSError as error:
        raise file_error(path, error) from error
    digest = hashlib.blake2b(headers, digest_size=16).hexdigest()
    return "-".join(map(str, (*change_mark(path), digest)))


def fingerprint(path: str) -> str:
    """BLAKE2b of the bytes of the file and its log; of a file over 1 GiB: its stamp.

    Raises:
        SourceNotFound, SourceUnreadable: the file is gone, or may not be read.
    """
    try:
        if os.stat(path).st_size > _WHOLE_BYTES:
            return stamp(path)
    except OSError as error:
        raise file_error(path, error) from error
    return digest_of(_parts(path))


def _parts(path: str) -> list[str]:
    """The file, and its write-ahead log where one holds something."""
    log = path + ".wal"
    try:
        return [path, log] if os.stat(log).st_size else [path]
    except OSError:
        return [path]
