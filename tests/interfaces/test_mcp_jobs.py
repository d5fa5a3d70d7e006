"""Calls of agents at once, too many of them, and those that nobody waits for any more."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbrag.cancel import check
from dbrag.interfaces.mcp import service as service_module
from dbrag.models.testing import FunctionModel
from tests.interfaces.mcp_bed import MODES, connected, database, run, until

ENDLESS = (
    "SELECT COUNT(*) FROM customers a, customers b, customers c, customers d, customers e, "
    "customers f, customers g, customers h, orders i, orders j, orders k, orders l, orders m, "
    "orders n, orders o, orders p, orders q, orders r, orders s, orders t, orders u, orders v"
)


class SlowModel(FunctionModel):
    """Waits, looking whether it is still wanted, as the real ones do."""

    def __init__(self) -> None:
        super().__init__(self._wait)
        self.asked = threading.Event()
        self.stopped = threading.Event()
        self.go = threading.Event()

    def _wait(self, _: Any) -> str:
        self.asked.set()
        try:
            while not self.go.wait(0.02):
                check()
        except BaseException:
            self.stopped.set()
            raise
        return "SELECT COUNT(*) FROM customers"


@pytest.fixture
def slow() -> Iterator[SlowModel]:
    model = SlowModel()
    yield model
    model.go.set()


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_is_given_up_frees_the_engine(small_shop: Path, mode: str) -> None:
    async def work() -> None:
        with database(small_shop) as db:
            async with connected(db, mode, at_once=1) as (calls, service):
                lane = service.board.lanes["work"]
                call = asyncio.ensure_future(calls("run_query", sql=ENDLESS))
                assert await until(lambda: len(lane.running) == 1)
                await asyncio.sleep(0.3)
                call.cancel()
                assert await until(lambda: not lane.running), "it goes on"
                rows, _ = await calls.good("run_query", sql="SELECT 1")
                assert rows["rows"] == [[1]]

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_a_question_that_is_given_up_frees_the_model(
    small_shop: Path, slow: SlowModel, mode: str
) -> None:
    async def work() -> None:
        with database(small_shop, model=slow, votes=1) as db:
            async with connected(db, mode) as (calls, service):
                call = asyncio.ensure_future(calls("ask", question="How many customers?"))
                assert await until(slow.asked.is_set)
                call.cancel()
                assert await until(slow.stopped.is_set)
                assert await until(lambda: not service.board.active())
                slow.go.set()
                answer, _ = await calls.good("ask", question="How many customers?")
                assert answer["result"]["rows"] == [[3]]

    run(work())


def test_limits_of_time_are_errors_and_free_the_job(small_shop: Path, slow: SlowModel) -> None:
    async def work() -> None:
        with database(small_shop, model=slow, timeout_s=0.3) as db:
            async with connected(db, call_s=2.0) as (calls, service):
                text = await calls.bad("run_query", sql=ENDLESS)
                assert text.startswith("limit: reading small shop.customers")
                assert "time limit" in text
                text = await calls.bad("ask", question="How many customers?")
                assert text.startswith("timeout: stopped after 2 s")
                assert await until(slow.stopped.is_set)
                assert await until(lambda: not service.board.active())

    run(work())


def test_many_calls_at_once(small_shop: Path) -> None:
    async def work() -> None:
        with database(small_shop) as db:
            async with connected(db, at_once=3) as (calls, service):
                most = 0

                async def watch() -> None:
                    nonlocal most
                    while True:
                        most = max(most, len(service.board.lanes["work"].running))
                        await asyncio.sleep(0.001)

                watcher = asyncio.ensure_future(watch())
                works = []
                for i in range(8):
                    works += [
                        calls.good("run_query", sql=f"SELECT {i}, COUNT(*) FROM customers"),
                        calls.good("search_tables", question=f"customers {i}"),
                        calls.good("find_values", text="Lisbon"),
                        calls.good("describe_table", table="orders"),
                    ]
                found = await asyncio.gather(*works)
                watcher.cancel()
                assert [one["rows"] for one, _ in found[::4]] == [[[i, 3]] for i in range(8)]
                assert {one["tables"][0]["table"] for one, _ in found[1::4]} == {
                    "small shop.customers"
                }
                assert 1 < most <= 3

    run(work())


def test_one_too_many_is_refused(small_shop: Path, slow: SlowModel) -> None:
    async def work() -> None:
        with database(small_shop, model=slow, votes=1) as db:
            async with connected(db, waiting=1) as (calls, service):
                lane = service.board.lanes["ask"]
                first = asyncio.ensure_future(calls.good("ask", question="How many customers?"))
                assert await until(slow.asked.is_set)
                second = asyncio.ensure_future(calls.good("ask", question="How many customers?"))
                assert await until(lambda: len(lane.waiting) == 1)
                text = await calls.bad("ask", question="How many customers?")
                assert text.startswith("busy: 1 requests are waiting already\ntry: try again in ")
                # Other work has a lane of its own.
                assert (await calls.good("run_query", sql="SELECT 1"))[0]["rows"] == [[1]]
                slow.go.set()
                for answer, _ in await asyncio.gather(first, second):
                    assert answer["result"]["rows"] == [[3]]

    run(work())


def test_a_long_call_says_that_it_goes_on(
    small_shop: Path, slow: SlowModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "HEARTBEAT_S", 0.1)

    async def work() -> None:
        with database(small_shop, model=slow, votes=1) as db:
            async with connected(db) as (calls, _):
                call = asyncio.ensure_future(calls.good("ask", question="How many customers?"))
                assert await until(slow.asked.is_set)
                said = len(calls.progress)
                assert await until(lambda: len(calls.progress) > said + 3)
                assert re.fullmatch(r"writing a program … \(\d+ s\)", calls.progress[-1][1])
                slow.go.set()
                await call
                numbers = [number for number, _ in calls.progress]
                assert numbers == sorted(set(numbers))

    run(work())


def test_indexing_goes_on_when_its_caller_leaves(
    small_shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go, ended = threading.Event(), threading.Event(), threading.Event()

    async def work() -> None:
        with database(small_shop) as db:
            index = db.index

            def slow_index(*arguments: Any, **named: Any) -> Any:
                began.set()
                assert go.wait(60)
                try:
                    return index(*arguments, **named)
                finally:
                    ended.set()

            monkeypatch.setattr(db, "index", slow_index)
            async with connected(db) as (calls, service):
                call = asyncio.ensure_future(calls("search_tables", question="customers"))
                assert await until(began.is_set)
                call.cancel()
                assert await until(lambda: not service.board.active())
                others = [
                    asyncio.ensure_future(calls.good("search_tables", question="customers"))
                    for _ in range(3)
                ]
                await asyncio.sleep(0.2)
                assert not ended.is_set()
                go.set()
                for found, _ in await asyncio.gather(*others):
                    assert found["tables"][0]["table"] == "small shop.customers"
                assert ended.is_set()

    run(work())


def test_indexing_ends_with_the_server(small_shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = threading.Event()

    def endless(*_: Any) -> Any:
        began.set()
        while True:
            time.sleep(0.02)
            check()

    async def work() -> None:
        with database(small_shop) as db:
            monkeypatch.setattr(db, "opened_index", endless)
            async with connected(db) as (calls, service):
                call = asyncio.ensure_future(calls("search_tables", question="customers"))
                assert await until(began.is_set)
                call.cancel()
                assert await until(lambda: not service.board.active())
                assert service.busy
            assert not service.busy

    run(work())


def test_progress_of_indexing_goes_to_standard_error(
    small_shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work() -> None:
        with database(small_shop) as db:
            async with connected(db) as (calls, _):
                await calls.good("search_tables", question="customers")
                assert "reading and indexing …" in [text for _, text in calls.progress]

    run(work())
    out, err = capsys.readouterr()
    assert out == ""
    assert "indexing small shop (not indexed) …" in err
