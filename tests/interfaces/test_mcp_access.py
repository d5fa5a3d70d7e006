"""Who may use ``dbrag mcp --http``, and what hostile requests come to."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.interfaces.mcp_process import (
    HELLO,
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

ACCEPT = {"Accept": "application/json, text/event-stream"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def ask_raw(server: Http, path: str = "/mcp", body: Any = HELLO, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(
        f"http://127.0.0.1:{server.port}{path}",
        content=content,
        headers={"Content-Type": "application/json", **ACCEPT, **named},
        timeout=WAIT_S,
    )


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/mcp", {}, 401),
        ("/mcp", {"Authorization": "Bearer wrong"}, 401),
        ("/mcp", {"Authorization": f"Bearer {TOKEN}x"}, 401),
        ("/mcp", {"Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ("/mcp", {"Authorization": f"Basic {TOKEN}"}, 401),
        ("/mcp", {"Authorization": TOKEN}, 401),
        (f"/mcp?token={TOKEN}", {}, 401),
        (f"/mcp?access_token={TOKEN}", {}, 401),
        ("/mcp", {"Cookie": f"token={TOKEN}"}, 401),
        ("/", {}, 401),
        ("/../etc/passwd", {}, 401),
        ("/mcp/%2e%2e/%2e%2e/etc/passwd", {}, 401),
        ("/mcp", {"MCP_Protocol_Version": "2026-07-28"}, 401),
        ("/mcp", {"Mcp_Session_Id": "guess"}, 401),
        ("/mcp", {"Host": "evil.example", **BEARER}, 421),
        ("/mcp", {"Host": "localhost.evil.example", **BEARER}, 421),
        ("/mcp", {"Host": "127.0.0.1.evil.example", **BEARER}, 421),
        ("/mcp", {"Host": "192.168.1.1", **BEARER}, 421),
        ("/mcp", {"Origin": "https://evil.example", **BEARER}, 403),
        ("/mcp", {"Origin": "null", **BEARER}, 403),
        ("/mcp", {"Origin": "http://localhost:1", **BEARER}, 403),
        ("/mcp", {"Sec_Fetch_Site": "cross-site", **BEARER}, 403),
        ("/mcp", {"Content_Type": "text/plain", **BEARER}, 415),
        ("/etc/passwd", BEARER, 404),
        ("/api/mcp", BEARER, 404),
        ("/mcp", {"Mcp_Session_Id": "guess", **BEARER}, 404),
        ("/mcp", BEARER, 200),
    ],
)
def test_who_is_let_in(
    guarded_server: Http, path: str, headers: dict[str, str], status: int
) -> None:
    answer = ask_raw(guarded_server, path, **headers)
    assert answer.status_code == status, answer.text
    assert TOKEN not in answer.text
    assert "access-control-allow-origin" not in answer.headers
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "unauthorized"


def test_a_page_of_another_origin_gets_no_leave(open_server: Http) -> None:
    for origin in ("https://evil.example", f"http://localhost:{open_server.port}", "null"):
        answer = httpx.options(
            open_server.url,
            headers={"Origin": origin, "Access-Control-Request-Method": "POST"},
        )
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
        assert ask_raw(open_server, Origin=origin).status_code == 403
    assert ask_raw(open_server, Host=f"evil.example:{open_server.port}").status_code == 421


def test_giant_and_odd_bodies(open_server: Http) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(64):
            yield b"x" * 65_536

    assert ask_raw(open_server, body=b"x" * 2_000_000).status_code == 413
    with httpx.Client() as client:
        headers = {"Content-Type": "application/json", **ACCEPT}
        try:
            answer = client.post(open_server.url, content=chunks(), headers=headers, timeout=WAIT_S)
            assert answer.status_code == 413
        except httpx.WriteError:
            pass  # it hung up before everything was sent
    deep = b"[" * 200_000
    for body in (b"", b"no json", deep, b"[]", b"null", b'{"jsonrpc":"2.0"}', b"\xff\xfe"):
        answer = ask_raw(open_server, body=body)
        assert 400 <= answer.status_code < 500, (body[:20], answer.status_code)
        assert "Traceback" not in answer.text
    query = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "run_query", "arguments": {"sql": "SELECT 1 " + "-- x\n" * 150_000}}}  # fmt: skip
    assert ask_raw(open_server, body=query).status_code < 500
    assert ask_raw(open_server).status_code == 200  # it is still there


def test_wrong_tokens_in_a_row_have_to_wait(shop: Path) -> None:
    server = Http(shop, DBRAG_API_TOKEN=TOKEN)
    try:
        seen = [ask_raw(server, Authorization=f"Bearer {i}").status_code for i in range(15)]
        assert seen[:5] == [401] * 5
        assert seen[-1] == 429
    finally:
        assert server.stop() == 0


def test_another_address_needs_a_token(shop: Path, tmp_path: Path) -> None:
    def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command(shop, *arguments)],
            env=environment(**variables),
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )

    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.org:0"):
        done = start("--http", address)
        assert done.returncode == 2
        assert "without a token nothing but this machine may be served" in done.stderr
        assert "try: set DBRAG_API_TOKEN or --token-file FILE" in done.stderr
    short = start("--http", "0.0.0.0:0", DBRAG_API_TOKEN="hunter2")
    assert short.returncode == 2
    assert "a token needs at least 16" in short.stderr
    assert "hunter2" not in short.stderr
    assert start("--http", "0", "--token-file", str(tmp_path / "none")).returncode == 2


def test_a_token_of_a_file_and_another_name(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o644)
    server = Http(
        shop, "--http", "0.0.0.0:0", "--token-file", str(file), "--allow-host", "data.example.org"
    )
    try:
        assert server.token
        assert ask_raw(server).status_code == 401
        assert ask_raw(server, **BEARER).status_code == 200
        assert ask_raw(server, Host="data.example.org", **BEARER).status_code == 200
        assert ask_raw(server, Host="evil.example.org", **BEARER).status_code == 421
    finally:
        assert server.stop() == 0
    assert "over the network unencrypted" in server.said
    if os.name != "nt":
        assert f"every user may read the token in {str(file)!r}" in server.said
    assert TOKEN not in server.said


def test_a_port_that_is_taken(shop: Path, open_server: Http) -> None:
    done = subprocess.run(
        [sys.executable, *command(shop, "--http", str(open_server.port))],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 2
    assert re.search(r"cannot listen on '127\.0\.0\.1', port \d+: ", done.stderr)
    assert "try: choose another: --http 0 takes a free port" in done.stderr
