"""Results, history and log by themselves."""

from __future__ import annotations

import io
import json
import logging
import stat
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.errors import UsageError
from dbrag.interfaces.http import logs, results
from dbrag.interfaces.http.history import EntryNotFound, History
from dbrag.interfaces.http.results import ResultGone, Results
from dbrag.types import Execution, ResultColumn
from tests.interfaces.conftest import an_answer


def an_execution(*rows: tuple[Any, ...]) -> Execution:
    columns = tuple(ResultColumn("a", "string") for _ in rows[0])
    return Execution(columns, rows, 0.0)


# ---- results --------------------------------------------------------------------------------


def test_the_latest_results_are_kept() -> None:
    kept = Results(2, 100)
    for i in range(3):
        kept.keep(f"r{i}", an_answer(rows=i + 1))
    with pytest.raises(ResultGone, match="'r0'"):
        kept.get("r0")
    assert len(kept.get("r2").execution.rows) == 3  # type: ignore[union-attr]
    assert kept.get("r2").trace == ()
    assert kept.size()[0] == 2
    kept.drop("r2")
    kept.drop("r2")
    kept.clear()
    assert kept.size() == (0, 0)


def test_results_without_rows_are_not_kept() -> None:
    kept = Results(2, 100)
    kept.keep("r", an_answer(execution=None))
    assert kept.size()[0] == 0


def test_big_results_make_place_but_the_latest_stays() -> None:
    kept = Results(50, 1)
    big = an_execution(*((("x" * 10_000) + str(i),) for i in range(200)))
    kept.keep("small", an_answer())
    kept.keep("big", an_answer(execution=big))
    assert kept.size()[0] == 1
    assert kept.get("big").execution is big
    assert kept.size()[1] > 2**20


@pytest.mark.parametrize("n", [1, 10, 999, 1000, 1001, 5000])
def test_the_estimate_is_near(n: int) -> None:
    execution = an_execution(*((i, "y" * (i % 50)) for i in range(n)))
    exact = sum(sys.getsizeof(row) + sum(map(sys.getsizeof, row)) for row in execution.rows)
    estimated = results.estimated_bytes(an_answer(execution=execution))
    assert estimated == pytest.approx(exact, rel=0.1)


cells = st.one_of(st.none(), st.text(), st.integers(), st.booleans(), st.binary())


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=20))
def test_json_files_are_json_whatever_the_cells(rows: list[tuple[Any, ...]]) -> None:
    execution = an_execution(*rows)
    value = json.loads(b"".join(results.json_chunks(execution)))
    assert value["row_count"] == len(value["rows"]) == len(rows)
    assert value["rows"] == results.page(execution, 0, 100)["rows"]


def test_long_files_come_in_pieces() -> None:
    execution = an_execution(*((f"row {i}", "x" * 100) for i in range(5000)))
    for chunks in (results.csv_chunks, results.json_chunks):
        pieces = list(chunks(execution))
        assert len(pieces) > 5
        assert max(map(len, pieces)) < 200_000
    with results.parquet_file(execution) as file:
        assert pq.read_table(io.BytesIO(file.read())).num_rows == 5000
    assert sum(map(len, results.file_chunks(results.parquet_file(execution)))) > 1000


# ---- history --------------------------------------------------------------------------------


def entry(i: int, **more: Any) -> dict[str, Any]:
    return {"id": f"entry-{i}", "question": f"question {i}", **more}


def test_history_is_bounded_and_searched() -> None:
    history = History(3)
    for i in range(5):
        history.add(entry(i))
    found, total = history.latest(2)
    assert [one["id"] for one in found] == ["entry-4", "entry-3"]
    assert total == 3
    assert history.latest(10, text="QUESTION 3")[1] == 1
    assert history.latest(10, offset=2)[0][0]["id"] == "entry-2"
    history.judge("entry-3", "wrong")
    assert history.get("entry-3")["verdict"] == "wrong"
    history.forget("entry-3")
    for call in (history.get, history.forget):
        with pytest.raises(EntryNotFound):
            call("entry-3")
    history.clear()
    assert history.latest(10) == ([], 0)


def test_a_history_that_is_off() -> None:
    history = History(0, "/nowhere/at/all")
    history.add(entry(1))
    assert history.latest(10) == ([], 0)
    assert not history.on


def test_the_file_outlives_the_server(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "history.jsonl"
    history = History(3, path)
    for i in range(3):
        history.add(entry(i))
    history.judge("entry-1", "right")
    again = History(3, path)
    assert [one["id"] for one in again.latest(10)[0]] == ["entry-2", "entry-1", "entry-0"]
    assert again.get("entry-1")["verdict"] == "right"
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again.forget("entry-2")
    assert "question 2" not in path.read_text()
    assert [one["id"] for one in History(3, path).latest(10)[0]] == ["entry-1", "entry-0"]
    again.clear()
    assert path.read_text() == ""


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = History(5, path)
    for i in range(200):
        history.add(entry(i))
        history.judge(f"entry-{i}", "right")
        assert len(path.read_text().splitlines()) <= 11
    assert [one["verdict"] for one in History(5, path).latest(10)[0]] == ["right"] * 5
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_line_that_was_cut_costs_that_line(tmp_path: Path, caplog: Any) -> None:
    path = tmp_path / "history.jsonl"
    history = History(5, path)
    history.add(entry(1))
    with path.open("a") as file:
        file.write('{"entry": {"id": "cut')
    with caplog.at_level(logging.WARNING):
        again = History(5, path)
    assert again.latest(10)[1] == 1
    assert "1 lines" in caplog.text
    again.add(entry(2))
    assert History(5, path).latest(10)[1] == 2


@pytest.mark.parametrize("content", ["hello", "[1]\n[2]", '{"a": 1}', "\x00\xff"])
def test_a_file_of_something_else_is_not_touched(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(content)
    with pytest.raises(UsageError, match="no history"):
        History(5, path)
    assert path.read_text() == content


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot use"):
        History(5, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot use"):
        History(5, tmp_path / "file" / "below")


def test_a_full_disk_costs_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    history = History(5, tmp_path / "history.jsonl")

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dbrag.interfaces.http.history.os.open", full)
    history.add(entry(1))
    assert history.latest(10)[1] == 1
    assert "No space left" in caplog.text


# ---- log ------------------------------------------------------------------------------------


def test_each_record_is_one_line_of_json(log: io.StringIO) -> None:
    logs.event("a\nb", status=200, nothing=None, path=Path("/x"))
    logging.getLogger("uvicorn.error").error("bad\r\n%s", "request")
    logging.getLogger("dbrag.sources").warning("postgresql://me:hunter2@host/db failed")
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        logging.getLogger("dbrag.http").exception("failed")
    lines = log.getvalue().splitlines()
    assert len(lines) == 4
    first, second, third, fourth = map(json.loads, lines)
    assert (first["event"], first["status"], first["path"]) == ("a\nb", 200, "/x")
    assert "nothing" not in first
    assert second["logger"] == "uvicorn.error"
    assert "hunter2" not in log.getvalue()
    assert "***" in third["event"]
    assert "ValueError" in fourth["traceback"]
