"""JSON and JSON lines, read value by value."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.options import FileOptions
from dbrag.sources.files.cells import BOOL, NUMBER, OTHER, TEXT, Cell, CellTable
from dbrag.sources.files.guess import Evidence
from dbrag.sources.files.names import numbered
from dbrag.sources.files.plan import evidence_for
from dbrag.sources.files.raw import MAX_COLUMNS, RawTable
from dbrag.sources.files.unpack import Unreadable

if TYPE_CHECKING:
    from dbrag.sources.files.encoding import Text

_CHUNK = 1 << 20
_MAX_VALUE = 256 << 20
_MAX_NESTED_COLUMNS = 500
_SPACE = re.compile(r"[ \t\r\n]*")


class Number(str):
    """A number as it is written."""

    __slots__ = ()


class Pairs(dict[str, Any]):
    """An object; keys that come twice are numbered, none is lost."""


def _pairs(pairs: list[tuple[str, Any]]) -> Pairs:
    result = Pairs(pairs)
    if len(result) != len(pairs):
        keys = numbered([key for key, _ in pairs])
        result = Pairs(zip(keys, (value for _, value in pairs), strict=True))
    return result


def _constant(name: str) -> Any:
    return None if name == "NaN" else name


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs,
    parse_float=Number,
    parse_int=Number,
    parse_constant=_constant,
    strict=False,
)


class Malformed(Exception):
    """No JSON, at this character of the buffer."""


class _Stream:
    """A text of JSON of which only the value being read is in memory."""

    def __init__(self, file: io.TextIOBase) -> None:
        self._file = file
        self._text = ""
        self._at = 0
        self._end = False
        self.line = 1

    def _more(self) -> bool:
        if self._end:
            return False
        size = max(_CHUNK, len(self._text) - self._at)
        if size > _MAX_VALUE:
            raise Unreadable(f"holds a value of more than {_MAX_VALUE >> 20} million characters")
        block = self._file.read(size)
        self._end = not block
        self.line += self._text.count("\n", 0, self._at)
        self._text = self._text[self._at :] + block
        self._at = 0
        return bool(block)

    def peek(self) -> str:
        """The next character that is no blank, "" at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, char: str) -> bool:
        """Whether that character is next; then it is passed over."""
        if self.peek() != char:
            return False
        self._at += 1
        return True

    def value(self) -> Any:
        """The next value, whole."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # What is only cut off fails at its end, or at the start of a string.
                cut = error.msg.startswith("Unterminated") or error.pos > len(self._text) - 64
                if cut and self._more():
                    continue
                line = self.line + self._text.count("\n", 0, error.pos)
                raise Malformed(f"{error.msg} in line {line}") from error
            # A number at the end of the buffer may go on behind it.
            if end == len(self._text) and not self._end and self._more():
                continue
            self._at = end
            return value


def read_json(
    text: Text, name: str, work: Path, options: FileOptions, lines: bool
) -> Iterator[RawTable]:
    """The tables of a file: an array of objects, objects one by one or by line, or an object
    whose arrays of objects are tables each.

    Nested objects become columns ``outer_inner``; arrays stay JSON text.

    Args:
        lines: one value a line.

    Raises:
        Unreadable: it is no JSON, or nested too deeply.
    """

    def new_evidence() -> Evidence:
        return evidence_for(options)

    def make(table: str) -> RawTable:
        return RawTable(work, table, new_evidence)

    for depth in (8, 2, 1, 0):
        try:
            yield from list(_tables(text, name, make, depth, lines))
        except _TooWide:
            continue
        except RecursionError:
            raise Unreadable("is nested too deeply") from None
        except Malformed as error:
            raise Unreadable(f"is no valid JSON: {error}") from error
        return
    raise Unreadable(f"has objects of more than {MAX_COLUMNS} keys")


class _TooWide(Exception):
    """Nested objects have too many keys to become columns each."""


def _tables(
    text: Text, name: str, make: Callable[[str], RawTable], depth: int, lines: bool
) -> Iterator[RawTable]:
    with open(text.path, "rb") as binary:
        binary.seek(text.bom)
        file = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        if lines:
            if text.long_line:
                raise Unreadable("has a line of more than 64 MB")
            yield _of_lines(file, make(name), depth)
            return
        stream = _Stream(file)
        first = stream.peek()
        if first == "[":
            stream.take("[")
            yield _filled(make(name), _elements(stream), depth)
            if stream.peek():
                raise Malformed(f"more after the end of the array in line {stream.line}")
        elif first == "{":
            found = _of_object(stream, name, make, depth)
            if not stream.peek():
                yield from found
                return
            for raw in found:
                raw.remove()
            binary.seek(text.bom)
            again = io.TextIOWrapper(binary, encoding="utf-8", newline="")
            yield _filled(make(name), _values(_Stream(again)), depth)
        elif not first:
            raise Unreadable("is empty")
        else:
            yield _filled(make(name), _values(stream), depth)


def _elements(stream: _Stream) -> Iterator[Any]:
    """The elements of an array whose bracket was read."""
    if stream.take("]"):
        return
    while True:
        yield stream.value()
        if stream.take("]"):
            return
        if not stream.take(","):
            raise Malformed(f"no comma or bracket after a value in line {stream.line}")


def _values(stream: _Stream) -> Iterator[Any]:
    while stream.peek():
        yield stream.value()


def _of_lines(file: io.TextIOBase, raw: RawTable, depth: int) -> RawTable:
    bad: list[int] = []
    reason = ""

    def values() -> Iterator[Any]:
        nonlocal reason
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield _DECODER.decode(line)
            except json.JSONDecodeError as error:
                reason = reason or f"{error.msg} in line {number}"
                bad.append(number)

    _filled(raw, values(), depth)
    if bad and len(bad) >= raw.rows:
        raise Malformed(reason)
    if bad:
        shown = ", ".join(map(str, bad[:5])) + (", …" if len(bad) > 5 else "")
        lines = "1 line is" if len(bad) == 1 else f"{len(bad):,} lines are"
        raw.warnings.append(f"{lines} no valid JSON and left out: {shown}")
    return raw


def _of_object(
    stream: _Stream, name: str, make: Callable[[str], RawTable], depth: int
) -> list[RawTable]:
    """The tables in the members of one object."""
    stream.take("{")
    tables: dict[str, RawTable] = {}
    single = Pairs()
    keys: list[str] = []
    while not stream.take("}"):
        if keys and not stream.take(","):
            raise Malformed(f"no comma after a member in line {stream.line}")
        key = stream.value()
        if not isinstance(key, str) or isinstance(key, Number) or not stream.take(":"):
            raise Malformed(f"no key in line {stream.line}")
        keys.append(key)
        key = numbered(keys)[-1]
        if stream.peek() != "[":
            single[key] = stream.value()
            continue
        stream.take("[")
        elements = _elements(stream)
        start = next(elements, None)
        if isinstance(start, Pairs):
            tables[key] = _filled(make(key), _chained(start, elements), depth)
        else:
            single[key] = [start, *elements] if start is not None else [*elements]
    if not tables:
        return [_filled(make(name), iter(_as_rows(single)), depth)]
    left = ", ".join(map(repr, list(single)[:8]))
    for key, raw in tables.items():
        raw.name = name if len(tables) == 1 else f"{name}_{key}"
        if single:
            raw.warnings.append(f"members beside the arrays of objects were left out: {left}")
    return list(tables.values())


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _as_rows(single: Pairs) -> list[Pairs]:
    """An object as rows: columns as arrays of equal length, objects by key, or one row."""
    values = list(single.values())
    if len(values) > 1 and all(isinstance(value, Pairs) and value for value in values):
        first = set(values[0])
        if all(len(first & set(value)) * 2 >= len(first | set(value)) for value in values[1:]):
            return [Pairs({"key": key, **value}) for key, value in single.items()]
    if values and all(isinstance(value, list) for value in values):
        lengths = {len(value) for value in values}
        flat = not any(isinstance(one, (list, Pairs)) for value in values for one in value)
        if len(lengths) == 1 and flat and lengths != {0}:
            return [Pairs(zip(single, row, strict=True)) for row in zip(*values, strict=True)]
    return [single]


def _filled(raw: RawTable, values: Iterator[Any], depth: int) -> RawTable:
    cells = CellTable(raw)
    names = _Names(depth)
    for value in values:
        row: dict[str, Cell | None] = {}
        if isinstance(value, Pairs):
            names.flatten(value, (), row)
        elif isinstance(value, list):
            for number, one in enumerate(value, 1):
                row[f"column_{number}"] = _cell(one)
        elif value is not None:
            row["value"] = _cell(value)
        if cells.width > MAX_COLUMNS or (depth and len(names.nested) > _MAX_NESTED_COLUMNS):
            raise _TooWide
        cells.add(row)
    cells.finish()
    if names.nested:
        raw.guessed.append("nested objects as columns outer_inner")
    return raw


class _Names:
    """Paths of keys and the columns they are."""

    def __init__(self, depth: int) -> None:
        self.nested: set[tuple[str, ...]] = set()
        self._depth = depth
        self._names: dict[tuple[str, ...], str] = {}
        self._used: set[str] = set()

    def flatten(self, value: Pairs, path: tuple[str, ...], row: dict[str, Cell | None]) -> None:
        for key, one in value.items():
            here = (*path, key)
            if isinstance(one, Pairs) and one and len(path) < self._depth:
                self.flatten(one, here, row)
                continue
            if path:
                self.nested.add(here)
            name = self._names.get(here)
            if name is None:
                name = self._names[here] = self._new(here)
            row[name] = _cell(one)

    def _new(self, path: tuple[str, ...]) -> str:
        wanted = "_".join(key.strip() for key in path) or f"column_{len(self._names) + 1}"
        name, number = wanted, 1
        while name.casefold() in self._used:
            number += 1
            name = f"{wanted}_{number}"
        self._used.add(name.casefold())
        return name


def _cell(value: Any) -> Cell | None:
    if value is None or value == {}:
        return None
    if isinstance(value, Number):
        return NUMBER, str(value)
    if isinstance(value, bool):
        return BOOL, "true" if value else "false"
    if isinstance(value, str):
        return TEXT, _sound(value)
    return OTHER, dumps(value)


def _sound(text: str) -> str:
    """Half characters (``\\ud800``) have no UTF-8: they are written as in JSON."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(
            f"\\u{ord(char):04x}" if 0xD800 <= ord(char) <= 0xDFFF else char for char in text
        )
    return text


def dumps(value: Any) -> str:
    """A value as JSON text, its numbers as they were written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        inner = (f"{dumps(key)}: {dumps(one)}" for key, one in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(dumps(one) for one in value) + "]"
    return _sound(json.dumps(value, ensure_ascii=False))
