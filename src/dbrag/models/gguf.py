"""Read the header of a GGUF file: context length, cache size, and whether the file is whole.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3,
little-endian): magic, version, tensor count, key count, key-value pairs, tensor
infos, padding to ``general.alignment``, tensor data.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from dbrag.errors import WeightsError

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"GGUF"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?"}
_SCALARS |= {10: "Q", 11: "q", 12: "d"}
_LAYOUTS = {code: struct.Struct(f"<{code}") for code in _SCALARS.values()}
_STRING, _ARRAY = 8, 9
_BLOCK_BYTES = 1 << 23
_MAX_COUNT = 1 << 24
_KV_CACHE_BYTES = 2
"""Bytes of one number in llama.cpp's default cache (f16)."""


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """What the header of a model tells.

    Attributes:
        context_tokens: context length it was trained for, None where it does not say.
        cache_bytes_per_token: key and value cache of one token, f16; 0 where unknown.
        data_end: the file has at least this many bytes, or it is cut short.
    """

    architecture: str
    context_tokens: int | None
    cache_bytes_per_token: int
    data_end: int


def read_header(path: Path) -> GGUFHeader:
    """The header of a GGUF file; reads a few MB (the vocabulary lies in between).

    Raises:
        WeightsError: not a GGUF file, of an unknown version, or cut short.
        OSError: unreadable.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        try:
            return _read(_Reader(file), path, size)
        except (EOFError, UnicodeDecodeError, OverflowError) as error:
            raise WeightsError(
                f"{str(path)!r} is cut short or damaged: its header ends early ({size:,} bytes)",
                "fetch the file again",
            ) from error


def _read(reader: _Reader, path: Path, size: int) -> GGUFHeader:
    head = reader.start(len(MAGIC))
    if head != MAGIC:
        raise WeightsError(
            f"{str(path)!r} is not a GGUF model file (it begins with {head!r})",
            "only llama.cpp's GGUF format can be loaded",
        )
    version = reader.scalar("I")
    if version not in (2, 3):
        raise WeightsError(
            f"{str(path)!r} is GGUF version {version}; 2 and 3 can be loaded",
            "take a newer file of the model: --model local:/path/to/model.gguf",
        )
    tensors, keys = reader.count(), reader.count()
    meta: dict[str, Any] = {}
    for _ in range(keys):
        name = reader.string().decode("utf-8")
        meta[name] = reader.value(reader.scalar("I"))
    last_offset = 0
    for _ in range(tensors):
        reader.string()
        reader.skip(8 * reader.scalar("I"))  # dimensions
        reader.scalar("I")  # type
        last_offset = max(last_offset, reader.scalar("Q"))
    alignment = int(meta.get("general.alignment") or 32)
    start = -(-reader.position // alignment) * alignment
    header = _header(meta, start + last_offset + (1 if tensors else 0))
    if size < header.data_end:
        raise WeightsError(
            f"{str(path)!r} is cut short: {size:,} bytes, its header tells of more than "
            f"{header.data_end:,}",
            "fetch the file again",
        )
    return header


def _header(meta: dict[str, Any], data_end: int) -> GGUFHeader:
    arch = str(meta.get("general.architecture") or "")

    def number(key: str) -> int | None:
        value = meta.get(f"{arch}.{key}")
        return value if isinstance(value, int) else None

    layers, heads = number("block_count"), number("attention.head_count")
    kv_heads = number("attention.head_count_kv") or heads
    width = (number("embedding_length") or 0) // heads if heads else 0
    key_width = number("attention.key_length") or width
    value_width = number("attention.value_length") or width
    cache = (layers or 0) * (kv_heads or 0) * (key_width + value_width) * _KV_CACHE_BYTES
    return GGUFHeader(arch, number("context_length"), cache, data_end)


class _Reader:
    """Little-endian values off a file, read in large blocks: a vocabulary is 300,000 strings."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._data = b""
        self.position = 0

    def start(self, size: int) -> bytes:
        """The first bytes, fewer where the file has fewer."""
        self._data = self._file.read(_BLOCK_BYTES)
        self.position = min(size, len(self._data))
        return self._data[:size]

    def _advance(self, size: int) -> int:
        """Pass over ``size`` bytes; returns where they begin."""
        begin = self.position
        self.position = begin + size
        while self.position > len(self._data):
            block = self._file.read(_BLOCK_BYTES)
            if not block:
                raise EOFError(size)
            self._data += block
        return begin

    def scalar(self, code: str) -> Any:
        layout = _LAYOUTS[code]
        return layout.unpack_from(self._data, self._advance(layout.size))[0]

    def count(self) -> int:
        value = int(self.scalar("Q"))
        if value > _MAX_COUNT:
            raise OverflowError(value)
        return value

    def skip(self, size: int) -> None:
        self._advance(size)

    def string(self) -> bytes:
        size = self.count()
        begin = self._advance(size)
        return self._data[begin : begin + size]

    def value(self, kind: int) -> Any:
        """A scalar or a text; arrays are passed over (None)."""
        if kind in _SCALARS:
            return self.scalar(_SCALARS[kind])
        if kind == _STRING:
            return self.string().decode("utf-8", errors="replace")
        if kind != _ARRAY:
            raise EOFError(f"value type {kind}")
        inner, count = self.scalar("I"), self.count()
        if inner in _SCALARS:
            self.skip(count * _LAYOUTS[_SCALARS[inner]].size)
        else:
            for _ in range(count):
                if inner == _STRING:
                    self.skip(self.count())
                else:
                    self.value(inner)
        return None
