from __future__ import annotations

import contextlib
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbrag.errors import WeightsError
from dbrag.models.gguf import read_header
from dbrag.models.weights import check_gguf, locate
from dbrag.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

META = {
    "general.architecture": "llama",
    "llama.context_length": 2048,
    "llama.block_count": 4,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 8,
    "llama.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": ["a", "bc", "中"] * 100,
}


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_text(v) for v in value)
    return struct.pack("<II", 4, value)


def gguf(meta: dict[str, Any] = META, version: int = 3, data: int = 4096) -> bytes:
    """A whole GGUF file with two tensors of ``data`` bytes together."""
    out = b"GGUF" + struct.pack("<IQQ", version, 2, len(meta))
    for name, value in meta.items():
        out += _text(name) + _value(value)
    for i, offset in enumerate((0, data // 2)):
        out += _text(f"blk.{i}") + struct.pack("<IQIQ", 1, data // 2, 24, offset)
    out += b"\0" * (-len(out) % 32)
    return out + b"\1" * data


def test_header_tells_context_and_cache(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf())
    header = read_header(path)
    assert header.architecture == "llama"
    assert header.context_tokens == 2048
    # 4 layers × 2 heads × (8 + 8) numbers × 2 bytes
    assert header.cache_bytes_per_token == 256
    assert header.data_end <= path.stat().st_size


def test_a_file_given_by_path_is_used_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "my models" / "a.gguf"
    path.parent.mkdir()
    path.write_bytes(gguf())
    for name in (str(path), f"local:{path}"):
        assert locate(name, Settings(cache=str(tmp_path / "cache"))) == path
    assert list(path.parent.iterdir()) == [path], "nothing is written beside a user's file"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.integers(0, len(gguf()) - 2049))
def test_cut_anywhere_is_told(tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(gguf()[:size])
    with pytest.raises(WeightsError, match=r"cut short|not a GGUF"):
        read_header(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_header_or_a_clear_error(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "any.gguf"
    path.write_bytes(b"GGUF\3\0\0\0" + tail)
    with contextlib.suppress(WeightsError):  # nothing else may come
        assert read_header(path).data_end <= path.stat().st_size


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\3\4 a zip file", "not a GGUF"),
        (b"", "not a GGUF"),
        (b"<html>not found</html>", "not a GGUF"),
        (gguf(version=9), "version 9"),
    ],
)
def test_another_kind_of_file(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=message) as caught:
        check_gguf(path)
    assert "\n" not in caught.value.message


def test_no_such_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no such model file"):
        check_gguf(tmp_path / "none.gguf")
    with pytest.raises(WeightsError, match="is a folder"):
        check_gguf(tmp_path)
