"""Temporary folders: private, and deleted even after a process was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from dbrag.sources.duck import spill

if TYPE_CHECKING:
    from pathlib import Path

WORK = """
import os, sys
from dbrag.options import OpenOptions
from dbrag.sources.duck.database import DuckDatabase
source = DuckDatabase("x", sys.argv[1], "", OpenOptions(memory_mb=64, threads=1))
with source.session() as session:
    session.execute("SELECT count(DISTINCT i || repeat('x', 80)) FROM range(1_200_000) r(i)")
    session.fetch(1)
    print(source._engine._spill.peek()[2][0], flush=True)
    sys.stdin.readline()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files in use cannot be deleted there")
def test_what_a_killed_process_left_is_deleted(
    tmp_path: Path, make_duckdb: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_duckdb()  # type: ignore[operator]
    place = tmp_path / "tmp"
    place.mkdir()
    command = [sys.executable, "-c", WORK, str(path)]
    environment = {**os.environ, "TMPDIR": str(place)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout
        folder = process.stdout.readline().strip()
        assert os.listdir(os.path.join(folder, "spill"))
        monkeypatch.setattr(spill, "_YOUNG_S", 0.0)
        time.sleep(0.01)
        spill.sweep(str(place))
        assert os.path.isdir(folder)  # it lives
        process.kill()
        process.wait()
        assert os.path.isdir(folder)
        spill.sweep(str(place))
        assert not os.path.exists(folder)


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "dbrag-duckdb-file").write_text("a file")
    (tmp_path / "dbrag-duckdb-link").symlink_to(tmp_path / "other")
    (tmp_path / "dbrag-duckdb-young").mkdir()
    before = sorted(path.name for path in tmp_path.iterdir())
    spill.sweep(str(tmp_path))
    spill.sweep(str(tmp_path / "missing"))
    assert sorted(path.name for path in tmp_path.iterdir()) == before
