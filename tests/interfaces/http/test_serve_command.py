"""``dbrag serve`` as a process: start, address, signals, exit code."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.interfaces.conftest import Cli
from tests.interfaces.http.conftest import TOKEN, wait_until

# The command line over fakes: no weights are needed to serve.
MAIN = """
import sys
import dbrag
from dbrag.database import connect
from dbrag.models.testing import FunctionModel, HashEmbedder
model = FunctionModel(lambda prompt: "SELECT COUNT(*) AS n FROM customers")
vars(dbrag)["connect"] = lambda *, settings: connect(
    settings=settings, chat_model=model, embedder=HashEmbedder()
)
from dbrag.interfaces.cli import main
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def serving(shop: Path, index: Path, *flags: str, **environ: str) -> Iterator[Any]:
    command = [sys.executable, "-c", MAIN, "serve", "-s", str(shop), "--index", str(index)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--json", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield process, told
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_ready(url: str) -> None:
    def ready() -> bool:
        try:
            return httpx.get(f"{url}/api/v1/ready", timeout=60).status_code == 200
        except httpx.ConnectError:
            return False

    wait_until(ready, 60)


@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal(shop: Path, index: Path, number: signal.Signals) -> None:
    with serving(shop, index) as (process, told):
        assert told["schema"] == 1
        assert told["api"] == f"{told['url']}/api/v1"
        assert told["token"] is False
        assert told["url"].startswith("http://127.0.0.1:")
        wait_ready(told["url"])
        body = {"question": "How many customers?"}
        answer = httpx.post(f"{told['api']}/ask", json=body, timeout=60)
        assert answer.json()["rows"] == [[2000]]
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == ""
    lines = err.splitlines()
    assert lines[0].startswith("serving http://127.0.0.1:")
    logged = [json.loads(line) for line in lines[1:]]
    assert "ready" in [line["event"] for line in logged]
    assert "How many customers" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
def test_the_token_comes_from_the_environment(shop: Path, index: Path) -> None:
    with serving(shop, index, "--host", "0.0.0.0", DBRAG_API_TOKEN=TOKEN) as (process, told):
        assert told["token"] is True
        url = told["url"].replace("0.0.0.0", "127.0.0.1")
        wait_ready(url)
        assert httpx.get(f"{url}/api/v1/sources", timeout=60).status_code == 401
        right = {"authorization": f"Bearer {TOKEN}"}
        assert httpx.get(f"{url}/api/v1/sources", headers=right, timeout=60).status_code == 200
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert "unencrypted" in err
    assert TOKEN not in err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--host", "0.0.0.0"), "without a token"),
        (("--host", "a b"), "--host must be"),
        (("--allow-origin", "*"), "--allow-origin must be"),
        (("--token-file", "none"), "cannot read the token"),
        (("--request-timeout", "inf"), "finite"),
        (("--history", "x", "--no-history"), "exclude each other"),
        (("--history", "."), "cannot use"),
        (("--workers", "0"), "--workers"),
        (("--port", "99999"), "--port"),
    ],
)
def test_what_it_refuses_to_start_with(
    cli: Cli, small_shop: Path, flags: tuple[str, ...], said: str
) -> None:
    done = cli("serve", "-s", small_shop, "--index", small_shop.parent / "index", *flags)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


def test_a_taken_port(cli: Cli, small_shop: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = cli("serve", "-s", small_shop, "--port", port, "--json")
    assert done.code == 2
    assert f"port {port}" in done.json["error"]["message"]


def test_a_source_that_is_not_there(cli: Cli) -> None:
    assert cli("serve", "-s", "none.db").code == 3
    assert cli("serve").code == 2
