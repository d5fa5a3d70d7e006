"""Answers as server-sent events: order, end, cancelling, and clients that leave."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dbrag.database import Database
from dbrag.errors import ModelError
from dbrag.interfaces.http import answers, stream
from tests.interfaces.http.conftest import (
    CITIES,
    Served,
    Stuck,
    in_process,
    on_a_port,
    sent,
    wait_until,
)

ENDLESS = "SELECT COUNT(*) FROM orders AS a, orders AS b, orders AS c"
TWO_STEPS = """WITH by_city AS (SELECT city, COUNT(*) AS n FROM customers GROUP BY city)
SELECT MAX(n) FROM by_city"""


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """(event, data) of a stream, which ends every event by an empty line."""
    name = ""
    for line in lines:
        key, _, value = line.partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, json.loads(value)


def streamed(served: Served, **body: Any) -> list[tuple[str, Any]]:
    body = {"question": CITIES.question, **body}
    with served.http.stream("POST", "/api/v1/ask/stream", json=body) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        return list(events_of(response.iter_lines()))


def test_events_come_in_the_order_of_the_stages(served: Served) -> None:
    found = streamed(served)
    names = [name for name, _ in found]
    assert names == ["job", "retrieve", "select", "program", "vote", "program", "vote", "answer"]
    told = dict(found)
    assert told["retrieve"]["candidates"][0]["table"] == "shop.customers"
    assert told["program"]["sql"] == CITIES.sql
    assert told["program"]["row_count"] == 12
    answers.Answer.model_validate(told["answer"], strict=True)
    assert told["answer"]["id"] == told["job"]["id"]
    assert told["answer"]["rows"][0] == ["Amsterdam", 169]
    assert served.get(f"/results/{told['job']['id']}").status_code == 200


def test_events_are_numbered_and_each_on_lines_of_its_own() -> None:
    text = stream.event_bytes(3, "program", {"sql": "a\nb\r\ndata: c", "half": "\ud800"}).decode()
    assert text.startswith("id: 3\nevent: program\ndata: {")
    assert text.count("\n") == 4
    assert text.endswith("}\n\n")


def test_results_of_steps_are_told_where_asked_for(open_shop: Callable[..., Database]) -> None:
    with in_process(open_shop(lambda _: TWO_STEPS)) as served:
        names = [name for name, _ in streamed(served, votes=1)]
        assert "step" not in names
        found = streamed(served, votes=1, steps=True)
        (step,) = [value for name, value in found if name == "step"]
        assert (step["name"], step["row_count"], step["error"]) == ("by_city", 12, None)
        assert [name for name, _ in found][-2:] == ["step", "answer"]


def test_a_failure_is_the_last_event(open_shop: Callable[..., Database]) -> None:
    def fails(_: object) -> str:
        raise ModelError("no memory", "close other programs")

    with in_process(open_shop(fails)) as served:
        name, value = streamed(served)[-1]
        assert name == "error"
        assert value == {
            "error": {"code": "model", "message": "no memory", "hint": "close other programs"}
        }


def test_a_bug_is_the_last_event_too(open_shop: Callable[..., Database], log: io.StringIO) -> None:
    def fails(_: object) -> str:
        raise ZeroDivisionError("".join(("a sec", "ret value")))

    with in_process(open_shop(fails)) as served:
        name, value = streamed(served)[-1]
        assert (name, value["error"]["code"]) == ("error", "bug")
        assert "secret" not in json.dumps(value) + log.getvalue()
    bugs = [one for one in map(json.loads, log.getvalue().splitlines()) if one["event"] == "bug"]
    assert [bug["kind"] for bug in bugs] == ["ZeroDivisionError"]
    assert bugs[0]["request"] in value["error"]["hint"]


def test_signs_of_life_while_waiting(
    open_shop: Callable[..., Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.02)
    stuck = Stuck()
    threading.Timer(0.6, stuck.go.set).start()
    with in_process(open_shop(stuck)) as served:
        body = {"question": CITIES.question, "votes": 1}
        text = served.post("/ask/stream", body).text
    assert text.count(": waiting\n\n") >= 2
    assert "event: answer" in text


def test_cancelling_ends_the_stream_and_frees_the_place(
    open_shop: Callable[..., Database],
) -> None:
    stuck = Stuck()
    with on_a_port(open_shop(stuck)) as served:
        body = {"question": CITIES.question, "id": "to-be-cancelled"}
        with served.http.stream("POST", "/api/v1/ask/stream", json=body) as response:
            found = events_of(response.iter_lines())
            assert next(found)[0] == "job"
            assert stuck.asked.wait(60)
            state = served.http.post("/api/v1/jobs/to-be-cancelled/cancel").json()
            assert state["state"] == "running"
            name, value = list(found)[-1]
        assert (name, value["error"]["code"]) == ("error", "cancelled")
        assert stuck.cancelled.wait(60)
        wait_until(lambda: not served.service.board.active())
        assert served.get("/jobs/to-be-cancelled").json()["state"] == "cancelled"
        again = served.http.post("/api/v1/jobs/to-be-cancelled/cancel")
        assert (again.status_code, again.json()["state"]) == (200, "cancelled")


@pytest.mark.parametrize("path", ["/ask", "/ask/stream"])
def test_a_client_that_leaves_frees_the_model(
    open_shop: Callable[..., Database], path: str
) -> None:
    stuck = Stuck()
    with on_a_port(open_shop(stuck)) as served:
        with sent(served, path, {"question": CITIES.question}):
            assert stuck.asked.wait(60)
        assert stuck.cancelled.wait(60)
        wait_until(lambda: not served.service.board.active())
        stuck.go.set()
        answer = served.post("/ask", {"question": CITIES.question})
        assert answer.json()["row_count"] == 12


def test_a_client_that_leaves_stops_the_statement(open_shop: Callable[..., Database]) -> None:
    with on_a_port(open_shop(timeout_s=600)) as served:
        with sent(served, "/sql", {"sql": ENDLESS}):
            wait_until(_statements)
        wait_until(lambda: not served.service.board.active())
        wait_until(lambda: not _statements())
        page = served.get("/metrics").text
        assert 'dbrag_jobs_total{kind="sql",state="cancelled"} 1.0' in page
        assert 'route="/api/v1/sql",status="499"' in page


def _statements() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dbrag-statement"]


def test_a_queued_client_that_leaves_is_taken_out(open_shop: Callable[..., Database]) -> None:
    stuck = Stuck()
    body = {"question": CITIES.question, "votes": 1}
    with on_a_port(open_shop(stuck)) as served, sent(served, "/ask", body) as first:
        assert stuck.asked.wait(60)
        with sent(served, "/ask", {"question": "another one"}):
            wait_until(lambda: len(served.service.lanes["ask"].waiting) == 1)
        wait_until(lambda: len(served.service.board.active()) == 1)
        assert not stuck.cancelled.is_set()
        stuck.go.set()
        assert b" 200 " in first.recv(65536)
