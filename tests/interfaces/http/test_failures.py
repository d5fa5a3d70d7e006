"""What the server says when the index or an engine fails, or is not ready yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dbrag.database import Database
from dbrag.errors import ExecutionError
from tests.interfaces.http.conftest import Served, error, in_process, ok, wait_until

if TYPE_CHECKING:
    import pytest


def test_before_the_index_is_ready(
    open_shop: Callable[..., Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    database, go = open_shop(), threading.Event()
    opened = database.opened_index
    monkeypatch.setattr(database, "opened_index", lambda _=None: (go.wait(10), opened())[1])
    from starlette.testclient import TestClient

    from dbrag.interfaces.http.app import create_app
    from dbrag.interfaces.http.options import ServeOptions
    from dbrag.interfaces.http.service import Service
    from tests.interfaces.http.conftest import BASE

    service = Service(database, ServeOptions())
    with TestClient(create_app(service), BASE) as client:
        served = Served(client, service)
        assert served.get("/health").status_code == 200
        for response in (served.get("/ready"), served.post("/ask", {"question": "x"})):
            error(response, 503, "starting")
            assert int(response.headers["retry-after"]) >= 1
        go.set()
        wait_until(lambda: served.get("/ready").status_code == 200)


def test_an_index_that_cannot_be_opened_is_told_at_every_request(
    open_shop: Callable[..., Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbrag.errors import IndexUnusable

    database = open_shop()

    def fails(_: object = None) -> Any:
        raise IndexUnusable("the disk is full", "free some space")

    monkeypatch.setattr(database, "opened_index", fails)
    with in_process(database) as served:
        error(served.post("/search", {"question": "x"}), 503, "index")
        assert ok(served.post("/sql", {"sql": "SELECT 1"}))["rows"] == [[1]]


def test_engine_errors(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> Any:
        raise ExecutionError("integer overflow")

    monkeypatch.setattr(served.service.database, "sql", fails)
    error(served.post("/sql", {"sql": "SELECT 1"}), 422, "execution")
