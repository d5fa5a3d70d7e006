"""Finished answers kept in memory, to be shown again and downloaded: few, and not for ever."""

from __future__ import annotations

import json
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from sys import getsizeof
from typing import IO, TYPE_CHECKING, Any

from dbrag.errors import UsageError
from dbrag.values import json_value

if TYPE_CHECKING:
    from dbrag.types import Answer, Execution

_MB = 2**20
_LOOKED_AT = 1000
_CHUNK_CHARS = 65_536
_IN_MEMORY = 8 * _MB

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
}


class ResultGone(UsageError):
    """The result was never there, or had to make place for later ones."""

    code = "result_not_found"


class Results:
    """The latest answers by id, up to a number and a size; the very latest always.

    Safe to share by threads.

    Args:
        count: answers kept.
        megabytes: of memory, estimated.
    """

    def __init__(self, count: int, megabytes: int) -> None:
        self._count = count
        self._limit = megabytes * _MB
        self._kept: OrderedDict[str, tuple[Answer, int]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, result_id: str, answer: Answer) -> None:
        """Keep an answer that has a result; the oldest go where there are too many."""
        if answer.execution is None:
            return
        # The trace holds every reply of the model and is told by then.
        entry = replace(answer, trace=()), estimated_bytes(answer)
        with self._lock:
            self._kept[result_id] = entry
            while len(self._kept) > 1 and (
                len(self._kept) > self._count or self._bytes() > self._limit
            ):
                self._kept.popitem(last=False)

    def get(self, result_id: str) -> Answer:
        """The answer.

        Raises:
            ResultGone: it is not kept.
        """
        with self._lock:
            entry = self._kept.get(result_id)
        if entry is None:
            raise ResultGone(
                f"there is no result {result_id!r} (any more)",
                "the latest ones are kept: ask again, or run its SQL",
            )
        return entry[0]

    def drop(self, result_id: str) -> None:
        """Forget one; of none, nothing happens."""
        with self._lock:
            self._kept.pop(result_id, None)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._kept.clear()

    def size(self) -> tuple[int, int]:
        """How many, and their estimated bytes."""
        with self._lock:
            return len(self._kept), self._bytes()

    def _bytes(self) -> int:
        return sum(size for _, size in self._kept.values())


def estimated_bytes(answer: Answer) -> int:
    """Memory of the rows of an answer and its readings, by a look at some of them."""
    executions = [answer.execution, *(reading.execution for reading in answer.readings)]
    return sum(_bytes_of(one) for one in executions if one is not None)


def _bytes_of(execution: Execution) -> int:
    rows = execution.rows
    step = max(1, len(rows) // _LOOKED_AT)
    some = list(islice(rows, 0, None, step))
    if not some:
        return 0
    size = sum(getsizeof(row) + sum(map(getsizeof, row)) for row in some)
    return size * len(rows) // len(some)


def execution_of(answer: Answer, reading: int | None) -> Execution:
    """The rows of the answer, or of one of its readings, counted from 0.

    Raises:
        UsageError: there is no such reading.
    """
    if reading is None:
        assert answer.execution is not None  # noqa: S101 - only such answers are kept
        return answer.execution
    if reading >= len(answer.readings):
        raise UsageError(
            f"the answer has {len(answer.readings)} other readings; there is none {reading!r}",
            "readings are counted from 0",
        )
    return answer.readings[reading].execution


def read_as(answer: Answer, reading: int | None) -> Answer:
    """The answer, or what it would be by one of its readings, counted from 0.

    Raises:
        UsageError: there is no such reading.
    """
    if reading is None:
        return answer
    execution = execution_of(answer, reading)
    program = answer.readings[reading].program
    return replace(answer, execution=execution, program=program, tables=program.tables)


def page(execution: Execution, offset: int, limit: int) -> dict[str, Any]:
    """Some rows of a result, and where they stand in it."""
    rows = execution.rows[offset : offset + limit]
    return {
        "columns": [{"name": c.name, "type": c.type} for c in execution.columns],
        "rows": [[json_value(value) for value in row] for row in rows],
        "offset": offset,
        "row_count": len(execution.rows),
    }


def csv_chunks(execution: Execution) -> Iterator[bytes]:
    """The result as ``--csv`` writes it, in pieces."""
    from dbrag.interfaces.cli.export import csv_lines

    lines = csv_lines([column.name for column in execution.columns], execution.rows)
    for text in _joined(lines):
        yield text.encode("utf-8", "backslashreplace")


def json_chunks(execution: Execution) -> Iterator[bytes]:
    """``{columns, rows, row_count}`` with all rows, exact values, in pieces."""
    columns = [{"name": c.name, "type": c.type} for c in execution.columns]

    def parts() -> Iterator[str]:
        yield f'{{"columns":{json.dumps(columns)},"row_count":{len(execution.rows)},"rows":['
        for i, row in enumerate(execution.rows):
            yield ("," if i else "") + json.dumps([json_value(value) for value in row])
        yield "]}"

    for text in _joined(parts()):
        yield text.encode("ascii")


def parquet_file(execution: Execution) -> IO[bytes]:
    """The result as ``--parquet`` writes it, at its beginning; closed by the caller."""
    from dbrag.interfaces.cli.export import write_parquet

    file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
    try:
        write_parquet(file, execution)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def file_chunks(file: IO[bytes]) -> Iterator[bytes]:
    """A file in pieces; closed at the end."""
    with file:
        while chunk := file.read(_CHUNK_CHARS):
            yield chunk


def _joined(parts: Iterator[str]) -> Iterator[str]:
    """Longer texts out of short ones."""
    waiting: list[str] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= _CHUNK_CHARS:
            yield "".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield "".join(waiting)
