"""One data file to typed Parquet in the cache."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbrag.errors import UsageError
from dbrag.options import FileOptions
from dbrag.sources.files import cache as store
from dbrag.sources.files.cast import Misfit, arrow_type, cast
from dbrag.sources.files.names import (
    ARCHIVE_EXTENSION,
    ARROW_EXTENSIONS,
    JSON_EXTENSIONS,
    NAMED_EXTENSIONS,
    PARQUET_EXTENSIONS,
    SPREADSHEET_EXTENSIONS,
    numbered,
    split_name,
)
from dbrag.sources.files.plan import Plan, decide, evidence_for
from dbrag.sources.files.raw import RawTable
from dbrag.sources.files.unpack import Unreadable, check_size, members, unpack, unpack_member
from dbrag.sources.redact import FileRedaction

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})
_GROUP_ROWS = 122_880
_GROUP_BYTES = 64 << 20


class Changed(Exception):
    """The file was changed while it was read."""


@dataclass(frozen=True, slots=True)
class Job:
    """One file to convert.

    Attributes:
        path: absolute.
        options: the user's settings for it.
        where: the tables of ``dbrag.toml`` they come from, for messages.
        redaction: columns to leave out.
    """

    path: str
    options: FileOptions
    where: str = 'files."*"'
    redaction: FileRedaction | None = None

    def hides(self, table: str, column: str) -> bool:
        """Whether the column is left out."""
        return self.redaction is not None and self.redaction.hides(table, column)

    def mark(self) -> str:
        """Changes whenever the file, or how it is read, changes.

        Raises:
            OSError: it is gone.
        """
        mark = store.mark_of(self.path, self.options)
        if self.redaction is None:
            return mark
        return hashlib.sha256(f"{mark}\n{self.redaction.mark}".encode()).hexdigest()[:32]


def convert(job: Job, cache: Path) -> store.Entry:
    """The tables of one file, from the cache where they are already there.

    Raises:
        Unreadable: the file cannot be read.
        UsageError: a setting does not fit the file.
        SourceError: the cache cannot be written.
        OSError: the file cannot be opened.
    """
    for _ in range(2):
        try:
            entry = _convert(job, cache)
        except Changed:
            continue
        if entry.failed is not None:
            raise Unreadable(entry.failed)
        return entry
    raise Unreadable("is being written: it changed while it was read")


def _convert(job: Job, cache: Path) -> store.Entry:
    mark = job.mark()
    entry = store.load(cache, job.path, mark)
    if entry is not None:
        return entry
    with open(job.path, "rb"):
        pass  # a file that may not be read fails before anything is written
    import pyarrow as pa

    with store.work_folder(cache, job.path) as work:
        failed = None
        try:
            tables, skipped = _tables(job, work)
        except OSError as error:
            if error.errno in _FULL:
                raise store.cannot_write(cache, error) from error
            raise
        except Unreadable as error:
            tables, skipped, failed = [], [], str(error)
        except (pa.ArrowException, MemoryError) as error:
            first = (str(error) or "out of memory").splitlines()[0]
            tables, skipped, failed = [], [], f"cannot be converted: {first}"
        except UsageError:
            if _mark_now(job) != mark:
                raise Changed from None
            raise
        if _mark_now(job) != mark:
            raise Changed
        return store.publish(
            cache,
            job.path,
            mark,
            work / "out",
            tables,
            skipped,
            failed,
            alone=job.redaction is not None,
        )


def _mark_now(job: Job) -> str:
    try:
        return job.mark()
    except OSError:
        return ""


def _tables(job: Job, work: Path) -> tuple[list[store.Converted], list[tuple[str, str]]]:
    out = work / "out"
    out.mkdir(mode=0o700)
    tables: list[store.Converted] = []
    skipped: list[tuple[str, str]] = []
    stem, ending, packed = split_name(job.path)
    if ending == ARCHIVE_EXTENSION and not packed:
        infos = members(job.path, NAMED_EXTENSIONS)
        if not infos:
            raise Unreadable("holds no data file")
        size = 0
        for number, info in enumerate(infos):
            inner = work / f"member-{number}"
            name, kind, _ = split_name(info.filename)
            try:
                # No more is ever unpacked of a member than the archive says it has.
                check_size(size + info.file_size, os.path.getsize(job.path))
                size += info.file_size
                unpack_member(job.path, info, inner)
                tables += _of_plain(job, str(inner), name, kind, work, len(tables), skipped)
            except Unreadable as error:
                skipped.append((info.filename, str(error)))
            inner.unlink(missing_ok=True)
        if not tables:
            raise Unreadable(f"holds {skipped[0][0]!r}, which {skipped[0][1]}")
    else:
        path = job.path
        if packed:
            inner = work / "unpacked"
            unpack(path, packed, inner)
            path = str(inner)
        tables = _of_plain(job, path, stem, ending, work, 0, skipped)
    names = numbered([table.name for table in tables])
    return [replace(one, name=name) for name, one in zip(names, tables, strict=True)], skipped


def _of_plain(
    job: Job,
    path: str,
    name: str,
    ending: str,
    work: Path,
    first: int,
    skipped: list[tuple[str, str]],
) -> list[store.Converted]:
    """The tables of one file that is not packed, written to ``work/out``."""
    if not os.path.getsize(path):
        raise Unreadable("is empty")
    out = work / "out"
    tables: list[store.Converted] = []
    if ending in ARROW_EXTENSIONS or ending in PARQUET_EXTENSIONS:
        from dbrag.sources.files.arrow import copy_arrow

        gone = copy_arrow(
            path, ending, out / f"{first}.parquet", lambda column: job.hides(name, column)
        )
        return [store.Converted(name, f"{first}.parquet", redacted=gone)]
    for raw, delimiter in _read(job, path, name, ending, work, skipped):
        file = f"{first + len(tables)}.parquet"
        tables.append(_write(job, raw, out / file, delimiter))
        raw.remove()
    return tables


def _read(
    job: Job, path: str, name: str, ending: str, work: Path, skipped: list[tuple[str, str]]
) -> Iterator[tuple[RawTable, str | None]]:
    """The raw tables of a file, each with the delimiter of its cells if it has one."""
    options = job.options
    if ending in SPREADSHEET_EXTENSIONS:
        from dbrag.sources.files.excel import read_excel

        for raw in read_excel(path, name, work, options, skipped):
            yield raw, None
        return
    from dbrag.sources.files.encoding import to_utf8

    text = to_utf8(path, work / "utf8", options.encoding, job.path)
    if ending in JSON_EXTENSIONS:
        from dbrag.sources.files.jsonfile import read_json

        for raw in read_json(text, name, work, options, ending != ".json"):
            yield raw, None
        return
    from dbrag.sources.files.delimited import read_delimited

    raw = RawTable(work, name, lambda: evidence_for(options))
    yield raw, read_delimited(text, raw, options, ending)
    (work / "utf8").unlink(missing_ok=True)


def _write(job: Job, raw: RawTable, target: Path, delimiter: str | None) -> store.Converted:
    """Decide on the types of a raw table and write it as Parquet."""
    raw.finish()
    if not raw.columns:
        raise Unreadable("has no columns")
    evidence = [raw.evidence[name] for name in raw.columns]
    plans = decide(raw.columns, evidence, job.options, delimiter=delimiter)
    columns: list[Plan | None] = list(plans.columns)
    gone = [i for i, name in enumerate(raw.columns) if job.hides(raw.name, name)]
    for i in gone:
        columns[i] = None
    if len(gone) == len(columns):
        raise Unreadable("has only redacted columns")
    warnings = [*raw.warnings, *plans.warnings]
    while True:
        try:
            write_parquet(raw, columns, target)
            break
        except _ColumnMisfit as misfit:
            name = raw.columns[misfit.column]
            plan = plans.columns[misfit.column]
            line = raw.line_of(misfit.row)
            if plan.forced:
                raise UsageError(
                    f"{job.path!r} line {line}: column {name!r} holds {misfit.text!r}, which is "
                    f"no {plan.type}",
                    f"change types.{name} in [{job.where}], or the value",
                ) from None
            columns[misfit.column] = Plan(exact_nulls=plan.exact_nulls)
            warnings.append(
                f"column {name!r} is kept as text: {misfit.text!r} in line {line} is no {plan.type}"
            )
    redacted = tuple(raw.columns[i] for i in gone)
    guessed, warnings = (
        [note for note in notes if not any(name in note for name in redacted)]
        for notes in ([*raw.guessed, *plans.guessed], warnings)
    )
    return store.Converted(
        raw.name, target.name, raw.sheet, tuple(guessed), tuple(warnings), redacted
    )


class _ColumnMisfit(Exception):
    def __init__(self, column: int, row: int, text: str) -> None:
        super().__init__(text)
        self.column, self.row, self.text = column, row, text


def write_parquet(raw: RawTable, plans: Sequence[Plan | None], target: Path) -> None:
    """Write a raw table with its columns as planned, in row groups; no plan: left out."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema(
        [(name, arrow_type(p)) for name, p in zip(raw.columns, plans, strict=True) if p is not None]
    )
    done, waiting, rows, size = 0, [], 0, 0
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    with parquet.ParquetWriter(str(target), schema, compression="zstd") as writer:
        for texts in raw.batches():
            arrays = []
            for column, (array, plan) in enumerate(zip(texts, plans, strict=True)):
                if plan is None:
                    continue
                try:
                    arrays.append(cast(array, plan))
                except Misfit as misfit:
                    raise _ColumnMisfit(column, done + misfit.row, misfit.text) from None
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            waiting.append(batch)
            done += batch.num_rows
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                _flush(writer, waiting, schema)
                rows = size = 0
        _flush(writer, waiting, schema)


def _flush(writer: Any, waiting: list[Any], schema: Any) -> None:
    import pyarrow as pa

    if waiting:
        writer.write_table(pa.Table.from_batches(waiting, schema))
        waiting.clear()
