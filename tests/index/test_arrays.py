"""Arrays read by many threads."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from dbrag.index import arrays
from dbrag.index.arrays import load_array, one_at_a_time


def test_an_array_whole_or_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6).reshape(2, 3))
    assert load_array(path).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert isinstance(load_array(path, mapped="r"), np.memmap)


def test_a_damaged_array_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': oh")
    with pytest.raises(ValueError, match=r"header|length"):
        load_array(path)
    with pytest.raises(OSError, match="missing"):
        load_array(tmp_path / "missing.npy")


def test_somebody_elses_parsing_is_waited_out() -> None:
    faults = [SystemError("AST constructor recursion depth mismatch (before=45, after=42)")] * 3

    def read() -> str:
        if faults:
            raise faults.pop()
        return "read"

    assert one_at_a_time(read) == "read"


def test_what_never_works_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def read() -> None:
        calls.append(1)
        raise SystemError(message)

    message = "AST constructor recursion depth mismatch (before=1, after=2)"
    with pytest.raises(SystemError, match="mismatch"):
        one_at_a_time(read)
    assert len(calls) == arrays._TRIES
    message = "another fault"
    with pytest.raises(SystemError, match="another"):
        one_at_a_time(read)
    assert len(calls) == arrays._TRIES + 1


def test_one_thread_reads_at_a_time() -> None:
    inside: list[int] = []
    most: list[int] = []

    def read() -> None:
        inside.append(1)
        most.append(len(inside))
        threading.Event().wait(0.01)
        inside.pop()

    threads = [threading.Thread(target=one_at_a_time, args=(read,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4
