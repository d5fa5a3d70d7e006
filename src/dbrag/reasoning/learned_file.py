"""The file of learned pairs: questions with the SQL that answers them.

Plain SQL that a person can read, edit and keep under version control::

    -- question: How many customers live in each city?
    -- source: shop
    SELECT city, COUNT(*) FROM customers GROUP BY city;

A pair begins with its ``-- question:`` line; ``-- source:`` may follow (without it, the one
open source that has the tables); the statement reaches to the next pair. Nothing in the
file is trusted: statements pass the guard each time they are used.
"""

from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbrag.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_FILE_BYTES = 50_000_000
ANOTHER = "mend it, or name another: DBRAG_LEARNED=FILE (off for none)"
_QUESTION = re.compile(r"--\s*question\s*:(.*)", re.IGNORECASE)
_SOURCE = re.compile(r"--\s*source\s*:(.*)", re.IGNORECASE)
_HEAD = (
    "-- Questions and the SQL that answers them, for dbrag (dbrag learn --help).\n"
    "-- Edit it as you like: each pair begins with its question line.\n\n"
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and its statement; ``source`` is empty where the file names none.

    ``line`` and ``end`` (exclusive) are the lines of the file, from 1.
    """

    question: str
    sql: str
    source: str = ""
    line: int = 0
    end: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Two pairs with the same key are the same question of the same source."""
        return fold(self.question), self.source


@dataclass(frozen=True, slots=True)
class LearnedFile:
    """What a file holds, and the lines of it that say nothing usable: (line, what is wrong)."""

    pairs: tuple[Pair, ...] = ()
    problems: tuple[tuple[int, str], ...] = ()


def fold(question: str) -> str:
    """The question without regard to letter case, width, blanks and marks at its end."""
    text = unicodedata.normalize("NFKC", question).casefold()
    folded = " ".join(text.split())
    return folded.rstrip("?.!;¿¡ ") or folded  # a question of marks alone is still its own


def read(path: Path) -> LearnedFile:
    """The file's pairs in order; no file, no pairs.

    Raises:
        UsageError: it cannot be read, is no UTF-8 text, or is too big.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(
                f"the file of learned pairs {str(path)!r} is larger than {MAX_FILE_BYTES:,} bytes",
                "it is meant for verified questions only",
            )
        return parse(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        return LearnedFile()
    except OSError as error:
        raise UsageError(
            f"cannot read the file of learned pairs {str(path)!r}: {error.strerror or error}",
            ANOTHER,
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the file of learned pairs {str(path)!r} is not UTF-8 text (byte {error.start})",
            ANOTHER,
        ) from error


def parse(text: str) -> LearnedFile:
    """The pairs of a text; whatever is no pair is told in ``problems``."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    starts = [i for i, line in enumerate(lines) if _QUESTION.match(line)]
    problems: list[tuple[int, str]] = []
    first = starts[0] if starts else len(lines)
    stray = next((i for i in range(first) if _says_something(lines[i])), None)
    if stray is not None:
        problems.append((stray + 1, "a statement without a question line before it"))
    pairs: dict[tuple[str, str], Pair] = {}
    ends = [*starts[1:], len(lines)] if starts else []
    for start, end in zip(starts, ends, strict=True):
        pair = _pair(lines, start, end)
        if not pair.question:
            problems.append((pair.line, "the question is empty"))
        elif not pair.sql:
            problems.append((pair.line, "the question has no statement"))
        elif pair.key in pairs:
            at = pairs[pair.key].line
            problems.append((pair.line, f"the question stands in line {at} already, which counts"))
        else:
            pairs[pair.key] = pair
    return LearnedFile(tuple(pairs.values()), tuple(problems))


def write_pair(path: Path, pair: Pair) -> Pair | None:
    """Put ``pair`` into the file, in place of an older one of the same question and source.

    Returns:
        The older pair.

    Raises:
        UsageError: the file cannot be read or written, or the pair not be written in it.
    """
    block = _block(pair)
    old = next((p for p in read(path).pairs if p.key == pair.key), None)
    if old is not None:
        lines = _lines(path)
        _replace(path, [*lines[: old.line - 1], *block.split("\n"), *lines[old.end - 1 :]])
        return old
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One write at the end of the file: two processes that learn do not lose each other's.
        with path.open("a+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 2))
            tail = file.read()
            gap = "" if not size or tail == b"\n\n" else "\n" if tail.endswith(b"\n") else "\n\n"
            file.write(((gap if size else _HEAD) + block + "\n").encode())
    except OSError as error:
        raise _unwritable(path, error) from error
    return None


def remove_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    """Take pairs, as ``read`` gave them, out of the file; all other lines stay.

    Raises:
        UsageError: the file cannot be read or written.
    """
    lines = _lines(path)
    gone = {i for pair in pairs for i in range(pair.line - 1, pair.end - 1)}
    # With a pair goes one empty line after it.
    gone |= {i + 1 for i in gone if i + 1 < len(lines) - 1 and not lines[i + 1].strip()}
    _replace(path, [line for i, line in enumerate(lines) if i not in gone])


# ---- one pair as lines ----------------------------------------------------------------


def _pair(lines: Sequence[str], start: int, end: int) -> Pair:
    """The pair of ``lines[start:end]``, its remarks at the end left out."""
    found = _QUESTION.match(lines[start])
    question = " ".join(found.group(1).split()) if found else ""
    body = start + 1
    source = ""
    named = _SOURCE.match(lines[body]) if body < end else None
    if named:
        source, body = named.group(1).strip(), body + 1
    while end > body and not _says_something(lines[end - 1]):
        end -= 1
    sql = "\n".join(lines[body:end]).strip().rstrip(";").rstrip()
    return Pair(question, sql, source, start + 1, end + 1)


def _says_something(line: str) -> bool:
    """Whether a line is more than blanks and a remark."""
    return bool(line.strip()) and not line.lstrip().startswith("--")


def _block(pair: Pair) -> str:
    """The lines of a pair.

    Raises:
        UsageError: read again it would be another pair.
    """
    head = f"-- question: {' '.join(pair.question.split())}\n"
    if pair.source:
        head += f"-- source: {pair.source}\n"
    lines = pair.sql.replace("\r\n", "\n").strip().split("\n")
    while len(lines) > 1 and not _says_something(lines[-1]):
        lines.pop()
    text = head + "\n".join(lines).rstrip().rstrip(";").rstrip() + ";\n"
    again = parse(text).pairs
    if len(again) != 1 or again[0].key != pair.key or f"{again[0].sql};\n" != text[len(head) :]:
        raise UsageError(
            f"the statement {pair.sql[:80]!r} cannot be written into the file of learned pairs",
            "a line of it looks like the beginning of a pair: write it otherwise",
        )
    return text


def _lines(path: Path) -> list[str]:
    try:
        # Line by line as ``parse`` counts them; their ends stay as they are.
        return path.read_bytes().decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the file of learned pairs {str(path)!r}: {error}", ANOTHER
        ) from error


def _replace(path: Path, lines: Sequence[str]) -> None:
    """Write the file anew in one step; a link stays a link."""
    path = path.resolve()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write("\n".join(lines).encode())
            os.chmod(name, path.stat().st_mode & 0o777)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot write the file of learned pairs {str(path)!r}: {error.strerror or error}",
        "name another file: learned in dbrag.toml, or DBRAG_LEARNED",
    )
