"""Full queues, long requests, and the end of a server."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from dbrag.database import Database, connect
from dbrag.index.progress import Reporter
from dbrag.interfaces.http.app import create_app
from dbrag.interfaces.http.options import ServeOptions
from dbrag.interfaces.http.service import Service
from dbrag.models.testing import HashEmbedder
from tests.interfaces.http.conftest import (
    BASE,
    CITIES,
    Served,
    Stuck,
    in_process,
    on_a_port,
    wait_until,
)
from tests.interfaces.http.test_stream import ENDLESS, events_of


def test_a_full_queue_answers_429(open_shop: Callable[..., Database]) -> None:
    stuck = Stuck()
    with on_a_port(open_shop(stuck), queue=2) as served, ThreadPoolExecutor(3) as pool:
        body = {"question": CITIES.question, "votes": 1}
        first = pool.submit(served.post, "/ask", body)
        assert stuck.asked.wait(60)
        waiting = [pool.submit(served.post, "/ask", body) for _ in range(2)]
        wait_until(lambda: len(served.service.lanes["ask"].waiting) == 2)
        for path in ("/ask", "/ask/stream"):
            refused = served.post(path, body)
            assert refused.status_code == 429
            assert refused.json()["error"]["code"] == "busy"
            assert 1 <= int(refused.headers["retry-after"]) <= 60
        # The other lane goes on, and jobs tell how they stand.
        assert served.post("/search", {"question": CITIES.question}).status_code == 200
        states = [job["state"] for job in served.get("/jobs").json()["jobs"]]
        assert states == ["running", "queued", "queued"]
        stuck.go.set()
        for done in (first, *waiting):
            assert done.result(60).json()["row_count"] == 12


def test_one_question_at_a_time_with_a_model_of_this_machine(
    open_shop: Callable[..., Database],
) -> None:
    with in_process(open_shop()) as served:
        assert served.service.lanes["ask"].slots == 1
    with in_process(open_shop(), asks=3) as served:
        assert served.service.lanes["ask"].slots == 3
    with in_process(open_shop(model="openai:some-model")) as served:
        assert served.service.lanes["ask"].slots == 4


def test_a_request_that_takes_too_long(open_shop: Callable[..., Database]) -> None:
    stuck = Stuck()
    with in_process(open_shop(stuck, timeout_s=60), timeout_s=0.5) as served:
        for path, body in (("/ask", {"question": "x y z"}), ("/sql", {"sql": ENDLESS})):
            late = served.post(path, body)
            assert (late.status_code, late.json()["error"]["code"]) == (504, "timeout")
            assert "0.5 s" in late.json()["error"]["message"]
        wait_until(lambda: not served.service.board.active())
        text = served.post("/ask/stream", {"question": "x y z"}).text
        assert '"code":"timeout"' in text


def test_the_engines_own_limit_comes_first_where_it_is_shorter(
    open_shop: Callable[..., Database],
) -> None:
    with in_process(open_shop(timeout_s=0.3)) as served:
        late = served.post("/sql", {"sql": ENDLESS})
        assert (late.status_code, late.json()["error"]["code"]) == (422, "limit")


def test_questions_of_many_clients_are_all_answered(open_shop: Callable[..., Database]) -> None:
    with on_a_port(open_shop(), rate=0) as served, ThreadPoolExecutor(8) as pool:
        body = {"question": CITIES.question}
        paths = ["/ask", "/search"] * 8
        found = list(pool.map(lambda path: served.post(path, body), paths))
        assert [one.status_code for one in found] == [200] * 16


def test_running_requests_may_end_when_the_server_stops(
    open_shop: Callable[..., Database],
) -> None:
    stuck = Stuck()
    with ThreadPoolExecutor(2) as pool:
        with on_a_port(open_shop(stuck), grace_s=10) as served:
            body = {"question": CITIES.question, "votes": 1}
            running = pool.submit(httpx.post, f"{served.url}/api/v1/ask", json=body, timeout=60)
            assert stuck.asked.wait(60)
            queued = pool.submit(httpx.post, f"{served.url}/api/v1/ask", json=body, timeout=60)
            wait_until(lambda: len(served.service.board.active()) == 2)
            threading.Timer(0.5, stuck.go.set).start()
        assert running.result(60).json()["row_count"] == 12
        assert queued.result(60).status_code == 409


def test_after_the_grace_running_requests_are_cancelled(
    open_shop: Callable[..., Database],
) -> None:
    stuck = Stuck()
    with ThreadPoolExecutor(1) as pool:
        with on_a_port(open_shop(stuck), grace_s=0.2) as served:
            running = pool.submit(_last_event, served)
            assert stuck.asked.wait(60)
        assert stuck.cancelled.is_set()
        assert running.result(60)["error"]["code"] == "cancelled"


def _last_event(served: Served) -> Any:
    body = {"question": CITIES.question}
    with httpx.stream("POST", f"{served.url}/api/v1/ask/stream", json=body, timeout=60) as response:
        return list(events_of(response.iter_lines()))[-1][1]


@pytest.mark.parametrize("path", ["/ready", "/tables"])
def test_a_stopping_server_takes_nothing_new(open_shop: Callable[..., Database], path: str) -> None:
    with in_process(open_shop()) as served:
        served.service.board.stopping = True
        told = served.get(path)
        assert (told.status_code, told.json()["error"]["code"]) == (503, "stopping")
        assert served.get("/health").status_code == 200


def test_a_server_that_stops_gives_up_indexing(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    """Of an index that was not finished nothing is left that a later one could trip over."""
    begun, real = threading.Event(), Reporter.tell

    def slow(self: Reporter, *arguments: Any, **more: Any) -> None:
        begun.set()
        time.sleep(0.3)
        real(self, *arguments, **more)

    monkeypatch.setattr(Reporter, "tell", slow)
    opened = connect(shop, index=tmp_path / "index", embedder=HashEmbedder())
    with opened as database:
        service = Service(database, ServeOptions())
        with TestClient(create_app(service), BASE):
            assert begun.wait(60)
            assert not service.ready
        assert '"index_given_up"' in log.getvalue()
        monkeypatch.undo()
        assert database.search(CITIES.question).candidates
