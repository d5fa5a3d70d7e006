from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dbrag.models import machine

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_cores_and_memory_of_this_machine() -> None:
    assert 1 <= machine.usable_cores() <= (os.cpu_count() or 1)
    memory = machine.available_memory()
    assert memory is None or memory > 0


def test_container_limits_are_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "cpu.max": "150000 100000",
        "memory.max": "3000",
        "memory.current": "1000",
        "memory.stat": "anon 5\ninactive_file 400",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert machine.usable_cores() == 1
    assert machine.available_memory() == 2400
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 2 kB\n")
    assert machine.available_memory() == 2048
    (tmp_path / "cpu.max").write_text("max 100000")
    (tmp_path / "memory.max").write_text("max")
    assert machine.available_memory() == 2048


def test_hyperthreads_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    monkeypatch.setattr(machine, "_SYS_CPU", tmp_path)
    assert machine.usable_cores() == 8, "unknown topology"
    for cpu in range(8):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}")
    assert machine.usable_cores() == 4
