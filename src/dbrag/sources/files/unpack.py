"""Compressed files, unpacked into the cache's own folder under a limit."""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 64 << 30
"""Bytes that one file may unpack to."""
MAX_RATIO = 300
"""Times its size that a file may unpack to, once it is larger than ``FREE_BYTES``."""
FREE_BYTES = 64 << 20
_BLOCK = 1 << 20


class Unreadable(Exception):
    """This file cannot be read, and why: ``{path} {reason}`` reads as a sentence."""


def unpack(path: str, packed: str, target: Path) -> None:
    """Write what the file ``path`` holds to ``target``.

    Args:
        packed: the ending of its compression: ``.gz``, ``.bz2``, ``.xz`` or ``.zst``.

    Raises:
        Unreadable: it is damaged, or unpacks to more than the limits.
        OSError: reading or writing fails.
    """
    try:
        with _open(path, packed) as stream:
            copy_limited(stream, target, os.stat(path).st_size)
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise Unreadable(f"is damaged: {error}") from error
    except OSError as error:
        if error.errno is None:  # gzip and bz2 say so of bad data
            raise Unreadable(f"is damaged: {error}") from error
        raise


def _open(path: str, packed: str) -> IO[bytes]:
    if packed == ".gz":
        import gzip

        return cast("IO[bytes]", gzip.open(path, "rb"))
    if packed == ".bz2":
        import bz2

        return cast("IO[bytes]", bz2.open(path, "rb"))
    if packed == ".xz":
        return cast("IO[bytes]", lzma.open(path, "rb"))
    import pyarrow as pa

    return cast("IO[bytes]", pa.input_stream(path, compression="zstd"))


def copy_limited(stream: IO[bytes], target: Path, size: int) -> None:
    """Copy ``stream`` to the new file ``target``, readable by the user alone.

    Args:
        size: bytes of the packed data.

    Raises:
        Unreadable: more than ``MAX_BYTES``, or ``MAX_RATIO`` times ``size``.
    """
    done = 0
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        while block := stream.read(_BLOCK):
            done += len(block)
            check_size(done, size)
            file.write(block)


def check_size(done: int, size: int) -> None:
    """Refuse what unpacks to too much: ``done`` bytes so far, from ``size``.

    Raises:
        Unreadable: it is beyond the limits.
    """
    limit = min(MAX_BYTES, max(FREE_BYTES, size * MAX_RATIO))
    if done > limit:
        raise Unreadable(f"unpacks to more than {limit >> 20} MB: refused")


def members(path: str, endings: frozenset[str]) -> list[zipfile.ZipInfo]:
    """The data files within a zip archive; nothing is written.

    Raises:
        Unreadable: it is no zip archive, or holds too many files.
        OSError: it cannot be opened.
    """
    from dbrag.sources.files.names import is_hidden, split_name

    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise Unreadable(f"is no zip archive: {error}") from error
    if len(infos) > 10_000:
        raise Unreadable(f"holds {len(infos)} files, more than 10,000")
    return [
        info
        for info in infos
        if not info.is_dir()
        and not any(is_hidden(part) for part in info.filename.split("/") if part != "..")
        and split_name(info.filename)[1] in endings
        and not split_name(info.filename)[2]
    ]


def unpack_member(path: str, info: zipfile.ZipInfo, target: Path) -> None:
    """Write one file of a zip archive to ``target``.

    Raises:
        Unreadable: it is encrypted, damaged, or too large.
    """
    if info.flag_bits & 1:
        raise Unreadable(f"holds {info.filename!r} encrypted")
    try:
        with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
            copy_limited(stream, target, info.compress_size)
    except (zipfile.BadZipFile, NotImplementedError, zlib.error, EOFError, lzma.LZMAError) as error:
        raise Unreadable(f"holds {info.filename!r} damaged: {error}") from error


def check_office_file(path: str) -> None:
    """Refuse a spreadsheet whose parts unpack to more than the limits.

    Raises:
        Unreadable: it does.
        OSError: it cannot be opened.
    """
    if not zipfile.is_zipfile(path):
        return  # .xls is no archive
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(info.file_size for info in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise Unreadable(f"is damaged: {error}") from error
    limit = min(4 << 30, max(FREE_BYTES, os.stat(path).st_size * MAX_RATIO))
    if size > limit:
        raise Unreadable(f"unpacks to {size >> 20} MB, more than {limit >> 20} MB: refused")
