"""A run that is killed at any moment leaves the old index or the new one, never a mix."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.index.layout import Layout
from dbrag.index.store import open_index
from tests.index.conftest import dump

if TYPE_CHECKING:
    from pathlib import Path

CHILD = """
import sys
from pathlib import Path
import lancedb, numpy, bm25s, sqlglot
from dbrag.index.build import build_index
from dbrag.models.testing import HashEmbedder
from dbrag.settings import Settings
from dbrag.sources import open_sources
sources, _ = open_sources([sys.argv[1]])
print("ready", flush=True)
build_index(Path(sys.argv[2]), sources, embedder=HashEmbedder(), settings=Settings())
print("done", flush=True)
"""


def start(folder: Path, directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(folder), str(directory)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def add_animals(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "zoo.db")) as connection:
        for i in range(5_000):
            connection.execute("INSERT INTO animal (species) VALUES (?)", (f"panda {i}",))
        connection.execute("CREATE TABLE cage (animal_id REFERENCES animal (id), size REAL)")
        connection.commit()


def seen(directory: Path) -> list[Any]:
    with open_index(directory) as index:
        return dump(index, ["panda 4711", "Kabul"])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_old_or_new(build: Any, folder: Path, tmp_path: Path, how: signal.Signals) -> None:
    if os.name == "nt" and how == signal.SIGKILL:
        pytest.skip("no such signal")
    directory = tmp_path / "index"
    build(folder)
    old = seen(directory)
    add_animals(folder)
    started = time.monotonic()
    build(folder, directory=tmp_path / "fresh")
    duration = time.monotonic() - started
    new = seen(tmp_path / "fresh")
    assert old != new
    moments = (0.15, 0.4, 0.6, 0.8, 0.95) if how == signal.SIGKILL else (0.5,)
    killed = 0
    for moment in moments:
        child = start(folder, directory)
        time.sleep(moment * duration)
        child.send_signal(how)
        assert child.stdout is not None
        killed += child.stdout.read() != "done\n"
        child.wait(timeout=60)
        child.stdout.close()
        assert seen(directory) in (old, new)
    assert killed, "the child was never interrupted: nothing was tested"
    build(folder)
    assert seen(directory) == new
    assert len(Layout(directory).generations()) == 1
