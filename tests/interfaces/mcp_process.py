"""``dbrag mcp`` in a process of its own, with scripted models that print."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbrag.demo import write_demo
from tests.interfaces import mcp_bed

MODES = mcp_bed.MODES
WAIT_S = 180
"""A machine may be busy; nothing here takes so long by itself."""
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
TOKEN = "a-secret-token-0123456789-abcdef"
# The command with scripted models, which print, as careless libraries do.
SCRIPT = """
import os, sys, time
import dbrag
from dbrag.database import connect
from dbrag.interfaces.cli import main
from dbrag.models.testing import FunctionModel, HashEmbedder
from tests.interfaces.mcp_bed import CITIES

def reply(prompt):
    print("printed by a model")
    os.write(1, b"written by a library\\n")
    time.sleep(float(os.environ.get("DEAF_S", "0")))
    return CITIES

def with_fakes(*, settings):
    return connect(settings=settings, chat_model=FunctionModel(reply), embedder=HashEmbedder())

vars(dbrag)["connect"] = with_fakes
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp")
    write_demo(folder / "shop.db")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "index", "-s", str(folder / "shop.db"), *index(folder)],
        env=environment(),
        check=True,
        capture_output=True,
    )
    assert done.returncode == 0
    return folder / "shop.db"


def index(folder: Path) -> list[str]:
    return ["--index", str(folder / "index")]


def environment(**more: str) -> dict[str, str]:
    root = str(Path(__file__).parent.parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path[1:]]), **more}


def command(shop: Path, *arguments: str) -> list[str]:
    return ["-c", SCRIPT, "mcp", "-s", str(shop), *index(shop.parent), *arguments]


class Http:
    """A server over HTTP in a process of its own."""

    def __init__(self, shop: Path, *arguments: str, **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command(shop, "--http", "0", "--json", *arguments)],
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        assert self.process.stdout
        line = self.process.stdout.readline()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert line, "".join(self.lines)
        told = json.loads(line)
        self.url: str = told["url"]
        self.token: bool = told["token"]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append(line)

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(WAIT_S)
        finally:
            self.process.kill()
            self._reader.join(5)

    @property
    def said(self) -> str:
        return "".join(self.lines)


@pytest.fixture(scope="module")
def open_server(shop: Path) -> Iterator[Http]:
    """One that asks for no token."""
    server = Http(shop)
    yield server
    assert server.stop() == 0
    assert "Traceback" not in server.said


@pytest.fixture(scope="module")
def guarded_server(shop: Path) -> Iterator[Http]:
    """One that asks for a token."""
    server = Http(shop, "-v", DBRAG_API_TOKEN=TOKEN)
    yield server
    assert server.stop(signal.SIGINT) == 0
    assert TOKEN not in server.said
    assert "Traceback" not in server.said
