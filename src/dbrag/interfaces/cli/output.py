"""Standard output and standard error: the only module that writes to them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

from dbrag.errors import DbragError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_json_target: TextIO | None = None

# Terminals obey some of these, and let others change what is read; JSON escapes the rest.
_UNSAFE = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_UNSAFE_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f{_UNSAFE}]")
_UNSAFE_JSON = re.compile(f"[{_UNSAFE}]")


class OutputLost(DbragError):
    """Standard output cannot be written (a full disk, for one)."""

    default_hint = "free some space, or send it elsewhere: dbrag … > FILE"


@contextlib.contextmanager
def json_only(active: bool) -> Iterator[None]:
    """While active, only ``emit_json`` reaches standard output.

    What a library prints there goes to standard error: the reader expects one JSON object.
    """
    global _json_target
    if not active:
        yield
        return
    _json_target = stdout = sys.stdout
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout, _json_target = stdout, None


def emit(text: str) -> None:
    """Write text and a newline to standard output, at once.

    Raises:
        OutputLost: it cannot be written; a closed pipe stays a BrokenPipeError.
    """
    _write(_shown(text), sys.stdout)


def _write(text: str, stream: TextIO) -> None:
    try:
        stream.write(_encodable(text, stream.encoding) + "\n")
        stream.flush()
    except OSError as error:
        silence(stream)
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputLost(f"cannot write the output: {error.strerror or error}") from error


def emit_lines(lines: Iterable[str]) -> None:
    """Write data, one text after the other as it comes, in UTF-8 whatever the locale says.

    Values stay as they are where a program reads them; a terminal gets no control characters.

    Raises:
        OutputLost: it cannot be written; a closed pipe stays a BrokenPipeError.
    """
    stream = sys.stdout
    shown = is_terminal(stream)
    raw = getattr(stream, "buffer", None)
    try:
        stream.flush()
        for line in lines:
            if shown or raw is None:
                stream.write(_encodable(_shown(line), stream.encoding))
            else:
                raw.write(line.encode("utf-8", "backslashreplace"))
        stream.flush()
    except OSError as error:
        silence(stream)
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputLost(f"cannot write the output: {error.strerror or error}") from error


def emit_json(value: Any) -> None:
    """Write one JSON object to standard output."""
    stream = _json_target or sys.stdout
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text = _UNSAFE_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    if _encodable(text, stream.encoding) != text:
        # Another encoding, or half a surrogate pair from a file name or a damaged cell.
        text = json.dumps(value, allow_nan=False)
    _write(text, stream)


def note(text: str) -> None:
    """Write one line to standard error; a standard error that is gone is no failure."""
    try:
        sys.stderr.write(_encodable(_shown(text), sys.stderr.encoding) + "\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def silence(stream: Any) -> None:
    """Point a broken stream to nowhere, so that flushing it at exit is silent."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError, AttributeError):
        pass


def is_terminal(stream: Any) -> bool:
    """Whether a person looks at this stream."""
    try:
        return bool(stream.isatty())
    except (ValueError, AttributeError):
        return False


def _shown(text: str) -> str:
    """Text for a terminal: lines and tabs stay, other control characters are escaped."""
    return _UNSAFE_TEXT.sub(lambda m: m[0].encode("unicode_escape").decode("ascii"), text)


def _encodable(text: str, encoding: str | None) -> str:
    """The text, with backslash escapes for what the encoding cannot express."""
    encoding = encoding or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)
