"""What was asked: questions, their SQL, the tables, counts and times; never a value of a row.

It lives in memory and ends with the server. With a file it is appended as JSON lines, so
that a killed server loses at most the last line; a file that has grown to twice what is
kept is written anew. The file is readable by its owner only. An SQL statement may hold
values as literals, as the question does.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dbrag.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

log = logging.getLogger(__name__)

Verdict = Literal["right", "wrong"]
MAX_LINE_BYTES = 2_000_000
MAX_FILE_BYTES = 50_000_000


class EntryNotFound(UsageError):
    """No entry of that id is in the history."""

    code = "entry_not_found"


class History:
    """The latest entries by id, oldest first. Safe to share by threads.

    Args:
        count: entries kept; 0 keeps none.
        path: a file for them; None: memory only.

    Raises:
        UsageError: the file cannot be read or written, or is something else.
    """

    def __init__(self, count: int, path: str | Path | None = None) -> None:
        self._count = count
        self._entries: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._path = None if path is None or count == 0 else Path(path).expanduser()
        self._lines = 0
        if self._path is not None:
            self._read(self._path)

    @property
    def on(self) -> bool:
        """Whether anything is kept."""
        return self._count > 0

    def add(self, entry: Mapping[str, Any]) -> None:
        """Keep an entry (``id`` and JSON values); the oldest goes where there are too many."""
        if not self.on:
            return
        with self._lock:
            self._entries[str(entry["id"])] = {**entry, "verdict": None}
            while len(self._entries) > self._count:
                self._entries.popitem(last=False)
            self._append({"entry": entry})

    def judge(self, entry_id: str, verdict: Verdict) -> None:
        """Note that an answer was right or wrong.

        Raises:
            EntryNotFound: there is none.
        """
        with self._lock:
            self._get(entry_id)["verdict"] = verdict
            self._append({"id": entry_id, "verdict": verdict})

    def get(self, entry_id: str) -> dict[str, Any]:
        """A copy of an entry.

        Raises:
            EntryNotFound: there is none.
        """
        with self._lock:
            return dict(self._get(entry_id))

    def latest(
        self, limit: int, offset: int = 0, text: str = ""
    ) -> tuple[list[dict[str, Any]], int]:
        """Entries whose question holds ``text``, the latest first, and how many there are."""
        wanted = text.casefold()
        with self._lock:
            found = [
                dict(entry)
                for entry in reversed(self._entries.values())
                if wanted in str(entry.get("question", "")).casefold()
            ]
        return found[offset : offset + limit], len(found)

    def forget(self, entry_id: str) -> None:
        """Remove one entry, from the file too.

        Raises:
            EntryNotFound: there is none.
        """
        with self._lock:
            self._get(entry_id)
            del self._entries[entry_id]
            self._rewrite()

    def clear(self) -> None:
        """Remove all entries, from the file too."""
        with self._lock:
            self._entries.clear()
            self._rewrite()

    def _get(self, entry_id: str) -> dict[str, Any]:
        entry = self._entries.get(entry_id)
        if entry is None:
            raise EntryNotFound(
                f"there is nothing with the id {entry_id!r} in the history",
                "GET /api/v1/history lists what is kept",
            )
        return entry

    # ---- the file -------------------------------------------------------------------

    def _read(self, path: Path) -> None:
        try:
            if path.exists() and path.stat().st_size > MAX_FILE_BYTES:
                raise UsageError(
                    f"the history {str(path)!r} is larger than {MAX_FILE_BYTES:,} bytes",
                    "name another file: --history FILE",
                )
            data = path.read_bytes() if path.exists() else b""
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        except OSError as error:
            raise UsageError(
                f"cannot use {str(path)!r} for the history: {error.strerror or error}",
                "name another file: --history FILE, or leave it out",
            ) from error
        lines = data.split(b"\n")
        read = [one for one in map(_parsed, lines) if one is not None]
        filled = [line for line in lines if line.strip()]
        if filled and not read:
            raise UsageError(
                f"{str(path)!r} exists and is no history of dbrag", "name another file: --history"
            )
        if len(read) < len(filled):
            log.warning("%d lines of the history cannot be read", len(filled) - len(read))
        for one in read:
            self._replay(one)
        self._lines = len(filled)
        if lines[-1]:  # cut in the middle of a line: the next one may not be glued to it
            self._rewrite()

    def _replay(self, line: Mapping[str, Any]) -> None:
        entry = line.get("entry")
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            self._entries[entry["id"]] = {**entry, "verdict": line.get("verdict")}
            while len(self._entries) > self._count:
                self._entries.popitem(last=False)
        elif (known := self._entries.get(str(line.get("id")))) is not None:
            known["verdict"] = line.get("verdict")

    def _append(self, line: Mapping[str, Any]) -> None:
        if self._path is None:
            return
        if self._lines >= 2 * self._count:
            self._rewrite()
            return
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(_line(line))
            self._lines += 1
        except OSError as error:  # an answer is not lost for it
            log.warning("cannot write the history: %s", error.strerror or error)

    def _rewrite(self) -> None:
        if self._path is None:
            return
        lines: Sequence[Mapping[str, Any]] = [
            {
                "entry": {key: value for key, value in entry.items() if key != "verdict"},
                "verdict": entry.get("verdict"),
            }
            for entry in self._entries.values()
        ]
        try:
            # mkstemp makes a file that its owner alone can read.
            handle, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
            with os.fdopen(handle, "wb") as file:
                file.writelines(map(_line, lines))
            os.replace(name, self._path)
            self._lines = len(lines)
        except OSError as error:
            log.warning("cannot write the history: %s", error.strerror or error)


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode("ascii") + b"\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    if not line.strip() or len(line) > MAX_LINE_BYTES:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    known = isinstance(value, dict) and ("entry" in value or "verdict" in value)
    return value if known else None
