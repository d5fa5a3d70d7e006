"""The files of ``ask`` and ``sql``: ``--csv FILE`` and ``--parquet FILE``.

They hold the whole result, exactly, whatever ``--max-rows`` says. They are checked
before anything is computed, and written whole or not at all. ``--csv -`` writes to standard
output, which then holds nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from dbrag.errors import DbragError, UsageError
from dbrag.interfaces.cli import complete, output
from dbrag.interfaces.cli.render import count
from dbrag.values import text_value

if TYPE_CHECKING:
    from dbrag.types import Answer, Execution

STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_COMPANIONS = ("-wal", "-shm", "-journal", ".wal")
"""Ends of the files that SQLite and DuckDB keep beside a database: changes not yet in it."""
_SPECIAL = frozenset(',"\r\n')


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--csv``, ``--parquet`` and ``--force``."""
    for option in (
        click.option("--force", is_flag=True, help="Let --csv and --parquet replace a file."),
        click.option(
            "--parquet",
            metavar="FILE",
            shell_complete=complete.files,
            help="Write the whole result to FILE, typed.",
        ),
        click.option(
            "--csv",
            metavar="FILE",
            shell_complete=complete.files,
            help='Write the whole result to FILE as text ("-": to standard output, nothing else).',
        ),
    ):
        command = option(command)
    return command


class ResultFiles:
    """Where the result goes beside the screen.

    Args:
        csv, parquet: paths, None for none; ``-`` is standard output for CSV.
        force: replace a file that is there.
        sources: what is read; a file of it is never replaced.

    Raises:
        UsageError: a path that cannot or must not be written.
    """

    def __init__(
        self,
        csv: str | None,
        parquet: str | None,
        *,
        force: bool = False,
        sources: Sequence[str] = (),
    ) -> None:
        self._force = force
        self.standard_output = csv in STANDARD_OUTPUT
        """Whether the CSV goes there: nothing else must."""
        if parquet in STANDARD_OUTPUT:
            raise UsageError(
                f"--parquet {parquet} would write bytes to standard output", "name a file"
            )
        if self.standard_output:
            csv = None
        self._targets = [
            (_checked(given, flag, force, sources), write)
            for given, flag, write in (
                (csv, "--csv", _write_csv),
                (parquet, "--parquet", write_parquet),
            )
            if given is not None
        ]
        if len({target for target, _ in self._targets}) < len(self._targets):
            raise UsageError("--csv and --parquet name the same file", "choose two files")

    def __bool__(self) -> bool:
        return bool(self._targets) or self.standard_output

    def write(self, answer: Answer) -> list[str]:
        """Write the result; a note for each file. Nothing is written without a result.

        Raises:
            DbragError: a file cannot be written; what was there before still is.
        """
        if answer.execution is None:
            return []
        notes = []
        if self.standard_output:
            data = answer.execution
            output.emit_lines(csv_lines([column.name for column in data.columns], data.rows))
        for target, write in self._targets:
            note = self._one(target, write, answer.execution)
            notes.append(f"{count(len(answer.execution.rows), 'row')} written to {target}{note}")
        return notes

    def _one(self, target: Path, write: Callable[[Path, Execution], str], data: Execution) -> str:
        scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            note = write(scratch, data)
            if target.exists() and not self._force:
                raise UsageError(f"{str(target)!r} exists", "choose another file, or add --force")
            scratch.replace(target)
        except OSError as error:
            reason = error.strerror or str(error)
            raise DbragError(
                f"cannot write {str(target)!r}: {reason}", "choose another file, or free some space"
            ) from error
        finally:
            scratch.unlink(missing_ok=True)
        return note


def _checked(given: str, flag: str, force: bool, sources: Sequence[str]) -> Path:
    hint = f"choose another file for {flag}"
    try:
        target = Path(given).expanduser().resolve()
        if not target.parent.is_dir():
            raise UsageError(f"there is no folder {str(target.parent)!r}", hint)
        if _is_companion(target, sources):
            raise UsageError(f"{given!r} belongs to a source, which is never written", hint)
        if target.exists():
            if not target.is_file():
                raise UsageError(f"{given!r} is not a file", hint)
            if _is_source(target, sources):
                raise UsageError(f"{given!r} belongs to a source, which is never written", hint)
            if not force:
                raise UsageError(f"{given!r} exists", f"{hint}, or add --force")
        scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
        scratch.touch()
        scratch.unlink()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot write {given!r}: {reason}", hint) from error
    return target


def _is_companion(target: Path, sources: Sequence[str]) -> bool:
    """Whether a file, there or not, has the name of one that an engine keeps beside a source."""
    for end in _COMPANIONS:
        if target.name.endswith(end) and len(target.name) > len(end):
            database = target.with_name(target.name.removesuffix(end))
            if database.is_file() and _is_source(database, sources):
                return True
    return False


def _is_source(target: Path, sources: Sequence[str]) -> bool:
    """Whether a file is, or lies in, what one of the sources names."""
    for spec in sources:
        name, separator, rest = spec.partition("=")
        places = [spec, rest] if separator and not set(name) & set("/\\:") else [spec]
        for place in places:
            path = place.partition("://")[2].removeprefix("/") if "://" in place else place
            path = path.split("*")[0].split("?")[0] if not os.path.lexists(path) else path
            root = Path(path).expanduser().resolve() if path else None
            if root is not None and (target == root or root in target.parents):
                return True
            if root is not None and root.exists() and root.samefile(target):
                return True
    return False


def _write_csv(path: Path, data: Execution) -> str:
    # A text that is damaged in the source keeps its bytes visible.
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.writelines(csv_lines([column.name for column in data.columns], data.rows))
    return ""


def csv_lines(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """RFC 4180 with line feeds; NULL is nothing, an empty text is ``""``."""
    for row in (names, *rows):
        yield ",".join(map(_csv_cell, row)) + "\n"


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    text = text_value(value)
    if text and not _SPECIAL.intersection(text) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


def write_parquet(path: Path | IO[bytes], data: Execution) -> str:
    """Write a result, typed; what to tell of it: repeated names get a number."""
    import pyarrow.parquet as pq

    from dbrag.sources.files.names import numbered

    table = data.table
    names = numbered(table.column_names)
    pq.write_table(table.rename_columns(names), path)
    changed = [f"{new!r}" for old, new in zip(table.column_names, names, strict=True) if old != new]
    return f" (repeated column names: {', '.join(changed)})" if changed else ""


def tell(notes: Sequence[str], *, quiet: bool) -> None:
    """Say what was written, on standard error."""
    if not quiet:
        for note in notes:
            output.note(note)
