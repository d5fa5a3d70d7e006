"""From what a user names as ``--source`` to open sources."""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from dbrag.errors import SourceNotFound, SourceUnreadable, UsageError
from dbrag.sources import sqlite
from dbrag.sources.base import SkippedSource
from dbrag.sources.sql import SqlSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbrag.sources.base import Source

ENGINES = "SQLite"
"""Engines this version reads, for messages."""

_HINT = f"this version reads {ENGINES} files, folders of them, and sqlite:///PATH"


@dataclass(frozen=True, slots=True)
class _Found:
    """A database file; ``name`` is None where the user gave none."""

    name: str | None
    path: str
    origin: str


def open_sources(specs: Sequence[str]) -> tuple[list[Source], list[SkippedSource]]:
    """Find the databases that ``specs`` name; nothing is read of them but their first bytes.

    A spec is a SQLite file, a folder (each SQLite file below it becomes a source), an
    SQLAlchemy URL ``sqlite:///PATH``, or ``name=`` and one of these. A source is named by
    its file stem, made unique by its parent folder, then by a number.

    Returns:
        The sources, in the order of ``specs`` and within a folder by path, and the files
        of folders that look like databases and are none.

    Raises:
        UsageError: an unknown URL scheme, a name used twice.
        SourceNotFound, SourceUnreadable: a spec leads to no database.
    """
    if not specs:
        raise UsageError("no source given", "name one: --source PATH")
    found: list[_Found] = []
    skipped: list[SkippedSource] = []
    for spec in specs:
        name, place = _split_name(spec)
        path = os.path.abspath(_path_of(place))
        if os.path.isdir(path):
            inside, bad = _in_folder(path)
            if not inside and not bad:
                raise SourceNotFound(f"no database in folder {path!r}", _HINT)
            if name is not None and len(inside) != 1:
                raise UsageError(
                    f"the name {name!r} stands for folder {path!r}, which holds {len(inside)} "
                    "databases",
                    "name a single file, or leave the name out",
                )
            found += [_Found(name, file, path) for file in inside]
            skipped += bad
        else:
            _check_file(path, spec)
            found.append(_Found(name, path, path))
    found = _without_repeats(found)
    if not found:
        reasons = "; ".join(f"{s.location!r}: {s.reason}" for s in skipped[:3])
        raise SourceUnreadable(f"none of {len(skipped)} files is a database: {reasons}", _HINT)
    names = _unique_names(found)
    sources: list[Source] = [
        SqlSource(name, one.path, one.origin) for name, one in zip(names, found, strict=True)
    ]
    return sources, skipped


def _split_name(spec: str) -> tuple[str | None, str]:
    """``name=place`` in two; a path that exists as it is written is never split."""
    match = re.match(r"([^=/\\:]+)=(.+)", spec, re.DOTALL)
    if not match or os.path.lexists(os.path.expanduser(spec)):
        return None, spec
    name = match[1].strip()
    if not name:
        raise UsageError(f"source {spec!r} has an empty name", "write name=PATH")
    return name, match[2]


def _path_of(place: str) -> str:
    """The file path in a spec without name.

    Raises:
        UsageError: a URL of another engine, or without a path.
    """
    if not place.strip():
        raise UsageError(f"source {place!r} is empty", "name a path")
    if "\0" in place:
        raise UsageError(f"source {place!r} holds a NUL character", "name a path")
    scheme, separator, rest = place.partition("://")
    if not separator or not re.fullmatch(r"[A-Za-z][\w+.-]*", scheme):
        return os.path.expanduser(place)
    if scheme.lower().split("+")[0] != "sqlite":
        # The rest may hold a password: it is not repeated.
        raise UsageError(f"databases behind {scheme + '://…'!r} cannot be read yet", _HINT)
    # sqlite:///relative and sqlite:////absolute, as SQLAlchemy reads them. Characters that
    # have a meaning in URLs are taken as they are where such a file exists.
    path = rest.removeprefix("/")
    if not path or path == ":memory:":
        raise UsageError(f"source {place!r} names no file", "write sqlite:///PATH")
    if os.path.lexists(path):
        return path
    return unquote(path.partition("?")[0])


def _check_file(path: str, spec: str) -> None:
    """Raises where a file named by the user is no database."""
    reason = _not_a_database(path)
    if reason is None:
        return
    if not os.path.lexists(path):
        folder = os.path.dirname(path)
        siblings = os.listdir(folder) if os.path.isdir(folder) else []
        close = difflib.get_close_matches(os.path.basename(path), siblings, 1)
        hint = f"did you mean {os.path.join(folder, close[0])!r}?" if close else _HINT
        raise SourceNotFound(f"no such file or folder: {spec!r}", hint)
    raise SourceUnreadable(f"{path!r} {reason}", _HINT)


def _in_folder(folder: str) -> tuple[list[str], list[SkippedSource]]:
    """The databases below a folder by path, and the files that only look like one."""
    found, skipped = [], []
    for path in _files_below(folder):
        reason = _not_a_database(path)
        named_so = path.lower().endswith(sqlite.EXTENSIONS)
        if reason is None and (named_so or os.path.getsize(path)):
            found.append(path)
        elif named_so and reason is not None:
            skipped.append(SkippedSource(_stem(path), path, reason))
    return found, skipped


def _files_below(folder: str) -> Iterator[str]:
    def fail(error: OSError) -> None:
        if error.filename == folder:
            reason = error.strerror or str(error)
            raise SourceUnreadable(f"cannot read folder {folder!r}: {reason}") from error

    for place, folders, files in os.walk(folder, onerror=fail):
        folders.sort()
        for file in sorted(files):
            path = os.path.join(place, file)
            # A named pipe or a device would block, or never end.
            try:
                if stat.S_ISREG(os.stat(path).st_mode):
                    yield path
            except OSError:
                if os.path.lexists(path) and file.lower().endswith(sqlite.EXTENSIONS):
                    yield path


def _not_a_database(path: str) -> str | None:
    """Why the file is no SQLite database, None if it is (an empty file is one)."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return "is not a file"
        if status.st_size == 0 or sqlite.is_sqlite(path):
            return None
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return "is not a SQLite database"


def _without_repeats(found: list[_Found]) -> list[_Found]:
    """Each file once; the entry with a name wins."""
    named = {os.path.realpath(one.path) for one in found if one.name is not None}
    kept, seen = [], set()
    for one in found:
        real = os.path.realpath(one.path)
        if one.name is None and (real in named or real in seen):
            continue
        seen.add(real)
        kept.append(one)
    return kept


def _unique_names(found: list[_Found]) -> list[str]:
    """A name for each; letter case does not tell two names apart, as in SQL."""
    given = [one.name.casefold() for one in found if one.name is not None]
    for name, count in Counter(given).items():
        if count > 1:
            raise UsageError(f"the source name {name!r} is used twice", "give each its own name")
    stems = Counter(_stem(one.path).casefold() for one in found if one.name is None)
    taken = set(given)
    names = []
    for one in found:
        if one.name is not None:
            names.append(one.name)
            continue
        stem = _stem(one.path)
        if stems[stem.casefold()] > 1 or stem.casefold() in taken:
            stem = f"{os.path.basename(os.path.dirname(one.path))}_{stem}"
        name, number = stem, 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}_{number}"
        taken.add(name.casefold())
        names.append(name)
    return names


def _stem(path: str) -> str:
    base = os.path.basename(path)
    return os.path.splitext(base)[0] or base
