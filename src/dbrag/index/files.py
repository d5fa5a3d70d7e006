"""Files that survive a crash: durable writes, hard-linked copies, and clear errors."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dbrag.errors import DbragError, IndexUnusable

if TYPE_CHECKING:
    from collections.abc import Iterator

REBUILD = "dbrag index --force (with the same -s and --index) builds it anew"


@contextmanager
def translated(directory: Path, doing: str) -> Iterator[None]:
    """Turn the errors of files and of LanceDB into :class:`IndexUnusable`.

    Args:
        doing: what is being done, as in "cannot <doing> the index in …".
    """
    try:
        yield
    except DbragError:
        raise
    # LanceDB raises RuntimeError, OSError, ValueError and bare Exceptions alike.
    except Exception as error:
        raise _index_error(directory, doing, error) from error


def write_atomic(path: Path, data: bytes) -> None:
    """Replace a file's content at once: after a crash it is the old or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_tree(root: Path) -> None:
    """Force every file and folder below ``root`` to the disk, where the system can."""
    if os.name == "nt":
        return
    for folder, _, names in os.walk(root):
        for name in names:
            descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(folder)


def sync_folder(folder: str | Path) -> None:
    """Force a folder's entries (renames, new files) to the disk, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def link(source: Path, target: Path) -> None:
    """A hard link, or a copy where the file system has none."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOSPC):
            raise
        shutil.copyfile(source, target)


def link_tree(source: Path, target: Path) -> None:
    """Every file below ``source`` as a hard link (or copy) below ``target``, which must not exist.

    Only for files that nobody changes any more.
    """
    for folder, _, names in os.walk(source, onerror=_fail):
        place = target / os.path.relpath(folder, source)
        place.mkdir()
        for name in sorted(names):
            link(Path(folder) / name, place / name)


def _fail(error: OSError) -> None:
    raise error


def tree_bytes(root: Path) -> int:
    """Bytes of all files below ``root``, hard-linked ones once."""
    seen: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                status = os.stat(os.path.join(folder, name))
            except FileNotFoundError:  # a writer cleans up at the same time
                continue
            seen[status.st_dev, status.st_ino] = status.st_size
    return sum(seen.values())


def _index_error(directory: Path, doing: str, error: Exception) -> IndexUnusable:
    place = repr(str(directory))
    text = " ".join(str(error).split())
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT) or "o space left" in text or "os error 28" in text:
        return IndexUnusable(
            f"cannot {doing} the index in {place}: the disk is full",
            "free some space and run dbrag index again; what was indexed before is still there",
        )
    if number in (errno.EACCES, errno.EPERM, errno.EROFS) or "ermission denied" in text:
        return IndexUnusable(
            f"cannot {doing} the index in {place}: no permission",
            "choose another folder with --index DIR",
        )
    if "allow_pickle" in text:  # NumPy's advice for files that are none of its own
        return IndexUnusable(f"cannot {doing} the index in {place}: a file is damaged", REBUILD)
    reason = (error.strerror if isinstance(error, OSError) else None) or text[:300] or repr(error)
    hint = REBUILD
    if doing == "write" and (not directory.is_dir() or "llegal character" in text):
        hint = "choose another folder with --index DIR"  # here none can be made, or used by LanceDB
    return IndexUnusable(f"cannot {doing} the index in {place}: {reason}", hint)
