"""What a file is, by its first bytes and its name, and which files a folder or glob holds."""

from __future__ import annotations

import glob
import json
import os
import stat
from typing import TYPE_CHECKING, Literal

from dbrag.errors import SourceUnreadable
from dbrag.sources import sqlite
from dbrag.sources.duck.marks import is_duckdb

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["sqlite", "duckdb", "data"]

_DUCKDB_EXTENSIONS = (".duckdb", ".ddb")
DATABASE_EXTENSIONS = (*sqlite.EXTENSIONS, *_DUCKDB_EXTENSIONS)


def kind_of(path: str, *, named: bool = False) -> Kind | str:
    """What the file at ``path`` is; else why it is nothing that can be read, as a phrase.

    Args:
        named: the user named this very file: a ``.txt`` is then taken for data.
    """
    from dbrag.sources.files.names import is_data_file

    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return "is not a file"
        if status.st_size and sqlite.is_sqlite(path):
            return "sqlite"
        if is_duckdb(path):
            return "duckdb"
        if is_data_file(path, named=named):
            return "data"
        if status.st_size == 0:
            return "sqlite"  # as SQLite has it, an empty file is an empty database
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if path.lower().endswith(DATABASE_EXTENSIONS):
        return "is not a SQLite or DuckDB database"
    return "is neither a database nor, by its name, a data file"


def is_kind(kind: str) -> bool:
    """Tell a kind from a reason."""
    return kind in ("sqlite", "duckdb", "data")


def files_below(folder: str) -> Iterator[str]:
    """Regular files below a folder, by path; and database names that lead nowhere.

    Hidden files and folders are left out, and so are indexes of dbrag.

    Raises:
        SourceUnreadable: the folder itself cannot be read.
    """

    def fail(error: OSError) -> None:
        if error.filename == folder:
            reason = error.strerror or str(error)
            raise SourceUnreadable(
                f"cannot read folder {folder!r}: {reason}", "check its permissions"
            ) from error

    for place, folders, files in os.walk(folder, onerror=fail):
        if "manifest.json" in files and is_index(place):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in sorted(files):
            if file.startswith("."):
                continue
            path = os.path.join(place, file)
            # A named pipe or a device would block, or never end.
            try:
                if stat.S_ISREG(os.stat(path).st_mode):
                    yield path
            except OSError:
                if os.path.lexists(path) and file.lower().endswith(DATABASE_EXTENSIONS):
                    yield path


def is_index(folder: str) -> bool:
    """True for the folder of an index of dbrag, whose files are not the user's data."""
    try:
        with open(os.path.join(folder, "manifest.json"), "rb") as file:
            head = json.loads(file.read(2**24))
    except (OSError, ValueError):
        return False
    return isinstance(head, dict) and str(head.get("format", "")).startswith("dbrag")


def is_glob(place: str) -> bool:
    """True for a pattern; a file that is really called so is none."""
    return glob.has_magic(place) and not os.path.lexists(place)


def files_of_glob(pattern: str) -> list[str]:
    """The regular files a pattern matches, by path; folders are searched by ``**`` only."""
    return sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))


def fixed_part(pattern: str) -> str:
    """The folder before the first wildcard of a pattern."""
    folder = os.path.dirname(pattern)
    while glob.has_magic(folder):
        folder = os.path.dirname(folder)
    return folder
