"""From a path, folder or pattern to the tables of the data files there."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatch

from dbrag.options import FileOptions, OpenOptions
from dbrag.sources.base import SkippedSource
from dbrag.sources.files import cache as store
from dbrag.sources.files import parquet
from dbrag.sources.files.convert import Job, convert
from dbrag.sources.files.names import (
    is_data_file,
    is_hidden,
    split_name,
    unique_table_names,
)
from dbrag.sources.files.plan import check_options
from dbrag.sources.files.table import FileTable
from dbrag.sources.files.unpack import Unreadable
from dbrag.sources.kinds import fixed_part
from dbrag.sources.redact import FileRedaction

_DEFAULT = FileOptions()


@dataclass(slots=True)
class _Found:
    """What lies at a place: files to convert, Parquet read in place, what is left out."""

    files: list[str]
    parts: list[parquet.Parts]
    skipped: list[SkippedSource]
    cache: str | None = None


def find_tables(
    path: str,
    options: OpenOptions,
    on_file: Callable[[str], None] | None = None,
    redaction: FileRedaction | None = None,
) -> tuple[list[FileTable], list[SkippedSource]]:
    """The tables of one data file, of all below a folder, or of those that match a pattern.

    Files are converted where the cache has them not; Parquet is read in place. A table is
    named by its file (by file and sheet where a spreadsheet has several), parts of one
    Parquet table by their folder; names that collide get their parent folder before them.

    Args:
        path: a file, a folder or a glob (``*``, ``?``, ``[…]``, ``**``).
        on_file: called with the path of each file before it is read.
        redaction: columns that must not be converted.

    Returns:
        The tables by path, and the files that cannot be read, each with the reason.

    Raises:
        UsageError: a setting of ``[files."…"]`` is wrong, or does not fit its file.
        SourceError: the cache cannot be written.
    """
    for pattern, one in options.files.items():
        check_options(one, f'files."{pattern}"')
    path = os.path.abspath(path)
    cache = os.path.realpath(options.cache) if options.cache is not None else None
    found = _Found([], [], [], cache)
    base = path
    if os.path.isdir(path):
        _walk(path, found)
    elif os.path.lexists(path):
        base = os.path.dirname(path)
        _take_named(path, found)
    else:
        base = fixed_part(path)
        _match(path, found)
    return _read(found, base, options, on_file, redaction)


def _match(pattern: str, found: _Found) -> None:
    files = []
    for one in sorted(glob.glob(pattern, recursive=True)):
        if os.path.isdir(one):
            if not is_hidden(os.path.basename(one)) and not pattern.endswith("**"):
                _walk(one, found)
        elif (
            _regular(one) and is_data_file(one, named=True) and not is_hidden(os.path.basename(one))
        ):
            files.append(one)
    _by_folder(files, found)


def _take_named(path: str, found: _Found) -> None:
    if not _regular(path):
        found.skipped.append(_skip(path, "is no regular file"))
    elif not is_data_file(path, named=True):
        _, ending, _ = split_name(path)
        found.skipped.append(_skip(path, f"has an ending that is no data file's: {ending!r}"))
    elif parquet.is_parquet(path):
        found.parts.append(parquet.Parts(path, (path,)))
    else:
        found.files.append(path)


def _walk(folder: str, found: _Found) -> None:
    """All data files below a folder, by path; dbrag's own cache and indexes are none of them."""
    if _is_own(folder, found.cache):
        return
    try:
        names = sorted(os.listdir(folder))
        if _INDEX_LOCK in names:
            return
        if (lake := parquet.lake_of(folder)) is not None:
            reason = f"is a {lake} table, which is not read: its files hold deleted rows, too"
            found.skipped.append(_skip(folder, reason))
            return
        whole = parquet.partitioned_folder(folder)
    except OSError as error:
        found.skipped.append(_skip(folder, error.strerror or str(error)))
        return
    if whole is not None:
        found.parts.append(whole)
        loose = [os.path.join(folder, n) for n in names if is_data_file(n) and not is_hidden(n)]
        _by_folder([one for one in loose if _regular(one)], found)
        return
    files = []
    for name in names:
        path = os.path.join(folder, name)
        if is_hidden(name):
            continue
        if os.path.isdir(path):
            if not os.path.islink(path):
                _walk(path, found)
        elif is_data_file(name) and _regular(path):
            files.append(path)
    _by_folder(files, found)


_INDEX_LOCK = "writer.lock"
"""Lies in every folder of an index, see ``dbrag.index.layout``."""


def _is_own(folder: str, cache: str | None) -> bool:
    """Whether a folder is the cache of converted files, or one that dbrag keeps beside it."""
    path = os.path.realpath(folder)
    if cache is None or path == cache:
        return path == cache
    above, name = os.path.split(path)
    return name in ("indexes", "weights") and above == os.path.dirname(cache)


def _by_folder(files: Iterable[str], found: _Found) -> None:
    folders: dict[str, list[str]] = {}
    for path in files:
        folders.setdefault(os.path.dirname(path), []).append(path)
    for folder, inside in folders.items():
        parts = [path for path in inside if parquet.is_parquet(path)]
        others = [path for path in inside if not parquet.is_parquet(path)]
        found.files += others
        found.parts += parquet.together(folder, parts, bool(others))


def _regular(path: str) -> bool:
    """A file, or a link to one; opening a pipe would wait for ever."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _read(
    found: _Found,
    base: str,
    options: OpenOptions,
    on_file: Callable[[str], None] | None,
    redaction: FileRedaction | None,
) -> tuple[list[FileTable], list[SkippedSource]]:
    tables: list[FileTable] = []
    skipped = list(found.skipped)
    converted = False
    work: list[tuple[str, parquet.Parts | None]] = [(path, None) for path in found.files]
    work += [(parts.path, parts) for parts in found.parts]
    for path, parts in sorted(work, key=lambda one: one[0]):
        own, where = options_of(path, base, options)
        if own.skip:
            continue
        try:
            if parts is not None:
                tables.append(parquet.table_of(parts, _printable(_stem(path, parts))))
                continue
            if options.cache is None:
                skipped.append(_skip(path, "needs a cache folder to be converted into"))
                continue
            if on_file is not None:
                on_file(path)
            entry = convert(Job(path, own, where, redaction), options.cache)
        except Unreadable as error:
            skipped.append(_skip(path, str(error)))
            continue
        except OSError as error:
            skipped.append(_skip(path, f"cannot be read: {error.strerror or error}"))
            continue
        converted = True
        skipped += store.skipped_parts(path, entry)
        tables += [_converted(path, entry, table) for table in entry.tables]
    if converted and options.cache is not None:
        store.remove_orphans(options.cache)
    wanted = [(one.name, os.path.basename(os.path.dirname(one.path))) for one in tables]
    names = unique_table_names(wanted)
    return [replace(one, name=name) for one, name in zip(tables, names, strict=True)], skipped


def _stem(path: str, parts: parquet.Parts) -> str:
    """The name of a Parquet table: its folder's where it has several files."""
    if os.path.isdir(parts.path):
        return os.path.basename(path) or "data"
    return split_name(path)[0]


def _converted(path: str, entry: store.Entry, table: store.Converted) -> FileTable:
    return FileTable(
        name=_printable(table.name),
        path=path,
        parquet=(os.path.join(entry.folder, table.file),),
        sheet=table.sheet,
        guessed=table.guessed,
        warnings=table.warnings,
        mark=f"{entry.mark}-{table.file}",
        redacted=table.redacted,
    )


def _printable(name: str) -> str:
    """A name whose bytes are no UTF-8 with ``\ufffd`` for what cannot be shown."""
    return os.fsencode(name).decode("utf-8", "replace")


def _skip(path: str, reason: str) -> SkippedSource:
    return SkippedSource(os.path.basename(path), path, reason)


def options_of(path: str, base: str, options: OpenOptions) -> tuple[FileOptions, str]:
    """The settings of one file, and the table of ``dbrag.toml`` that says them.

    A pattern is compared with the file's name, its path below ``base`` and its whole path.
    Of several patterns that match, later ones win where they say something.
    """
    result, places = _DEFAULT, []
    texts = (os.path.basename(path), os.path.relpath(path, base), path)
    for pattern, own in options.files.items():
        if not any(fnmatch(text, pattern) for text in texts):
            continue
        places.append(f'files."{pattern}"')
        said = {
            field.name: getattr(own, field.name)
            for field in fields(own)
            if getattr(own, field.name) != getattr(_DEFAULT, field.name)
        }
        if "types" in said:
            said["types"] = {**result.types, **own.types}
        result = replace(result, **said)
    # Where a message says [where]: any of these may have said it.
    return result, "] or [".join(places) or 'files."*"'
