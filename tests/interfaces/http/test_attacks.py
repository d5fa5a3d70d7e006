"""Hostile clients against a real port: each is refused, or what it sends does nothing."""

from __future__ import annotations

import json
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dbrag.database import Database, connect
from dbrag.interfaces.http.server import HEAD_BYTES
from dbrag.models.testing import FunctionModel, HashEmbedder
from tests.interfaces.http.conftest import Served, in_process, on_a_port, raw, wait_until

SCRIPT = "<script>alert(1)</script>"
HEAD = b"POST /api/v1/sql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"


@pytest.fixture
def port(open_shop: Callable[..., Database]) -> Iterator[Served]:
    with on_a_port(open_shop(), body_s=0.5) as served:
        yield served


def last(served: Served) -> None:
    """The server still answers."""
    assert served.get("/health").json()["status"] == "ok"


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
     "/api/v1/../../etc/passwd", "/%00", "/index.html%00.js", "/..\\..\\windows\\win.ini",
     "/api/v1/results/..%2f..%2fetc", "/api/v1/jobs/%2e%2e", "/.git/config", "/app.py",
     "/api/v1/history/..%2fentry"],
)  # fmt: skip
def test_traversal(open_shop: Callable[..., Database], tmp_path: Path, path: str) -> None:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<p>page</p>")
    (tmp_path / "app.py").write_text("secret")
    with in_process(open_shop(), page) as served:
        response = served.http.get(path)
        assert response.status_code in (404, 422), response.text
        assert "root:" not in response.text
        assert "secret" not in response.text
        assert served.http.get("/").text == "<p>page</p>"


def test_traversal_as_raw_bytes(port: Served) -> None:
    for path in (b"/../../../../etc/passwd", b"http://evil.example/etc/passwd", b"*"):
        answer = raw(
            port.url, b"GET " + path + b" HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
        )
        assert b"root:" not in answer
        assert answer.split(b" ", 2)[1] in (b"404", b"400")


def test_giant_bodies(port: Served) -> None:
    told = raw(port.url, HEAD + b"content-length: 999999999999\r\n\r\n" + b"x" * 1000)
    assert b" 413 " in told
    assert b'"too_large"' in told
    assert b"connection: close" in told.lower()
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with socket.create_connection(_address(port), 10) as connection:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        sent = 0
        try:
            while sent < 100:
                connection.sendall(chunk)
                sent += 1
                time.sleep(0.001)
        except OSError:
            pass  # the server has closed the connection in the middle
        assert sent < 100
    response = port.http.post("/api/v1/sql", json={"sql": "x" * 300_000})
    assert response.status_code == 413
    last(port)


@pytest.mark.parametrize("length", [b"-1", b"abc", b"1e3", b"0x10", b"9" * 400])
def test_nonsense_for_a_length(port: Served, length: bytes) -> None:
    told = raw(port.url, HEAD + b"content-length: " + length + b"\r\n\r\n")
    assert told.split(b" ", 2)[1] in (b"400", b"413")
    last(port)


def test_slow_bodies(port: Served) -> None:
    started = time.monotonic()
    told = raw(port.url, HEAD + b"content-length: 100\r\n\r\n{")
    assert b" 408 " in told
    assert b'"slow"' in told
    assert time.monotonic() - started < 5
    with socket.create_connection(_address(port), 10) as connection:
        connection.sendall(HEAD + b"content-length: 1000\r\n\r\n")
        dripped = 0
        try:
            while dripped < 60:  # one byte now and then keeps nothing open
                connection.sendall(b"x")
                dripped += 1
                time.sleep(0.05)
        except OSError:
            pass
        assert dripped < 60
    last(port)


@pytest.mark.parametrize("head", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: "])
def test_slow_heads(port: Served, head: bytes) -> None:
    started = time.monotonic()
    told = raw(port.url, head)
    assert b" 408 " in told
    assert 0.3 < time.monotonic() - started < 5
    last(port)


def test_a_second_slow_head_on_the_same_connection(port: Served) -> None:
    with socket.create_connection(_address(port), 10) as connection:
        connection.sendall(b"GET /api/v1/health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        told = b""
        while b'"status":"ok"' not in told:  # head and body may come apart
            told += connection.recv(65536)
        assert b" 200 " in told
        connection.sendall(b"GET /api/v1/hea")
        told = b""
        while more := connection.recv(65536):
            told += more
        assert b" 408 " in told


def test_long_heads(port: Served) -> None:
    told = raw(port.url, b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"a" * (HEAD_BYTES + 100))
    assert told.split(b" ", 2)[1] in (b"400", b"431")
    last(port)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n x: folded\r\nhost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx y: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: nothing\r\n\r\n",
        b"GET / HTTP/x\r\nhost: 127.0.0.1\r\n\r\n",
        b"POST /api/v1/sql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\n"
        b"content-length: 6\r\n\r\nabcde",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
    ],
)
def test_damaged_heads(port: Served, head: bytes) -> None:
    told = raw(port.url, head)
    status = told.split(b" ", 2)[1]
    assert status in (b"400", b"421", b"408"), told
    body = json.loads(told.partition(b"\r\n\r\n")[2])
    assert body["error"]["code"]
    assert b"Traceback" not in told
    last(port)


def test_two_requests_in_one_by_two_lengths(port: Served) -> None:
    """Request smuggling: with both lengths the chunks count, and what follows is a request."""
    inner = b"GET /api/v1/history HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n"
    both = HEAD + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + inner
    told = raw(port.url, both)
    assert b'"entries"' not in told
    last(port)


@pytest.mark.parametrize(
    "evil", ["a%0d%0aset-cookie:%20x=1", "a%0aset-cookie:x=1", "%E5%98%8A%E5%98%8Dset-cookie:x=1"]
)
def test_header_injection(port: Served, evil: str) -> None:
    for path in (f"/jobs/{evil}", f"/results/{evil}/file", f"/tables?text={evil}", f"/{evil}"):
        response = port.get(path)
        assert "set-cookie" not in response.headers
        assert response.headers.get_list("content-type")
    origin = {"origin": "http://127.0.0.1\tset-cookie: x=1"}
    assert port.get("/sources", headers=origin).status_code == 403
    last(port)


def test_an_id_of_a_client_cannot_break_a_header(port: Served) -> None:
    for evil in ("a\r\nset-cookie: x", '12345678"; filename="x', "../../etc/passwd", "ab cd efgh"):
        told = port.post("/sql", {"sql": "SELECT 1", "id": evil})
        assert told.status_code == 422


def test_forwarded_headers_are_not_believed(open_shop: Callable[..., Database]) -> None:
    with on_a_port(open_shop(), rate=60) as served:
        codes = [
            served.get("/jobs", headers={"x-forwarded-for": f"10.0.0.{i}"}).status_code
            for i in range(15)
        ]
        assert 429 in codes
        told = served.get("/sources", headers={"x-forwarded-host": "evil.example"})
        assert "evil" not in told.text


def test_websockets_are_not_spoken(port: Served) -> None:
    told = raw(
        port.url,
        b"GET /api/v1/ask/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade, close\r\n"
        b"upgrade: websocket\r\nsec-websocket-version: 13\r\n"
        b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )
    assert b" 101 " not in told
    last(port)


def test_a_reader_that_does_not_read(
    open_shop: Callable[..., Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbrag.interfaces.http.front.SEND_S", 0.3)
    statement = "SELECT a.*, b.* FROM orders AS a, stores AS b"
    with on_a_port(open_shop()) as served:
        found = served.post("/sql", {"sql": statement, "max_rows": 0}).json()
        path = f"/api/v1/results/{found['id']}/file?format=csv"
        with socket.create_connection(_address(served), 10) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
            wait_until(lambda: 'file",status="200"' in served.get("/metrics").text)
        last(served)


def test_script_in_names_and_cells_is_only_data(tmp_path: Path) -> None:
    path = tmp_path / "evil.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f'CREATE TABLE notes (id INTEGER PRIMARY KEY, "{SCRIPT}" TEXT)')
        database.execute("INSERT INTO notes VALUES (1, ?), (2, '=cmd()')", (SCRIPT,))
    sql = f'SELECT "{SCRIPT}" FROM notes'
    model = FunctionModel(lambda _: sql)
    opened = connect(path, index=tmp_path / "index", chat_model=model, embedder=HashEmbedder())
    with opened as database, in_process(database) as served:
        answer = served.post("/ask", {"question": f"Which notes hold {SCRIPT}?", "votes": 1})
        assert answer.json()["rows"][0] == [SCRIPT]
        responses = [
            answer,
            served.post("/ask/stream", {"question": f"Which notes hold {SCRIPT}?", "votes": 1}),
            served.get("/samples?table=notes"),
            served.get("/table?table=notes"),
            served.get("/history"),
            served.post("/sql", {"sql": f'SELECT * FROM "{SCRIPT}"'}),
            served.get(f"/tables?text={SCRIPT}"),
            served.get(f"/table?table={SCRIPT}"),
            *(
                served.get(f"/results/{answer.json()['id']}/file?format={form}")
                for form in ("csv", "json", "parquet")
            ),
        ]
        for response in responses:
            kind = response.headers["content-type"].partition(";")[0]
            assert kind in ("application/json", "text/event-stream", "text/csv",
                            "application/vnd.apache.parquet")  # fmt: skip
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["content-security-policy"].startswith("default-src 'none'")
        for response in responses[-3:]:
            assert response.headers["content-disposition"].startswith("attachment; ")


def test_half_characters_in_cells(tmp_path: Path) -> None:
    path = tmp_path / "half.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
        database.execute("INSERT INTO t VALUES (1, CAST(x'c328' AS TEXT)), (2, 'é')")
    model = FunctionModel(lambda _: "SELECT a FROM t")
    opened = connect(path, index=tmp_path / "index", chat_model=model, embedder=HashEmbedder())
    with opened as database, in_process(database) as served:
        answer = served.post("/sql", {"sql": "SELECT a FROM t ORDER BY id"})
        assert answer.status_code == 200
        assert answer.json()["rows"][1] == ["é"]
        for form in ("csv", "json"):
            file = served.get(f"/results/{answer.json()['id']}/file?format={form}")
            assert file.status_code == 200
            file.content.decode("utf-8")


def test_nothing_is_left_open(port: Served) -> None:
    before = _open_files()
    for _ in range(20):
        raw(port.url, b"nonsense\r\n\r\n")
        with socket.create_connection(_address(port)) as connection:
            connection.sendall(b"GET /api/v1/tables HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    wait_until(lambda: _open_files() <= before + 3)


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def _address(served: Served) -> tuple[str, int]:
    host, _, port = served.url.removeprefix("http://").rpartition(":")
    return host, int(port)
