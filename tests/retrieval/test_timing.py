from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dbrag.retrieval.timing import StageTimer


def test_seconds_add_up_by_stage_in_the_order_of_ending() -> None:
    timer = StageTimer()
    with timer.stage("outer"):
        for _ in range(2):
            with timer.stage("inner"):
                time.sleep(0.01)
    assert [*timer.seconds] == ["inner", "outer"]
    assert timer.seconds["outer"] >= timer.seconds["inner"] >= 0.02


def test_a_stage_that_fails_counts() -> None:
    timer = StageTimer()
    with pytest.raises(ValueError, match="no"), timer.stage("rows"):
        raise ValueError("no")
    assert timer.seconds["rows"] >= 0


def test_threads_lose_nothing() -> None:
    timer = StageTimer()

    def work(_: int) -> None:
        with timer.stage("rows"):
            time.sleep(0.001)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(100)))
    assert timer.seconds["rows"] >= 0.1
