"""Lanes and jobs by themselves: bounds, order, cancelling, the end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dbrag.cancel import check
from dbrag.errors import UsageError
from dbrag.interfaces.http.jobs import (
    KEPT,
    Board,
    Busy,
    Job,
    JobCancelled,
    JobNotFound,
    Lane,
    Stopping,
    TimedOut,
    events_of,
)


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 30))


def board_of(slots: int = 1, queue: int = 2, timeout_s: float = 20.0, **more: Any) -> Board:
    return Board({"a": Lane("a", slots, queue)}, timeout_s, **more)


def until(event: threading.Event) -> Callable[[Job], str]:
    def work(_: Job) -> str:
        while not event.wait(0.01):
            check()
        return "done"

    return work


def test_results_and_errors_arrive() -> None:
    async def main() -> None:
        board = board_of()
        assert (
            await board.result(board.submit("k", "a", lambda job: job.id, job_id="mine")) == "mine"
        )

        def fails(_: Job) -> None:
            raise UsageError("no")

        job = board.submit("k", "a", fails)
        with pytest.raises(UsageError, match="no"):
            await board.result(job)
        assert board.get(job.id).state == "failed"
        assert board.active() == []
        await board.stop(0)

    run(main)


def test_at_once_in_the_queue_and_refused() -> None:
    async def main() -> None:
        board, go = board_of(slots=2, queue=2), threading.Event()
        jobs = [board.submit("k", "a", until(go)) for _ in range(4)]
        assert [job.state for job in jobs] == ["running", "running", "queued", "queued"]
        assert [board.position(job) for job in jobs] == [0, 0, 0, 1]
        with pytest.raises(Busy) as caught:
            board.submit("k", "a", until(go))
        assert caught.value.retry_s >= 1
        go.set()
        assert await asyncio.gather(*map(board.result, jobs)) == ["done"] * 4
        await board.stop(0)

    run(main)


def test_a_slot_is_free_only_when_its_thread_has_ended() -> None:
    async def main() -> None:
        board, go = board_of(), threading.Event()

        def deaf(_: Job) -> None:
            go.wait(10)

        first = board.submit("k", "a", deaf)
        second = board.submit("k", "a", lambda _: "second")
        board.cancel(first)
        await asyncio.sleep(0.1)
        assert (first.state, second.state) == ("running", "queued")
        go.set()
        assert await board.result(second) == "second"
        # What nobody waits for any more is not told as done.
        assert board.get(first.id).state in ("done", "cancelled")
        await board.stop(0)

    run(main)


def test_cancelling_what_waits_and_what_runs() -> None:
    async def main() -> None:
        ended: list[tuple[str, str]] = []
        board = board_of(on_end=lambda job: ended.append((job.kind, job.state)))
        go = threading.Event()
        running, waiting = (board.submit(k, "a", until(go)) for k in ("running", "waiting"))
        board.cancel(waiting)
        with pytest.raises(JobCancelled):
            await board.result(waiting)
        board.cancel(running)
        with pytest.raises(JobCancelled):
            await board.result(running)
        assert ended == [("waiting", "cancelled"), ("running", "cancelled")]
        board.cancel(board.get(running.id))  # twice is no error
        with pytest.raises(JobNotFound):
            board.get("nothing")
        await board.stop(0)

    run(main)


def test_a_request_that_is_given_up_cancels_its_job() -> None:
    async def main() -> None:
        board, go = board_of(), threading.Event()
        job = board.submit("k", "a", until(go))
        waiter = asyncio.ensure_future(board.result(job))
        await asyncio.sleep(0.05)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        while board.active():
            await asyncio.sleep(0.01)
        assert board.get(job.id).state == "cancelled"
        await board.stop(0)

    run(main)


def test_too_long_waiting_included() -> None:
    async def main() -> None:
        board, go = board_of(timeout_s=0.2), threading.Event()
        first, second = (board.submit("k", "a", until(go)) for _ in range(2))
        for job in (first, second):
            with pytest.raises(TimedOut, match=r"0\.2 s"):
                await board.result(job)
        while board.active():
            await asyncio.sleep(0.01)
        await board.stop(0)

    run(main)


def test_a_timeout_of_the_work_itself_is_not_ours() -> None:
    async def main() -> None:
        def late(_: Job) -> None:
            raise TimeoutError("of a socket")

        board = board_of()
        with pytest.raises(TimeoutError, match="of a socket"):
            await board.result(board.submit("k", "a", late))
        await board.stop(0)

    run(main)


def test_events_arrive_in_order_and_stop_with_the_job() -> None:
    async def main() -> None:
        board, loop = board_of(), asyncio.get_running_loop()
        seen: list[int] = []
        told = threading.Event()

        def work(job: Job) -> None:
            tell = events_of(job, loop)
            for i in range(3):
                tell({"i": i})
            told.set()
            while True:
                tell({"i": 99})
                time.sleep(0.01)

        job = board.submit("k", "a", work, listener=lambda event: seen.append(event["i"]))
        await asyncio.to_thread(told.wait, 10)
        board.cancel(job)
        with pytest.raises(JobCancelled):
            await board.result(job)
        assert seen[:3] == [0, 1, 2]
        await board.stop(0)

    run(main)


def test_stopping() -> None:
    async def main() -> None:
        board, go = board_of(), threading.Event()
        running, waiting = (board.submit("k", "a", until(go)) for _ in range(2))
        stopping = asyncio.ensure_future(board.stop(0.3))
        await asyncio.sleep(0.1)
        with pytest.raises(Stopping):
            board.submit("k", "a", until(go))
        assert waiting.state == "cancelled"
        assert running.state == "running"
        await stopping
        assert running.state == "cancelled"

    run(main)


def test_what_ended_is_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        board = board_of(slots=2, queue=10)
        for _ in range(3):
            for job in [board.submit("k", "a", lambda _: None) for _ in range(5)]:
                await board.result(job)
        assert len(board._finished) == 4
        assert all(job.future is not None for job in board._finished.values())
        await board.stop(0)

    assert KEPT >= 100
    monkeypatch.setattr("dbrag.interfaces.http.jobs.KEPT", 4)
    run(main)


def test_when_to_come_again() -> None:
    lane = Lane("a", 2, 1)
    assert lane.retry_s == 1
    for _ in range(50):
        lane.took(30.0)
    assert lane.retry_s == 15
    for _ in range(100):
        lane.took(1000.0)
    assert lane.retry_s == 60
    lane.pool.shutdown()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_nothing_in_a_thread_ends_the_server(error: BaseException) -> None:
    async def main() -> None:
        def fails(_: Job) -> None:
            raise error

        board = board_of()
        with pytest.raises(RuntimeError, match=type(error).__name__):
            await board.result(board.submit("k", "a", fails))
        assert await board.result(board.submit("k", "a", lambda _: 1)) == 1
        await board.stop(0)

    run(main)
