"""Which encoding a text file is in, and the same file in UTF-8."""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbrag.errors import UsageError
from dbrag.sources.files.unpack import Unreadable

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = 4 << 20
_SAMPLE_BYTES = 64 << 10
_MAX_LINE = 64 << 20
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What files that are not UTF-8 are in, as far as it can be told from them.
_CANDIDATES = (
    "cp1252", "cp1251", "cp1250", "shift_jis", "cp932", "gb18030", "big5", "euc_kr", "euc_jp",
    "koi8_r", "cp850", "cp1253", "cp1254", "cp1255", "cp1256",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Text:
    """A file in UTF-8 and what was seen in it.

    Attributes:
        path: the user's file where that is UTF-8, else a copy.
        encoding: what it was in.
        bom: bytes of a mark before the text.
        quotes: how many ``"`` it holds.
        escapes: it holds ``\\"``.
        long_line: a line is so long that it must not be read whole.
    """

    path: str
    encoding: str
    bom: int = 0
    quotes: int = 0
    escapes: bool = False
    long_line: bool = False


def to_utf8(path: str, target: Path, encoding: str | None = None, said: str = "") -> Text:
    """The file ``path`` as UTF-8; written to ``target`` where it is in another encoding.

    Every byte is checked: nothing is replaced.

    Args:
        encoding: the user's word for it; None finds it out.
        said: the path to name in messages, where ``path`` is an unpacked copy.

    Raises:
        UsageError: there is no such encoding, or it does not fit the file.
        Unreadable: it is no text.
    """
    said = said or path
    if encoding is not None:
        try:
            codecs.lookup(encoding).incrementaldecoder  # noqa: B018
            "".encode(encoding)
        except (LookupError, TypeError) as error:
            raise UsageError(
                f"encoding {encoding!r} of {said!r} is unknown", 'write encoding = "cp1252", …'
            ) from error
    with open(path, "rb") as file:
        start = file.read(_SAMPLE_BYTES)
    bom = next(((mark, name) for mark, name in _BOMS if start.startswith(mark)), None)
    if encoding is not None and codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig"):
        return _recoded(path, target, encoding, given=said)
    if bom is None and encoding is None and (name := _utf16_without_bom(start)):
        return _recoded(path, target, name)
    if bom is not None and bom[1] != "utf-8":
        return _recoded(path, target, bom[1])
    seen = _Seen()
    if seen.is_utf8(path):
        skip = len(codecs.BOM_UTF8) if bom else 0
        return Text(path, "utf-8", skip, seen.quotes, seen.escapes, seen.long_line)
    if encoding is not None:
        raise UsageError(
            f"{said!r} is not in encoding {encoding!r}: byte {seen.bad_byte}",
            "set another encoding for it, or none",
        )
    for name in _guesses(seen.sample, start):
        try:
            return _recoded(path, target, name)
        except Unreadable:
            continue
    raise Unreadable("is in no known encoding")


class _Seen:
    """One reading of the whole file."""

    def __init__(self) -> None:
        self.quotes = 0
        self.escapes = False
        self.sample = b""
        """Lines that are not ASCII."""
        self.bad_byte = 0
        self.long_line = False
        self._line = 0

    def is_utf8(self, path: str) -> bool:
        decoder = codecs.getincrementaldecoder("utf-8")("strict")
        good, position, last = True, 0, b""
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                self.quotes += block.count(b'"')
                ends = b"\n" in block or b"\r" in block
                self._line = 0 if ends else self._line + len(block)
                self.long_line = self.long_line or self._line > _MAX_LINE
                self.escapes = self.escapes or b'\\"' in last[-1:] + block
                if good:
                    try:
                        decoder.decode(block)
                    except UnicodeDecodeError as error:
                        good = False
                        self.bad_byte = position + error.start
                if not block.isascii() and len(self.sample) < _SAMPLE_BYTES:
                    self._add(block)
                position += len(block)
                last = block
        if good:
            try:
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                good = False
                self.bad_byte = position
        return good

    def _add(self, block: bytes) -> None:
        for line in block.splitlines():
            if not line.isascii():
                self.sample += line[:4096] + b"\n"
                if len(self.sample) >= _SAMPLE_BYTES:
                    return


def _utf16_without_bom(start: bytes) -> str | None:
    """UTF-16 of Western text shows in NULs at every second byte."""
    if len(start) < 8 or (len(start) % 2 and len(start) < _SAMPLE_BYTES):
        return None
    even, odd = start[0::2], start[1::2]
    for name, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros.count(0) > 0.6 * len(zeros) and others.count(0) < 0.05 * len(others):
            return name
    return None


def _guesses(sample: bytes, start: bytes) -> list[str]:
    """Encodings to try, likeliest first; the last one fits every file."""
    binary = sum(byte < 9 or 13 < byte < 27 for byte in start)
    if binary > 0.02 * len(start) and (start.count(0) or binary > 2):
        raise Unreadable("is no text: it holds binary data")
    from charset_normalizer import from_bytes

    names: list[str] = []
    if _western(sample):
        names.append("cp1252")
    for match in from_bytes(sample, cp_isolation=list(_CANDIDATES)):
        names.append("cp932" if match.encoding == "shift_jis" else match.encoding)
    return [*dict.fromkeys(names), "cp1252", "latin-1"]


def _western(sample: bytes) -> bool:
    """Single accented letters within ASCII words: Western Europe's encoding."""
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    high = [char for char in text if ord(char) > 127]
    words = re.findall(r"[^\W\d_]*[^\x00-\x7f][^\W\d_]*", text)
    letters = sum(sum(char.isascii() for char in word) for word in words)
    if re.search(r"[A-Za-z][“”„…–—£§°«»¡¿ª][a-z]", text):
        return False  # these stand in no word: it is an older encoding
    usual = sum(char in _WESTERN for char in high)
    return usual >= 0.9 * len(high) and letters >= len(high)


_WESTERN = frozenset("äöüßÄÖÜéèêëáàâãåçíìîïñóòôõúùûÉÈÀÁÂÃÅÇÍÑÓÔÕÚØøÆæœŒ€°§–—’‘“”„…£«»º ª¿¡")


def _recoded(path: str, target: Path, encoding: str, *, given: str = "") -> Text:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    quotes, escapes, line, longest = 0, False, 0, 0
    last = ""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(path, "rb") as source, open(descriptor, "wb") as file:
            block: bytes | None = None
            while block != b"":
                block = source.read(_BLOCK)
                text = decoder.decode(block, final=not block)
                quotes += text.count('"')
                line = 0 if "\n" in text or "\r" in text else line + len(text)
                longest = max(longest, line)
                escapes = escapes or '\\"' in last[-1:] + text
                last = text or last
                file.write(text.encode("utf-8"))
    except (UnicodeError, ValueError) as error:
        if given:
            raise UsageError(
                f"{given!r} is not in encoding {encoding!r}: {error}",
                "set another encoding for it, or none",
            ) from error
        raise Unreadable(f"is not in {encoding}: {error}") from error
    with open(target, "rb") as file:
        bom = len(codecs.BOM_UTF8) if file.read(3) == codecs.BOM_UTF8 else 0
    return Text(str(target), encoding, bom, quotes, escapes, longest > _MAX_LINE)
