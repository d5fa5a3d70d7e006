"""The user's own Parquet: read in place, one file, many parts, or folders of column values."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from dbrag.sources.files.cache import mark_of
from dbrag.sources.files.names import PARQUET_EXTENSIONS, is_hidden
from dbrag.sources.files.table import FileTable
from dbrag.sources.files.unpack import Unreadable

_VALUE_FOLDER = re.compile(r"[^=/]+=[^/]*")
_PART = re.compile(
    r"(?P<stem>.*?)[-_. ]?(?:\d+|[0-9a-f]{8}-[0-9a-f-]{27,})(?:[-_.].*)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Parts:
    """Parquet files that are one table.

    Attributes:
        path: the file, or the folder of the parts.
        files: absolute, sorted.
    """

    path: str
    files: tuple[str, ...]
    partitioned: bool = False


def is_parquet(path: str) -> bool:
    """Whether its name ends as that of a Parquet file."""
    return path.lower().endswith(tuple(PARQUET_EXTENSIONS))


def partitioned_folder(folder: str) -> Parts | None:
    """A folder whose data lies in folders of column values (``year=2024``), else None.

    Raises:
        OSError: it cannot be listed.
    """
    inner = [one for one in os.scandir(folder) if not is_hidden(one.name) and one.name[0] != "_"]
    folders = [one for one in inner if one.is_dir()]
    if not folders or not all(_VALUE_FOLDER.fullmatch(one.name) for one in folders):
        return None
    if any(is_parquet(one.name) for one in inner if one.is_file()):
        return None
    files: list[str] = []
    for root, below, names in os.walk(folder):
        below[:] = sorted(one for one in below if not is_hidden(one) and one[0] != "_")
        files += [
            os.path.join(root, name)
            for name in sorted(names)
            if is_parquet(name) and not is_hidden(name) and name[0] != "_"
        ]
    return Parts(folder, tuple(files), True) if files else None


def lake_of(folder: str) -> str | None:
    """The kind of table format whose Parquet files alone do not say which rows hold."""
    if os.path.isdir(os.path.join(folder, "_delta_log")):
        return "Delta Lake"
    if os.path.isdir(os.path.join(folder, ".hoodie")):
        return "Hudi"
    metadata = os.path.join(folder, "metadata")
    if os.path.isdir(metadata) and os.path.isdir(os.path.join(folder, "data")):
        names = os.listdir(metadata)
        if any(name.endswith(".metadata.json") for name in names):
            return "Iceberg"
    return None


def together(folder: str, files: Sequence[str], others: bool) -> list[Parts]:
    """The Parquet files of one folder: one table if they are parts of one, else each its own.

    Args:
        others: the folder holds other data files, too.
    """
    alone = [Parts(path, (path,)) for path in files]
    if len(files) < 2 or others:
        return alone
    stems = set()
    for path in files:
        match = _PART.fullmatch(os.path.splitext(os.path.basename(path))[0])
        stems.add(match["stem"].casefold() if match else path)
    if len(stems) > 1 or not _same_schema(files):
        return alone
    return [Parts(folder, tuple(files))]


@lru_cache(maxsize=100_000)
def _schema(path: str, mark: str) -> Any:
    """The schema of a file as it was at that mark: footers are read once, not at every look."""
    from pyarrow import parquet

    schema = parquet.read_schema(path).remove_metadata()
    return _known.setdefault(schema.to_string(), schema)


_known: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Equal schemas, once each, as long as somebody uses them."""


def _same_schema(files: Iterable[str]) -> bool:
    import pyarrow as pa

    first = None
    try:
        for path in files:
            schema = _schema(path, mark_of(path))
            if first is not None and not schema.equals(first):
                return False
            first = schema
    except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeEncodeError):
        return False  # each is looked at on its own
    return True


def table_of(parts: Parts, name: str) -> FileTable:
    """Parquet files as a table, each of them looked at.

    Raises:
        Unreadable: one of them is no Parquet, or the parts do not fit together. Without it
            the table would lack rows, so all is left out.
        OSError: one cannot be opened.
    """
    import pyarrow as pa

    schemas: list[Any] = []
    digest = hashlib.sha256()
    for path in parts.files:
        mark = mark_of(path)
        try:
            schema = _schema(path, mark)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            inside = f"holds {os.path.basename(path)!r}, which " if len(parts.files) > 1 else ""
            first = str(error).splitlines()[0]
            raise Unreadable(f"{inside}is no Parquet file: {first}") from error
        except UnicodeEncodeError as error:
            raise Unreadable("has a path that is no UTF-8, which Arrow cannot open") from error
        if not any(schema is other for other in schemas):
            schemas.append(schema)
        digest.update(mark.encode() + os.fsencode(path) + b"\0")
    try:
        pa.unify_schemas(schemas)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise Unreadable(f"has parts whose columns differ: {error}") from error
    guessed: tuple[str, ...] = ()
    if len(parts.files) > 1:
        guessed = (f"{len(parts.files)} files as one table",)
    mark = digest.hexdigest()[:32]
    return FileTable(name, parts.path, parts.files, parts.partitioned, None, guessed, (), mark)
