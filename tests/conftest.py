"""Shared fixtures: no connection leaves the machine, no setting of the user leaks in."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import socket
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

import dbrag
from dbrag.models.testing import HashEmbedder, ScriptedModel
from dbrag.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# A deadline per example measures the machine, not the code.
hypothesis.settings.register_profile("dbrag", deadline=None)
hypothesis.settings.load_profile("dbrag")

# Read before any test hides the environment: where the real weights may lie.
REAL_CACHE = load_settings(directory=Path("/")).cache_dir


class RemoteCall(Exception):
    """A test tried to leave the machine."""


def _is_local(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # a Unix socket
    host = str(address[0])
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True, scope="session")
def _no_remote_calls() -> Iterator[None]:
    """Kill switch: sockets to other machines, name look-ups, whatever library does it."""
    patch = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex"):
        original = getattr(socket.socket, name)

        def guarded(self: socket.socket, address: Any, _original: Any = original) -> Any:
            if not _is_local(address):
                raise RemoteCall(f"a test tried to connect to {address!r}")
            return _original(self, address)

        patch.setattr(socket.socket, name, guarded)
    look_up = socket.getaddrinfo

    def guarded_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host is not None and not _is_local(
            (host.decode() if isinstance(host, bytes) else host,)
        ):
            raise RemoteCall(f"a test tried to look up {host!r}")
        return look_up(host, *args, **kwargs)

    patch.setattr(socket, "getaddrinfo", guarded_look_up)
    yield
    patch.undo()


@pytest.fixture(autouse=True, scope="session")
def _nothing_changes(_no_remote_calls: None) -> Iterator[None]:
    """After everything: no table, row, role, setting or file beside the tests' own changed."""
    from tests.untouched import changes, snapshot

    before = snapshot()
    yield
    assert not changes(before, snapshot())


@pytest.fixture(autouse=True)
def _no_model_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch of pydantic-ai itself; importing it takes seconds, so only where it is loaded."""
    models = sys.modules.get("pydantic_ai.models")
    if models is not None:
        monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No ``DBRAG_*`` of the user, a cache of its own, a folder without ``dbrag.toml``."""
    for name in [name for name in os.environ if name.startswith("DBRAG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DBRAG_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cwd"
    folder.mkdir()
    monkeypatch.chdir(folder)


@pytest.fixture
def small_shop(tmp_path: Path) -> Path:
    """A SQLite file: customers, orders, lines with a composite key, NULLs, odd names, a view."""
    path = tmp_path / "small shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_SMALL_SHOP)
    return path


_SMALL_SHOP = """
CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
CREATE TABLE orders (
    order_id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    ordered_on DATE NOT NULL
);
CREATE TABLE "order lines" (
    order_id INTEGER NOT NULL REFERENCES orders (order_id),
    "line no" INTEGER NOT NULL,
    product TEXT NOT NULL,
    quantity INTEGER NOT NULL,
    price DECIMAL(8, 2),
    PRIMARY KEY (order_id, "line no")
);
CREATE VIEW order_sizes AS
    SELECT order_id, COUNT(*) AS lines FROM "order lines" GROUP BY order_id;
INSERT INTO customers VALUES
    (1, 'Anna Costa', 'Lisbon'), (2, 'Ben O''Brien', 'Dublin'), (3, '李雷', NULL);
INSERT INTO orders VALUES (1, 1, '2024-01-05'), (2, 1, '2024-02-06'), (3, 2, '2025-03-07');
INSERT INTO "order lines" VALUES
    (1, 1, 'Green Tea', 2, 4.50), (1, 2, 'Desk Lamp', 1, 39.00),
    (2, 1, 'Green Tea', 1, 4.50), (3, 1, 'Kite', 3, NULL);
"""


@pytest.fixture
def model_settings(tmp_path: Path) -> Settings:
    """Settings with the real local model; the test is skipped where its weights are missing.

    In CI a missing model is a failure: a check that silently checks nothing is none.
    """
    from dbrag.errors import DbragError
    from dbrag.models.weights import locate

    settings = Settings(cache=str(REAL_CACHE), index=str(tmp_path / "index"), offline=True)
    try:
        if importlib.util.find_spec("xllamacpp") is None:
            raise DbragError("the local extra is not installed", "pip install '.[local]'")
        locate(settings.model, settings)
        locate(settings.encoder, settings)
    except DbragError as error:
        message = f"{error.message} ({error.hint})"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(message)
        pytest.skip(message)
    return settings


def connect(path: Path, *replies: str, **arguments: Any) -> dbrag.Database:
    """A database whose chat model gives these replies."""
    return dbrag.connect(
        path, chat_model=ScriptedModel(list(replies)), embedder=HashEmbedder(), **arguments
    )
