"""Work that nobody wants any more ends soon, wherever it waits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dbrag.cancel import Cancellation, Cancelled, cancellable, check
from dbrag.execution.run import run
from dbrag.models import remote
from dbrag.models.local import LlamaModel
from dbrag.sources import open_sources

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"


@contextmanager
def cancelled_after(seconds: float) -> Iterator[Cancellation]:
    cancellation = Cancellation()
    timer = threading.Timer(seconds, cancellation.cancel)
    timer.start()
    with cancellable(cancellation):
        yield cancellation
    timer.join()


def test_check_looks_at_the_cancellation_of_this_thread_only() -> None:
    cancellation = Cancellation()
    check()
    with cancellable(cancellation):
        check()
        cancellation.cancel()
        cancellation.cancel()
        assert cancellation.cancelled
        with pytest.raises(Cancelled):
            check()
        with cancellable(None):
            check()
        seen: list[str] = []
        thread = threading.Thread(target=lambda: (check(), seen.append("went on")))
        thread.start()
        thread.join()
        assert seen == ["went on"]
    check()


def test_no_handler_of_ordinary_errors_stops_it() -> None:
    assert not issubclass(Cancelled, Exception)


def test_a_statement_is_stopped_in_the_engine(small_shop: Path) -> None:
    (source,), _ = open_sources((str(small_shop),))
    started = time.monotonic()
    with cancelled_after(0.1), pytest.raises(Cancelled):
        run(source, ENDLESS, timeout_s=60, max_rows=10, max_mb=10)
    assert time.monotonic() - started < 5
    assert not [t for t in threading.enumerate() if t.name == "dbrag-statement"]
    assert run(source, "SELECT 1", timeout_s=5, max_rows=10, max_mb=10).rows == ((1,),)
    source.close()


def test_a_local_model_is_stopped() -> None:
    class Engine:
        stopped = False

        def handle_chat_completions(self, _: Any, callback: Callable[[Any], bool]) -> None:
            while not callback({"choices": []}):
                time.sleep(0.01)
            Engine.stopped = True

    model = LlamaModel(Path("none.gguf"), name="local:none", threads=1)
    model._server = Engine()
    started = time.monotonic()
    with cancelled_after(0.1), pytest.raises(Cancelled):
        model._run({}, 1)
    assert Engine.stopped
    assert time.monotonic() - started < 5


def test_a_remote_request_is_stopped() -> None:
    ended = threading.Event()

    async def request() -> list[Any]:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return []

    with cancelled_after(0.1), pytest.raises(Cancelled):
        remote._run(request())
    assert ended.wait(5)
