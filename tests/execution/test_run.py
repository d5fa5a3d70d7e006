# ruff: noqa: E501 - statements and rows are easier to compare on one line
"""Running: exact values, and limits that are errors instead of cuts."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from dbrag.arrow import arrow_type
from dbrag.errors import ExecutionError, LimitReached
from dbrag.execution.limits import within
from dbrag.execution.run import _collect, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.sources import Source
    from dbrag.types import Execution, Table

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"
NUMBERS = (
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {}) SELECT {} FROM c"
)


def go(
    source: Source, sql: str, *, timeout_s: float = 20, max_rows: int = 1000, max_mb: int = 64
) -> Execution:
    return run(source, sql, timeout_s=timeout_s, max_rows=max_rows, max_mb=max_mb)


def test_values_are_exact_and_duplicate_names_kept(band: Source) -> None:
    result = go(
        band,
        "SELECT 1 AS n, 2 AS n, 9223372036854775807 AS big, 0.1 AS f, 'x' AS t, x'00ff' AS b, NULL AS z",
    )
    assert [(c.name, c.type) for c in result.columns] == [
        ("n", "int64"),
        ("n", "int64"),
        ("big", "int64"),
        ("f", "double"),
        ("t", "string"),
        ("b", "binary"),
        ("z", "null"),
    ]
    assert result.rows == ((1, 2, 2**63 - 1, 0.1, "x", b"\x00\xff", None),)
    assert result.seconds > 0
    assert result.table.column_names == ["n", "n", "big", "f", "t", "b", "z"]
    assert result.table.column(2).to_pylist() == [2**63 - 1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], "null"),
        ([None], "null"),
        ([1, None], "int64"),
        ([1.5, None], "double"),
        ([1, 1.5], "double"),
        ([2**53, 1.5], "double"),
        ([2**53 + 1, 1.5], "mixed"),
        ([2**60, 1.5], "double"),
        (["a", None], "string"),
        ([b"a"], "binary"),
        (["a", 1], "mixed"),
        (["a", b"a"], "mixed"),
        ([True, False], "bool"),
        ([True, 1], "mixed"),
    ],
)
def test_arrow_types(values: list[object], expected: str) -> None:
    assert arrow_type(values) == expected


def test_a_column_of_several_types_keeps_its_values(band: Source) -> None:
    result = go(band, "VALUES (1, 9007199254740993), ('a', 0.5), (x'41', 1)")
    assert [c.type for c in result.columns] == ["mixed", "mixed"]
    assert result.rows[0] == (1, 9007199254740993)
    assert result.table.num_rows == 3


def test_whole_and_floating_numbers_keep_their_python_values(band: Source) -> None:
    result = go(band, "VALUES (1), (2.5)")
    assert result.columns[0].type == "double"
    assert [type(v) for (v,) in result.rows] == [int, float]
    assert result.table.column(0).to_pylist() == [1.0, 2.5]


def test_no_rows_still_have_columns(band: Source) -> None:
    result = go(band, "SELECT name, age FROM singer WHERE 0")
    assert [(c.name, c.type) for c in result.columns] == [("Name", "null"), ("age", "null")]
    assert result.rows == ()
    assert result.table.num_rows == 0


def test_a_statement_over_its_time_is_stopped(band: Source) -> None:
    started = time.monotonic()
    with pytest.raises(LimitReached, match=r"0\.3 s, the time limit") as limit:
        go(band, ENDLESS, timeout_s=0.3)
    assert time.monotonic() - started < 5
    assert "timeout_s" in limit.value.hint
    # The connection goes on being useful.
    assert go(band, "SELECT 1").rows == ((1,),)


def test_time_counts_while_fetching_too(band: Source) -> None:
    endless_rows = ENDLESS.replace("max(n)", "n")
    with pytest.raises(LimitReached, match="time limit"):
        run(band, endless_rows, timeout_s=0.3, max_rows=10**9, max_mb=10**6)


def test_as_many_rows_as_allowed(band: Source) -> None:
    assert len(go(band, NUMBERS.format(2500, "n"), max_rows=2500).rows) == 2500


def test_one_row_too_many_is_an_error_not_a_cut(band: Source) -> None:
    with pytest.raises(LimitReached, match="more than 2,500 rows") as limit:
        go(band, NUMBERS.format(2501, "n"), max_rows=2500)
    assert "max_result_rows" in limit.value.hint
    assert limit.value.exit_code == 6


def test_a_limit_on_rows_is_not_one_on_what_is_computed(band: Source) -> None:
    assert go(band, NUMBERS.format(100_000, "count(*)"), max_rows=1).rows == ((100_000,),)


def test_too_much_memory(band: Source) -> None:
    with pytest.raises(LimitReached, match="more than 1 MB") as limit:
        go(band, NUMBERS.format(100, "hex(zeroblob(50000))"), max_mb=1)
    assert "max_result_mb" in limit.value.hint


def test_one_huge_value(band: Source) -> None:
    with pytest.raises(LimitReached):
        go(band, "SELECT hex(zeroblob(200000000))")


def test_a_cell_of_ten_megabytes(band: Source) -> None:
    assert len(go(band, "SELECT hex(zeroblob(5000000))").rows[0][0]) == 10_000_000


def test_engine_errors(band: Source) -> None:
    with pytest.raises(ExecutionError, match="integer overflow"):
        go(band, "SELECT abs(-9223372036854775807 - 1)")
    with pytest.raises(ExecutionError) as error:
        go(band, "SELECT json_extract('{', '$')")
    assert "\n" not in error.value.message


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_stops_the_statement(band: Source) -> None:
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        go(band, ENDLESS, timeout_s=60)
    assert time.monotonic() - started < 10
    timer.join()
    assert not [t for t in threading.enumerate() if t.name == "dbrag-statement"]
    assert go(band, "SELECT 1").rows == ((1,),)


class Sleeper:
    """A session whose statement runs until it is cancelled for the third time."""

    def __init__(self) -> None:
        self.cancelled = 0
        self.stopped = threading.Event()

    def cancel(self) -> None:
        self.cancelled += 1
        if self.cancelled == 3:
            self.stopped.set()

    def work(self) -> None:
        self.stopped.wait(20)
        raise ExecutionError("interrupted")


def test_a_cancel_that_comes_to_nothing_is_repeated() -> None:
    sleeper = Sleeper()
    with pytest.raises(LimitReached) as limit:
        within(sleeper, sleeper.work, 0.05)  # type: ignore[arg-type]
    assert sleeper.cancelled == 3
    assert isinstance(limit.value.__cause__, ExecutionError)


def test_work_in_time_gives_its_result_or_error() -> None:
    sleeper = Sleeper()
    assert within(sleeper, lambda: 7, 5) == 7  # type: ignore[arg-type, return-value]
    with pytest.raises(ZeroDivisionError):
        within(sleeper, lambda: 1 // 0, 5)  # type: ignore[arg-type]
    assert sleeper.cancelled == 0


class _Nested:
    """A session whose one column holds lists of long texts."""

    def execute(self, sql: str) -> Sequence[str]:
        return ["a"]

    def fetch(self, n: int) -> list[tuple[object, ...]]:
        return [([{"k": ["x" * 1000 + str(i)]} for i in range(1000)],)]

    def cancel(self) -> None:
        """Nothing runs."""


def test_the_memory_of_nested_values_counts() -> None:
    with pytest.raises(LimitReached, match="more than 8 MB"):
        _collect(_Nested(), "SELECT a", 10**6, 8)


def test_a_timeout_names_the_tables(band: Source, tables: Sequence[Table]) -> None:
    slow = ENDLESS.replace("max(n)", "max(n), (SELECT count(*) FROM singer)")
    with pytest.raises(LimitReached, match=r"^reading .*singer was stopped after 0\.2 s"):
        run(
            band,
            slow,
            timeout_s=0.2,
            max_rows=1,
            max_mb=8,
            tables=[t.ref for t in tables if t.ref.name == "singer"],
        )
    with pytest.raises(LimitReached, match=r"^reading .* was stopped after 0\.2 s"):
        go(band, ENDLESS, timeout_s=0.2)


def test_a_second_interrupt_does_not_keep_the_statement_from_being_stopped() -> None:
    ended = threading.Event()
    cancels = []

    class Session:
        def cancel(self) -> None:
            cancels.append(1)
            if len(cancels) == 1:
                raise KeyboardInterrupt  # while the order is on its way
            ended.set()

    within(Session(), lambda: ended.wait(20), 0.05)  # type: ignore[arg-type]
    assert (ended.is_set(), len(cancels)) == (True, 2)
