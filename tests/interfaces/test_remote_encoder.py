"""Indexing and searching with an encoder behind an endpoint, from the command line."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.interfaces.cli import main, output
from dbrag.models.embed_remote import RemoteEmbedder
from dbrag.models.testing import HashEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A server of vectors on the loopback; gives the texts it was sent."""
    texts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts.extend(body["input"])
            vectors = HashEmbedder(16).encode(body["input"])
            data = [{"index": i, "embedding": v.tolist()} for i, v in enumerate(vectors)]
            answer = json.dumps({"data": data}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DBRAG_ENCODER", "openai:small")
    yield texts
    server.shutdown()
    thread.join()
    server.server_close()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    code = main([*arguments, "--json"])
    seen = capsys.readouterr()
    return code, json.loads(seen.out), seen.err


def test_index_and_search(
    small_shop: Path, endpoint: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, report, _ = run(capsys, "index", "-s", str(small_shop))
    assert code == 0
    assert not [w for w in report["warnings"] if w["code"] == "remote_encoder"]  # the loopback
    assert any("customers" in text for text in endpoint)
    code, state, _ = run(capsys, "status", "-s", str(small_shop))
    assert (state["encoder"]["name"], state["encoder"]["dim"]) == ("openai:small", 16)
    code, found, _ = run(capsys, "search", "-s", str(small_shop), "Which customers are there?")
    assert (code, found["candidates"][0]["table"]["name"]) == (0, "customers")
    assert "Which customers are there?" in endpoint


@pytest.mark.parametrize(
    "command",
    [["index"], ["search", "customers?"], ["joins"], ["learn", "--list"]],
    ids=lambda command: command[0],
)
def test_every_command_that_indexes_says_first_what_leaves_the_machine(
    small_shop: Path,
    endpoint: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
) -> None:
    monkeypatch.setattr(RemoteEmbedder, "remote", property(lambda _: True))
    sent_before: list[int] = []
    note = output.note

    def noted(text: str) -> None:
        sent_before.extend([len(endpoint)] * ("another machine" in text))
        note(text)

    monkeypatch.setattr(output, "note", noted)
    assert run(capsys, *command, "-s", str(small_shop))[0] == 0
    assert sent_before == [0]
    assert endpoint


def test_another_model_of_the_endpoint_is_another_encoder(
    small_shop: Path,
    endpoint: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(capsys, "index", "-s", str(small_shop))[0] == 0
    monkeypatch.setenv("DBRAG_ENCODER", "openai:large")
    code, told, _ = run(capsys, "search", "-s", str(small_shop), "customers?")
    assert (code, told["error"]["code"]) == (3, "encoder_mismatch")


def test_what_leaves_the_machine_is_said(
    small_shop: Path,
    endpoint: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RemoteEmbedder, "remote", property(lambda _: True))
    _, report, noted = run(capsys, "index", "-s", str(small_shop))
    (warning,) = [w for w in report["warnings"] if w["code"] == "remote_encoder"]
    assert "sample rows of tables are sent there" in warning["message"]
    assert "openai:small is an encoder of another machine" in noted
    _, found, noted = run(capsys, "search", "-s", str(small_shop), "customers?")
    assert "remote_encoder" in [w["code"] for w in found["warnings"]]
    assert noted == ""  # once
    monkeypatch.setenv("DBRAG_ROW_SEARCH", "both")  # all rows are sent now
    assert (
        "notes and rows of tables are sent there" in run(capsys, "index", "-s", str(small_shop))[2]
    )
    assert run(capsys, "index", "-s", str(small_shop))[2] == ""
    monkeypatch.setenv("DBRAG_OFFLINE", "1")
    code, told, _ = run(capsys, "search", "-s", str(small_shop), "customers?")
    assert (code, told["error"]["code"]) == (2, "usage")
