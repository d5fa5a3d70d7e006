"""Where a run lies on disk: ``config.json``, ``records.jsonl``, ``summary.json``.

A record is one line, written and flushed when its question is done, so a run can be
killed at any moment and resumed: a torn last line is dropped, everything before it
counts. A run with another configuration is never mixed into an existing folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from dbrag.errors import UsageError
from dbrag.evaluation.record_check import fault, summary_fault
from dbrag.index.locks import owned

CONFIG, RECORDS, SUMMARY = "config.json", "records.jsonl", "summary.json"
LOCK = ".lock"
_ANEW = "take the file as it was written, or run it again into another --out"
_COSTS = ("seconds", "stages", "tokens")
_SCORES = ("n_tables", "where", "scores", "orders", "rerank", "told")
_SLIM = ("id", "db_id", "asked", *_SCORES, *_COSTS)
_TOLD = ("status", "agreement", "confidence", "votes_valid")

Record = Mapping[str, Any]


class RunFolder:
    """One run's folder, open for appending records.

    Args:
        path: made if missing.
        config: what makes two runs the same run, JSON-ready.
        resume: go on with the records that are there.

    Raises:
        UsageError: records are there without ``resume``, or of another configuration, or
            damaged; the folder cannot be written, or another process is writing it.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], *, resume: bool = False) -> None:
        self.path = path
        self.done: dict[str, Record] = {}
        wanted = json.loads(json.dumps(config))
        records = path / RECORDS
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = _taken(path)
            try:
                if records.exists():
                    self._check(wanted, resume)
                    self.done = {r["id"]: r for r in read_records(records, repair=True)}
                else:
                    write_json(path / CONFIG, wanted)
                # A lone surrogate in a model's SQL becomes its JSON escape.
                self._file: IO[str] = records.open("a", encoding="utf-8", errors="backslashreplace")
            except BaseException:
                os.close(self._lock)
                raise
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(
                f"cannot write the run to {str(path)!r}: {reason}", "choose another --out"
            ) from error

    def append(self, record: Record) -> None:
        """Write one record through to the file.

        Raises:
            UsageError: it cannot be written (a full disk, for one).
        """
        try:
            self._file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
            self._file.flush()
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(
                f"cannot write the run to {str(self.path)!r}: {reason}",
                "make room, then go on with --resume",
            ) from error
        self.done[record["id"]] = record

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write ``summary.json``, whole or not at all."""
        write_json(self.path / SUMMARY, summary)

    def close(self) -> None:
        """Close the file; the folder stays resumable."""
        if not self._file.closed:
            self._file.close()
            os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check(self, wanted: Mapping[str, Any], resume: bool) -> None:
        where = repr(str(self.path))
        if not resume:
            raise UsageError(
                f"{where} already holds a run", "go on with --resume, or choose another --out"
            )
        present = read_json(self.path / CONFIG, "choose another --out")
        if present != wanted:
            keys = sorted(key for key in {*present, *wanted} if present.get(key) != wanted.get(key))
            shown = ", ".join(
                f"{key} was {present.get(key)!r:.60}, is {wanted.get(key)!r:.60}" for key in keys
            )
            raise UsageError(
                f"{where} holds a run with another configuration: {shown}",
                "choose another --out",
            )


def _taken(path: Path) -> int:
    """The descriptor that keeps other processes from writing the folder.

    Raises:
        UsageError: one is writing it; both would answer the same questions.
    """
    descriptor, owner = owned(path / LOCK)
    if descriptor is None:
        raise UsageError(
            f"process {owner} is writing the run in {str(path)!r}",
            "wait until it has finished, or choose another --out",
        )
    return descriptor


def read_records(path: Path, *, repair: bool = False) -> list[dict[str, Any]]:
    """The records of a run in the order they were written; a torn last line is left out.

    Args:
        path: a ``records.jsonl`` (or a slim file), or the folder that holds one.
        repair: also cut the torn line off the file, so that it can be appended to.

    Raises:
        UsageError: there is none, a line before the last is damaged, one holds values that no
            record can, or a question stands there twice.
    """
    file = path / RECORDS if path.is_dir() else path
    try:
        data = file.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"cannot read the run {str(file)!r}: {reason}", "dbrag eval … --out DIR"
        ) from error
    lines = data.split(b"\n")
    whole = len(data) - len(lines[-1])  # what follows the last newline was never finished
    records: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines[:-1], start=1):
        place = f"line {number} of {str(file)!r}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines) - 1:
                whole -= len(line) + 1
                break
            raise UsageError(f"{place} is damaged", _ANEW) from error
        wrong = fault(record)
        if wrong:
            raise UsageError(f"{place} is no record: {wrong}", _ANEW)
        if record["id"] in records:
            raise UsageError(f"{place} holds the question {record['id']!r} again", _ANEW)
        records[record["id"]] = record
    if repair and whole < len(data):
        os.truncate(file, whole)
    return list(records.values())


def slim(record: Record) -> dict[str, Any]:
    """A record as it may be published: ids, scores and costs; no text, SQL or values.

    ``told`` keeps of an answer's prediction how sure it was.
    """
    error = record.get("error")
    kept = {key: record[key] for key in _SLIM if key in record}
    prediction = record.get("prediction") or {}
    told = {key: prediction[key] for key in _TOLD if key in prediction}
    told = {"told": told} if told else {}
    return {**kept, **told, "error": error["code"] if isinstance(error, Mapping) else error}


def write_slim(run: Path, target: Path) -> None:
    """Write a run's slim records to ``target`` (``.jsonl``), its summary beside it (``.json``).

    Raises:
        UsageError: the run is not finished, or cannot be read or written.
    """
    summary = read_json(run / SUMMARY)
    records = sorted(read_records(run), key=lambda record: _natural(record["id"]))
    lines = [json.dumps(slim(record), ensure_ascii=False) for record in records]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, "\n".join(lines) + "\n")
        write_json(target.with_suffix(".json"), summary)
    except OSError as error:
        raise UsageError(
            f"cannot write {str(target)!r}: {error.strerror or error}",
            "choose another file, or check its folder",
        ) from error


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically: readers see the old or the new file, never a part."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write text atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_json(path: Path, hint: str = "measure it again, with another --out") -> dict[str, Any]:
    """The JSON object of a run's file.

    Raises:
        UsageError: it cannot be read, or is no object; ``hint`` says what to do.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read {str(path)!r}, so the run cannot be used", hint) from error
    if not isinstance(value, dict):
        raise UsageError(f"{str(path)!r} is not a JSON object", hint)
    return value


def read_summary(run: Path) -> dict[str, Any]:
    """The summary of a finished run (its folder), or of a published one (its ``.json``).

    Raises:
        UsageError: there is none, or it holds what no summary can.
    """
    file = run / SUMMARY if run.is_dir() else run.with_suffix(".json")
    return usable(file, read_json(file))


def usable(file: Path, summary: dict[str, Any]) -> dict[str, Any]:
    """What a file tells of a run, each part of the right kind.

    Raises:
        UsageError: a part is of another.
    """
    wrong = summary_fault(summary)
    if wrong:
        raise UsageError(
            f"{str(file)!r} is none of dbrag eval: {wrong}", "take the file as it was written"
        )
    return summary


def _natural(id_: str) -> tuple[str, int]:
    stem, _, number = id_.rpartition("-")
    return (stem, int(number)) if number.isdigit() else (id_, -1)
