"""From what a user names as ``--source`` to open sources."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from dbrag.errors import SourceNotFound, SourceUnreadable, UsageError
from dbrag.options import OpenOptions
from dbrag.sources import kinds
from dbrag.sources.base import SkippedSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbrag.sources.base import Source

READS = (
    "SQLite and DuckDB files, CSV, Parquet, JSON and Excel files, folders and globs of them, "
    "and URLs of servers (postgresql://USER@HOST/DATABASE, mysql://…)"
)
"""What can be read, for messages."""

_HINT = f"dbrag reads {READS}"


@dataclass(frozen=True, slots=True)
class _Found:
    """A source to be; ``name`` is None where the user gave none."""

    name: str | None
    place: str
    origin: str
    kind: Literal["sqlite", "duckdb", "data", "server"]


def open_sources(
    specs: Sequence[str], options: OpenOptions | None = None
) -> tuple[list[Source], list[SkippedSource]]:
    """Find the sources that ``specs`` name; of files only the first bytes are read.

    A spec is a database file, a data file, a folder or a glob (each database file becomes a
    source, all data files together another), an SQLAlchemy URL, or ``name=`` and one of
    these. A source is named by its file stem, folder or database, made unique by its parent
    folder, then by a number.

    Returns:
        The sources, in the order of ``specs`` and within a folder by path, and the files
        of folders that look like databases and are none.

    Raises:
        UsageError: an unknown URL scheme, a name used twice.
        SourceNotFound, SourceUnreadable: a spec leads to nothing that can be read.
    """
    if not specs:
        raise UsageError("no source given", "name one: --source PATH")
    options = options or OpenOptions()
    found: list[_Found] = []
    skipped: list[SkippedSource] = []
    for spec in specs:
        inside, bad = _find(spec)
        found += inside
        skipped += bad
    found = _without_repeats(found)
    if not found:
        reasons = "; ".join(f"{s.location!r} {s.reason}" for s in skipped[:3])
        raise SourceUnreadable(f"none of {len(skipped)} files can be read: {reasons}", _HINT)
    names = _unique_names(found)
    sources = [_open(name, one, options) for name, one in zip(names, found, strict=True)]
    return sources, skipped


def _find(spec: str) -> tuple[list[_Found], list[SkippedSource]]:
    """What one spec stands for, and what in it cannot be read."""
    name, place = _split_name(spec)
    if _is_server(place):
        from dbrag.sources.servers.url import without_password

        return [_Found(name, place, without_password(place), "server")], []
    path = os.path.abspath(_path_of(place))
    if os.path.isdir(path):
        found, skipped = _in_folder(path, kinds.files_below(path))
        if not found and not skipped:
            raise SourceNotFound(f"no database and no data file in folder {path!r}", _HINT)
    elif kinds.is_glob(path):
        found, skipped = _in_folder(path, kinds.files_of_glob(path))
        if not found and not skipped:
            raise SourceNotFound(f"no file matches {path!r}", "quote the pattern: 'data/*.csv'")
    else:
        found, skipped = [_Found(None, path, path, _kind_of(path, spec))], []
    if name is None:
        return found, skipped
    if len(found) != 1:
        raise UsageError(
            f"the name {name!r} stands for {path!r}, which holds {len(found)} sources",
            "name a single file, or leave the name out",
        )
    return [_Found(name, found[0].place, found[0].origin, found[0].kind)], skipped


def _open(name: str, one: _Found, options: OpenOptions) -> Source:
    source: Source
    match one.kind:
        case "sqlite":
            from dbrag.sources.sql import SqlSource

            source = SqlSource(name, one.place, one.origin)
        case "duckdb":
            from dbrag.sources.duck.database import DuckDatabase

            source = DuckDatabase(name, one.place, one.origin, options)
        case "data":
            from dbrag.sources.files.source import DataFiles

            source = DataFiles(name, one.place, one.origin, options)
        case "server":
            from dbrag.sources.servers.open import open_server

            source = open_server(name, one.place, one.origin, options)
    if not options.redact:
        return source
    from dbrag.sources.redact import redacted

    return redacted(source, options.redact)


def _split_name(spec: str) -> tuple[str | None, str]:
    """``name=place`` in two; a path that exists as it is written is never split."""
    match = re.match(r"([^=/\\:]+)=(.+)", spec, re.DOTALL)
    if not match or os.path.lexists(os.path.expanduser(spec)):
        return None, spec
    name = match[1].strip()
    if not name:
        # What follows may be a URL with a password: it is not repeated.
        raise UsageError("a source has an empty name", "write name=PATH")
    return name, match[2]


def _is_server(place: str) -> bool:
    scheme, separator, _ = place.partition("://")
    if not separator or not re.fullmatch(r"[A-Za-z][\w+.-]*", scheme):
        return False
    return scheme.lower().split("+")[0] not in ("sqlite", "duckdb", "file")


def _path_of(place: str) -> str:
    """The file path in a spec without name.

    Raises:
        UsageError: no path at all, or a URL without one.
    """
    if not place.strip():
        raise UsageError(f"source {place!r} is empty", "name a path")
    if "\0" in place:
        raise UsageError(f"source {place!r} holds a NUL character", "name a path")
    scheme, separator, rest = place.partition("://")
    if not separator or not re.fullmatch(r"[A-Za-z][\w+.-]*", scheme):
        return os.path.expanduser(place)
    # sqlite:///relative and sqlite:////absolute, as SQLAlchemy reads them. Characters that
    # have a meaning in URLs are taken as they are where such a file exists.
    path = rest.removeprefix("/") if scheme.lower() != "file" else rest
    if not path or path == ":memory:":
        raise UsageError(f"source {place!r} names no file", f"write {scheme}:///PATH")
    if os.path.lexists(path):
        return path
    return unquote(path.partition("?")[0])


def _kind_of(path: str, spec: str) -> kinds.Kind:
    """The kind of a file named by the user; raises where it cannot be read."""
    kind = kinds.kind_of(path, named=True)
    if kinds.is_kind(kind):
        return kind  # type: ignore[return-value]
    if not os.path.lexists(path):
        folder = os.path.dirname(path)
        siblings = os.listdir(folder) if os.path.isdir(folder) else []
        close = difflib.get_close_matches(os.path.basename(path), siblings, 1)
        hint = f"did you mean {os.path.join(folder, close[0])!r}?" if close else _HINT
        raise SourceNotFound(f"no such file or folder: {spec!r}", hint)
    raise SourceUnreadable(f"{path!r} {kind}", _HINT)


def _in_folder(place: str, files: Iterable[str]) -> tuple[list[_Found], list[SkippedSource]]:
    """Of the files of a folder or glob: each database, all data files together, bad ones."""
    found: list[_Found] = []
    skipped: list[SkippedSource] = []
    has_data = False
    for path in files:
        kind = kinds.kind_of(path)
        named_so = path.lower().endswith(kinds.DATABASE_EXTENSIONS)
        if kind in ("sqlite", "duckdb"):
            # An empty file of any other name is no database.
            if named_so or os.path.getsize(path):
                found.append(_Found(None, path, place, kind))  # type: ignore[arg-type]
        elif kind == "data":
            has_data = True
        elif named_so:
            skipped.append(SkippedSource(_stem(path), path, kind))
    if has_data:
        found.append(_Found(None, place, place, "data"))
    return found, skipped


def _without_repeats(found: list[_Found]) -> list[_Found]:
    """Each place once; the entry with a name wins."""

    def key(one: _Found) -> str:
        return one.origin if one.kind == "server" else os.path.realpath(one.place)

    named = {key(one) for one in found if one.name is not None}
    kept, seen = [], set()
    for one in found:
        if one.name is None and (key(one) in named or key(one) in seen):
            continue
        seen.add(key(one))
        kept.append(one)
    return kept


def _unique_names(found: list[_Found]) -> list[str]:
    """A name for each; letter case does not tell two names apart, as in SQL."""
    given = [one.name.casefold() for one in found if one.name is not None]
    for name, count in Counter(given).items():
        if count > 1:
            raise UsageError(f"the source name {name!r} is used twice", "give each its own name")
    stems = Counter(_default_name(one).casefold() for one in found if one.name is None)
    taken = set(given)
    names = []
    for one in found:
        if one.name is not None:
            names.append(one.name)
            continue
        stem = _default_name(one)
        if stems[stem.casefold()] > 1 or stem.casefold() in taken:
            stem = f"{_parent_name(one)}_{stem}"
        name, number = stem, 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}_{number}"
        taken.add(name.casefold())
        names.append(name)
    return names


def _default_name(one: _Found) -> str:
    if one.kind == "server":
        from dbrag.sources.servers.url import default_name

        return default_name(one.place)
    if os.path.isdir(one.place):
        return os.path.basename(one.place) or "files"
    if kinds.is_glob(one.place):
        return os.path.basename(kinds.fixed_part(one.place)) or "files"
    return _stem(one.place)


def _parent_name(one: _Found) -> str:
    if one.kind == "server":
        from dbrag.sources.servers.url import host_name

        return host_name(one.place)
    place = kinds.fixed_part(one.place) if kinds.is_glob(one.place) else one.place
    return os.path.basename(os.path.dirname(place)) or "files"


def _stem(path: str) -> str:
    """The file name without its endings of format and compression."""
    from dbrag.sources.files.names import split_name

    return split_name(path)[0] or os.path.basename(path)
