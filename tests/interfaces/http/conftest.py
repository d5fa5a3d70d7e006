"""A server over the demo shop, with a scripted model, in process and on a real port."""

from __future__ import annotations

import io
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from dbrag.database import Database, connect
from dbrag.demo import QUESTIONS, write_demo
from dbrag.interfaces.http import answers, logs
from dbrag.interfaces.http.app import PAGE, create_app
from dbrag.interfaces.http.options import ServeOptions
from dbrag.interfaces.http.server import bind, make_server, url_of
from dbrag.interfaces.http.service import Service
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder

CITIES = QUESTIONS[1]
TOKEN = "a-token-of-enough-characters"
BASE = "http://127.0.0.1:8321"


def ok(response: Any, shape: type[answers.Shape] | None = None) -> Any:
    """The JSON of a response that is as described."""
    assert response.status_code == 200, response.text
    value = response.json()
    if shape is not None:
        shape.model_validate(value, strict=True)
    return value


def error(response: Any, status: int, code: str) -> dict[str, str]:
    """The error of a response that is as described."""
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    answers.ErrorBody.model_validate(response.json(), strict=True)
    return response.json()["error"]


def gold(prompt: Prompt) -> str:
    """The demo's own SQL for its questions, else a count."""
    for one in QUESTIONS:
        if one.question in prompt.request:
            return one.sql
    return "SELECT COUNT(*) AS n FROM customers"


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("shop") / "shop.db").path


@pytest.fixture(scope="session")
def index(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the shop; nothing changes it."""
    folder = tmp_path_factory.mktemp("index")
    with connect(shop, index=folder, embedder=HashEmbedder()) as database:
        database.index()
    return folder


@pytest.fixture
def open_shop(shop: Path, index: Path, tmp_path: Path) -> Iterator[Callable[..., Database]]:
    """Opens the shop with a model that answers by ``fn(prompt)``."""
    opened: list[Database] = []

    def make(fn: Callable[[Prompt], str] = gold, **arguments: Any) -> Database:
        arguments = {"learned": str(tmp_path / "learned.sql"), **arguments}
        model = FunctionModel(fn)
        database = connect(
            shop, index=index, chat_model=model, embedder=HashEmbedder(), **arguments
        )
        opened.append(database)
        return database

    yield make
    for database in opened:
        database.close()


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the server logs; afterwards logging is as it was."""
    names = ("dbrag.http", "dbrag", "uvicorn")
    before = {}
    for name in names:
        logger = logging.getLogger(name)
        before[logger] = (logger.level, logger.handlers, logger.propagate)
    lines = io.StringIO()
    logs.set_up(logging.INFO, lines)
    yield lines
    for logger, (level, handlers, propagate) in before.items():
        logger.level, logger.handlers, logger.propagate = level, handlers, propagate
        logger.setLevel(level)  # also empties what loggers remember


@dataclass
class Served:
    """A client of a server, and what stands behind it."""

    http: Any
    service: Service
    url: str = BASE
    prompts: list[Prompt] = field(default_factory=list)

    def get(self, path: str, **arguments: Any) -> Any:
        return self.http.get(f"/api/v1{path}", **arguments)

    def post(self, path: str, value: Any, **arguments: Any) -> Any:
        return self.http.post(f"/api/v1{path}", json=value, **arguments)

    def delete(self, path: str, **arguments: Any) -> Any:
        return self.http.delete(f"/api/v1{path}", **arguments)


def wait_until(true: Callable[[], Any], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@contextmanager
def in_process(database: Database, page: Path = PAGE, **options: Any) -> Iterator[Served]:
    service = Service(database, ServeOptions(**options))
    with TestClient(create_app(service, page), BASE, raise_server_exceptions=False) as client:
        wait_until(lambda: service.ready)
        yield Served(client, service)


@pytest.fixture
def served(open_shop: Callable[..., Database]) -> Iterator[Served]:
    """The server in this process, with its defaults."""
    with in_process(open_shop()) as made:
        yield made


@contextmanager
def on_a_port(database: Database, **options: Any) -> Iterator[Served]:
    """uvicorn on a free port of the loopback, in a thread."""
    chosen = ServeOptions(port=0, **{"grace_s": 1.0, **options})
    service = Service(database, chosen)
    listening = bind(chosen)
    server = make_server(service)
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]))
    thread.start()
    url = url_of(listening, chosen)
    try:
        wait_until(lambda: service.ready)
        with httpx.Client(base_url=url, timeout=60) as client:
            yield Served(client, service, url)
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def raw(url: str, data: bytes, timeout: float = 10.0) -> bytes:
    """What a server sends for these bytes until it closes the connection."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout) as connection:
        connection.sendall(data)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def sent(served: Served, path: str, body: Any) -> socket.socket:
    """A connection with a request on its way; closing it is leaving."""
    host, _, port = served.url.removeprefix("http://").rpartition(":")
    content = json.dumps(body).encode()
    connection = socket.create_connection((host, int(port)), 60)
    connection.sendall(
        f"POST /api/v1{path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(content)}\r\n\r\n".encode()
        + content
    )
    return connection


class Stuck:
    """A model that waits until it is let go or cancelled, as a slow one does."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go = threading.Event()
        self.cancelled = threading.Event()

    def __call__(self, prompt: Prompt) -> str:
        from dbrag.cancel import Cancelled, check

        self.asked.set()
        try:
            while not self.go.wait(0.02):
                check()
        except Cancelled:
            self.cancelled.set()
            raise
        return gold(prompt)
