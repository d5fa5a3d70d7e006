"""What docs/mcp.md says: every command and configuration in it starts a server that answers."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.mcp_bed import Calls, run
from tests.interfaces.mcp_process import SCRIPT, WAIT_S, environment, index, shop

__all__ = ["shop"]  # a fixture

PAGE = (Path(__file__).parent.parent.parent / "docs" / "mcp.md").read_text(encoding="utf-8")
PLACE = "/data/shop.db"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """The arguments of every ``dbrag mcp`` that an agent is told to start."""
    found = []
    for block in blocks("json"):
        value = json.loads(block)
        (servers,) = value.values()
        found += [one["args"] for one in servers.values() if one.get("command") == "dbrag"]
    for line in [line for block in blocks("sh") for line in block.splitlines()]:
        words = shlex.split(line)
        if words[:2] == ["claude", "mcp"]:
            assert words[2:6] == ["add", "dbrag", "--", "dbrag"]
            found.append(words[6:])
    return found


def test_there_are_some() -> None:
    assert len(commands()) == 3


@pytest.mark.parametrize("arguments", commands(), ids=str)
def test_a_configuration_starts_a_server(arguments: list[str], shop: Path, tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    assert arguments[0] == "mcp"
    given = [str(shop) if word == PLACE else word for word in arguments]
    assert str(shop) in given

    async def work() -> None:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-c", SCRIPT, *given, *index(shop.parent)],
            env=environment(),
        )
        # By default the SDK takes the standard error of when it was imported: a test's, here.
        with (tmp_path / "err").open("w") as err:
            async with Client(stdio_client(parameters, errlog=err)) as client:
                found, _ = await Calls(client).good("search_tables", question="refunds by supplier")
                assert found["tables"]

    run(work())


def test_the_python_example(shop: Path) -> None:
    (example,) = blocks("python")
    started = 'command="dbrag", args=["mcp", "-s", "/data/shop.db"]'
    assert started in example
    arguments = ["-c", SCRIPT, "mcp", "-s", str(shop), *index(shop.parent)]
    code = example.replace(
        started, f"command={sys.executable!r}, args={arguments!r}, env={environment()!r}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "shop.suppliers (score " in done.stdout


def test_the_remote_configuration() -> None:
    from dbrag.interfaces.mcp.transports import PATH

    (server,) = [
        one
        for block in blocks("json")
        for one in next(iter(json.loads(block).values())).values()
        if "url" in one
    ]
    assert server["url"].endswith(PATH)
    assert server["headers"]["Authorization"].startswith("Bearer ")


def test_the_numbers_are_those_of_the_code() -> None:
    from dbrag.interfaces.http.options import MIN_TOKEN_CHARS
    from dbrag.interfaces.mcp import pages, service, transports

    for text in (
        f"at most {pages.MAX_ROWS} entries",
        f"{pages.MAX_CHARS:,} characters, a cell {pages.MAX_CELL:,}",
        f"kept for {pages.KEEP_S / 60:.0f} minutes",
        f"over {pages.KEEP_BYTES // 2**20} MB is not kept",
        f"every {service.HEARTBEAT_S:.0f} seconds",
        f"({service.CALL_S / 60:.0f} minutes)",
        f"{service.WAITING} of each may wait",
        f"at least {MIN_TOKEN_CHARS} characters",
        f"size ({transports.BODY_BYTES // 2**20} MB)",
    ):
        assert text in " ".join(PAGE.split()), text
    assert service.AT_ONCE == 4


def test_every_tool_is_in_the_table(shop: Path) -> None:
    from tests.interfaces.mcp_bed import connected, database

    async def tools() -> dict[str, Any]:
        with database(shop, index=shop.parent / "index") as db:
            async with connected(db) as (calls, _):
                listed = (await calls.client.list_tools()).tools
                return {one.name: list(one.input_schema["properties"]) for one in listed}

    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", PAGE, re.MULTILINE)
    assert {name: re.findall(r"`(\w+)`", given) for name, given in rows} == run(tools())
