"""``dbrag mcp`` as a process: the SDK's client over both transports, signals, attacks."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.interfaces.mcp_bed import QUESTION, Calls, run
from tests.interfaces.mcp_process import (
    HELLO,
    MODES,
    TOKEN,
    WAIT_S,
    Http,
    command,
    environment,
    guarded_server,
    open_server,
    shop,
)

__all__ = ["guarded_server", "open_server", "shop"]  # fixtures

ENDLESS = "SELECT COUNT(*) FROM orders a, orders b, orders c, orders d, orders e"


async def a_demo_question(client: Any) -> None:
    calls = Calls(client)
    answer, text = await calls.good("ask", question=QUESTION)
    assert answer["status"] == "answered"
    assert answer["result"]["row_count"] == 12
    assert ["Lisbon", 169] not in answer["result"]["rows"]
    assert "agreement: 100% of 2 programs gave this result" in text
    assert "running it …" in [message for _, message in calls.progress]
    rows, _ = await calls.good("run_query", sql="SELECT COUNT(*) FROM customers")
    assert rows["rows"] == [[2000]]
    assert (await calls.bad("run_query", sql="DROP TABLE customers")).startswith("refused: ")
    (content,) = (await client.read_resource("dbrag://tables")).contents
    assert json.loads(content.text)["total"] == 15


@pytest.mark.parametrize("mode", MODES)
def test_over_standard_input_and_output(shop: Path, mode: str, tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    async def work() -> None:
        parameters = StdioServerParameters(
            command=sys.executable, args=command(shop), env=environment()
        )
        with (tmp_path / "err").open("w") as err:
            async with Client(stdio_client(parameters, errlog=err), mode=mode) as client:
                await a_demo_question(client)

    run(work())
    said = (tmp_path / "err").read_text()
    assert "printed by a model\n" in said
    assert "written by a library\n" in said
    assert "Traceback" not in said


def test_standard_output_holds_nothing_but_the_protocol(shop: Path) -> None:
    asked: list[dict[str, Any]] = [
        HELLO,
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {
            "name": "ask", "arguments": {"question": QUESTION}}},
        {"id": 3, "method": "tools/call", "params": {"name": "run_query", "arguments": {}}},
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, *command(shop, "-v")],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    try:
        for message in asked:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.write(b"this is no JSON\n")
        process.stdin.flush()
        answers: dict[Any, Any] = {}
        while not {1, 2, 3} <= answers.keys():
            value = json.loads(process.stdout.readline())
            assert value["jsonrpc"] == "2.0"
            answers[value.get("id")] = value
        out, err = process.communicate(timeout=WAIT_S)  # closes standard input
    finally:
        process.kill()
    assert process.returncode == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert not answers[2]["result"]["isError"]
    assert answers[3]["result"]["isError"]
    assert b"printed by a model" in err


def test_it_ends_with_its_agent_although_a_model_does_not_listen(shop: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, *command(shop)],
        env=environment(DEAF_S="600"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdin
        assert process.stderr
        for message in (HELLO, {"id": 2, "method": "tools/call", "params": {
                "name": "ask", "arguments": {"question": QUESTION}}}):  # fmt: skip
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
        assert process.stderr.readline() == b"printed by a model\n"
        process.stdin.close()
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait()


def test_an_agent_that_reads_no_more_is_no_bug(shop: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, *command(shop)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    try:
        _, err = process.communicate(json.dumps(HELLO).encode() + b"\n", WAIT_S)
    finally:
        process.kill()
    assert (process.returncode, err) == (1, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to another process")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_although_standard_input_stays_open(
    shop: Path, number: signal.Signals, code: int
) -> None:
    process = subprocess.Popen(
        [sys.executable, *command(shop)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdin
        assert process.stdout
        query = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "run_query", "arguments": {"sql": ENDLESS}}}  # fmt: skip
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdin.write(json.dumps(query).encode() + b"\n")
        process.stdin.flush()
        time.sleep(1.0)
        process.send_signal(number)
        assert process.wait(WAIT_S) == code
        assert process.stderr
        assert process.stderr.read().decode().endswith("error: interrupted\n")
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("mode", MODES)
def test_over_http(open_server: Http, mode: str) -> None:
    from mcp import Client

    async def work() -> None:
        async with Client(open_server.url, mode=mode) as client:
            await a_demo_question(client)

    assert not open_server.token
    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_over_http_with_a_token(guarded_server: Http, mode: str) -> None:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def work() -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http:
            transport = streamable_http_client(guarded_server.url, http_client=http)
            async with Client(transport, mode=mode) as client:
                await a_demo_question(client)

    assert guarded_server.token
    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_leaves_frees_its_job(shop: Path, mode: str) -> None:
    """So many that there would be no place left."""
    from mcp import Client

    server = Http(shop, DBRAG_TIMEOUT_S="300")

    async def leave() -> None:
        async with Client(server.url, mode=mode) as client:
            call = asyncio.ensure_future(client.call_tool("run_query", {"sql": ENDLESS}))
            await asyncio.sleep(0.5)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

    async def work() -> None:
        for _ in range(2):
            await asyncio.gather(*(leave() for _ in range(4)))
        async with Client(server.url, mode=mode) as client:
            started = time.monotonic()
            rows, _ = await Calls(client).good("run_query", sql="SELECT 1")
            assert rows["rows"] == [[1]]
            assert time.monotonic() - started < 60  # and not the 300 s of a statement

    try:
        run(work())
    finally:
        assert server.stop() == 0


def test_clients_that_are_killed_free_their_jobs(shop: Path) -> None:
    """In the protocol's older form, without a word."""
    server = Http(shop, DBRAG_TIMEOUT_S="300")
    headers = {"Accept": "application/json, text/event-stream"}
    query = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "run_query", "arguments": {"sql": ENDLESS}}}  # fmt: skip

    def leave(_: int) -> None:
        with httpx.Client(headers=headers, timeout=WAIT_S) as client:
            hello = client.post(server.url, json=HELLO)
            session = {"Mcp-Session-Id": hello.headers["mcp-session-id"]}
            client.post(
                server.url,
                json={"jsonrpc": "2.0", "method": "notifications/initialized"},
                headers=session,
            )
            with pytest.raises(httpx.ReadTimeout):
                client.post(server.url, json=query, headers=session, timeout=2.0)

    async def work() -> None:
        from mcp import Client

        async with Client(server.url) as client:
            rows, _ = await Calls(client).good("run_query", sql="SELECT 1")
            assert rows["rows"] == [[1]]

    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(leave, range(8)))
        started = time.monotonic()
        run(work())
        assert time.monotonic() - started < 60  # and not the 300 s of a statement
    finally:
        assert server.stop() == 0
