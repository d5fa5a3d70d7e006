"""Converted files in dbrag's cache: found again, replaced at once, never half written.

::

    CACHE/<hash of the user's path>/current.json       which generation holds, and of what
    CACHE/<hash of the user's path>/<mark>/0.parquet   one Parquet file per table
    CACHE/<hash of the user's path>/work-<pid>-…       of a conversion that runs

Folders are 0700 and files 0600: they hold the user's data.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from dbrag.errors import SourceError
from dbrag.options import FileOptions
from dbrag.sources.base import SkippedSource

VERSION = 3
"""Of the way in which files are read: a new one converts all again."""
_QUIET_S = 600
_LEFTOVER_S = 24 * 3600
_UNUSED_S = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Converted:
    """One table of a converted file.

    Attributes:
        file: Parquet file within its generation.
        redacted: columns that are not in it.
    """

    name: str
    file: str
    sheet: str | None = None
    guessed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """All tables of one user's file.

    Attributes:
        folder: the generation's folder.
        skipped: parts of the file that are no tables: (name, reason).
        failed: why the whole file cannot be read; it is not tried again until it changes.
    """

    mark: str
    folder: str
    tables: tuple[Converted, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    failed: str | None = None


def mark_of(path: str, options: FileOptions | None = None) -> str:
    """Changes whenever the file, or how it is read, changes.

    Raises:
        OSError: it is gone.
    """
    one = os.stat(path)
    parts = (VERSION, one.st_size, one.st_mtime_ns, one.st_ino, options and asdict(options))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def folder_of(cache: Path, path: str) -> Path:
    """Where the conversion of ``path`` (absolute) lies."""
    return cache / hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


def load(cache: Path, path: str, mark: str) -> Entry | None:
    """The conversion of ``path`` if it is of that mark and whole."""
    home = folder_of(cache, path)
    try:
        data = json.loads((home / "current.json").read_text(encoding="utf-8"))
        if data["mark"] != mark or data["version"] != VERSION or data["path"] != path:
            return None
        tables = tuple(
            Converted(
                t["name"],
                t["file"],
                t["sheet"],
                *(tuple(t.get(field, ())) for field in ("guessed", "warnings", "redacted")),
            )
            for t in data["tables"]
        )
        skipped = tuple((name, reason) for name, reason in data["skipped"])
        failed = data["failed"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    folder = home / mark
    if not all((folder / table.file).is_file() for table in tables):
        return None
    return Entry(mark, str(folder), tables, skipped, failed)


@contextmanager
def work_folder(cache: Path, path: str) -> Iterator[Path]:
    """A new folder for converting ``path``, removed at the end.

    Raises:
        SourceError: the cache cannot be written.
    """
    home = folder_of(cache, path)
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
        _remove_leftovers(home)
        work = Path(tempfile.mkdtemp(prefix=f"work-{os.getpid()}-", dir=home))
    except OSError as error:
        raise cannot_write(cache, error) from error
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def publish(
    cache: Path,
    path: str,
    mark: str,
    results: Path,
    tables: Sequence[Converted],
    skipped: Sequence[tuple[str, str]],
    failed: str | None = None,
    *,
    alone: bool = False,
) -> Entry:
    """Make the Parquet files in ``results`` the conversion of ``path``.

    Another process may do the same at the same time: either result stands.

    Args:
        alone: remove the conversion before this one at once, since it holds what this
            one leaves out.

    Raises:
        SourceError: the cache cannot be written.
    """
    home = folder_of(cache, path)
    target = home / mark
    data = {
        "version": VERSION,
        "path": path,
        "mark": mark,
        "tables": [asdict(table) for table in tables],
        "skipped": list(skipped),
        "failed": failed,
    }
    try:
        for table in tables:
            os.chmod(results / table.file, 0o600)
        try:
            os.rename(results, target)
        except OSError:
            # Another process was faster, or its files are damaged: ours are put in place.
            target.mkdir(mode=0o700, exist_ok=True)
            for table in tables:
                os.replace(results / table.file, target / table.file)
        before = _current(home)
        handle, name = tempfile.mkstemp(prefix="work-", suffix=".json", dir=home)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
        os.replace(name, home / "current.json")
    except OSError as error:
        raise cannot_write(cache, error) from error
    _remove_generations(home, {mark} if alone else {mark, before or mark})
    return Entry(mark, str(target), tuple(tables), tuple(skipped), failed)


def cannot_write(cache: Path, error: OSError) -> SourceError:
    """The error of a cache that is full or may not be written."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return SourceError(
        f"data files cannot be converted into {str(cache)!r}: {reason}",
        f"{'free some space, or ' if full else ''}name another folder: cache = … in dbrag.toml, "
        "or DBRAG_CACHE",
    )


def _current(home: Path) -> str | None:
    try:
        mark = json.loads((home / "current.json").read_text(encoding="utf-8"))["mark"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return mark if isinstance(mark, str) else None


def _remove_generations(home: Path, keep: set[str]) -> None:
    """All but the current generation and the one before: another process may read that."""
    for one in home.iterdir():
        if one.is_dir() and one.name not in keep and not one.name.startswith("work-"):
            shutil.rmtree(one, ignore_errors=True)


def _remove_leftovers(home: Path) -> None:
    """Work folders of processes that were killed.

    A process of another machine or container is not seen: what was written to just now is
    left alone.
    """
    for one in home.glob("work-*"):
        with suppress(OSError):
            parts = one.name.split("-")
            gone = len(parts) > 2 and parts[1].isdigit() and not _alive(int(parts[1]))
            files = [one, *one.glob("*"), *one.glob("out/*")]
            quiet_s = time.time() - max(file.stat().st_mtime for file in files)
            if quiet_s > (_QUIET_S if gone else _LEFTOVER_S):
                shutil.rmtree(one) if one.is_dir() else one.unlink()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def remove_orphans(cache: Path) -> None:
    """Delete what killed processes left, and week-old conversions whose file is gone."""
    with suppress(OSError):
        for home in cache.iterdir():
            _remove_leftovers(home)
            record = home / "current.json"
            with suppress(OSError, ValueError, KeyError, TypeError):
                old = time.time() - record.stat().st_mtime > _UNUSED_S
                path = json.loads(record.read_text(encoding="utf-8"))["path"] if old else None
                if path is not None and not os.path.lexists(path):
                    shutil.rmtree(home, ignore_errors=True)


def skipped_parts(path: str, entry: Entry) -> list[SkippedSource]:
    """The parts of a file that are no tables, for people."""
    return [SkippedSource(name, path, reason) for name, reason in entry.skipped]
