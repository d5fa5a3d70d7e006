from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbrag.errors import UsageError
from dbrag.evaluation.records import (
    RECORDS,
    RunFolder,
    read_records,
    read_summary,
    slim,
    write_slim,
)

CONFIG = {"task": "retrieval", "k": 50, "tuple": (1, 2)}


def rec(i: int, **more: Any) -> dict[str, Any]:
    return {"id": f"q-{i}", "db_id": "shop", "scores": {"EX": 1.0}, **more}


def test_records_are_on_disk_at_once(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", CONFIG) as folder:
        folder.append(rec(0, note="é", sql="\udc80\n"))
        assert read_records(tmp_path / "run") == [rec(0, note="é", sql="\udc80\n")]


def test_a_second_run_needs_resume(tmp_path: Path) -> None:
    with RunFolder(tmp_path, CONFIG) as folder:
        folder.append(rec(0))
    with pytest.raises(UsageError, match="already holds a run") as caught:
        RunFolder(tmp_path, CONFIG)
    assert "--resume" in caught.value.hint
    with RunFolder(tmp_path, CONFIG, resume=True) as folder:
        assert folder.done == {"q-0": rec(0)}
        folder.append(rec(1))
    assert [r["id"] for r in read_records(tmp_path)] == ["q-0", "q-1"]


def test_two_processes_never_write_one_run(tmp_path: Path) -> None:
    with RunFolder(tmp_path, CONFIG) as folder:
        folder.append(rec(0))
        with pytest.raises(UsageError, match=f"process {os.getpid()} is writing the run") as caught:
            RunFolder(tmp_path, CONFIG, resume=True)
        assert "--out" in caught.value.hint
    RunFolder(tmp_path, CONFIG, resume=True).close()
    with pytest.raises(UsageError, match="another configuration"):
        RunFolder(tmp_path, {**CONFIG, "k": 5}, resume=True)
    RunFolder(tmp_path, CONFIG, resume=True).close()  # a refusal keeps no lock


def test_another_configuration_is_refused_by_name(tmp_path: Path) -> None:
    RunFolder(tmp_path, CONFIG).close()
    with pytest.raises(UsageError, match="k was 50, is 5") as caught:
        RunFolder(tmp_path, {**CONFIG, "k": 5}, resume=True)
    assert "task" not in caught.value.message


def test_resume_of_nothing_starts(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "new", CONFIG, resume=True) as folder:
        assert folder.done == {}


@settings(deadline=None)
@given(cut=st.integers(0, 200))
def test_a_run_killed_at_any_byte_can_go_on(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("run")
    with RunFolder(path, CONFIG) as folder:
        for i in range(3):
            folder.append(rec(i, note="üü"))
    data = (path / RECORDS).read_bytes()
    torn = data[: min(cut, len(data))]
    (path / RECORDS).write_bytes(torn)
    with RunFolder(path, CONFIG, resume=True) as folder:
        assert list(folder.done) == [f"q-{i}" for i in range(torn.count(b"\n"))]
        folder.append(rec(9))
    assert [r["id"] for r in read_records(path)] == [*folder.done]


def test_a_last_line_of_garbage_is_dropped_but_one_before_is_told(tmp_path: Path) -> None:
    with RunFolder(tmp_path, CONFIG) as folder:
        folder.append(rec(0))
    good = (tmp_path / RECORDS).read_bytes()
    (tmp_path / RECORDS).write_bytes(good + b"\0\0\0\n")
    assert len(read_records(tmp_path)) == 1
    (tmp_path / RECORDS).write_bytes(b"{}\n" + good)
    with pytest.raises(UsageError, match=r"line 1 .* is no record"):
        read_records(tmp_path)
    (tmp_path / RECORDS).write_bytes(b"{\n" + good)
    with pytest.raises(UsageError, match=r"line 1 .* is damaged"):
        read_records(tmp_path)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"scores": {"EX": "x"}}, "'EX' is 'x', not a number from 0 to 1"),
        ({"scores": {"EX": float("nan")}}, "'EX' is nan, not a number from 0 to 1"),
        ({"scores": {"EX": 7}}, "'EX' is 7, not"),
        ({"scores": {"EX": None}}, "'EX' is None, not"),
        ({"scores": [1]}, "'scores' is [1], not an object"),
        ({"id": 3}, "'id' is 3, not a text"),
        ({"db_id": ""}, "'db_id' is '', not a text"),
        ({"n_tables": "x"}, "'n_tables' is 'x', not a whole number from 0 up"),
        ({"n_tables": True}, "'n_tables' is True, not"),
        ({"orders": {"prior": {"R@5": 2}}}, "'R@5' is 2, not a number from 0 to 1"),
        ({"seconds": -5}, "'seconds' is -5, not a number from 0 up"),
        ({"stages": {"total": "long"}}, "'total' is 'long', not"),
        ({"tokens": {"prompt": 1.5}}, "'prompt' is 1.5, not a whole number from 0 up"),
        ({"told": {"confidence": 3}}, "'confidence' is 3, not a number from 0 to 1"),
        ({"prediction": {"agreement": "all"}}, "'agreement' is 'all', not"),
        ({"rerank": {"k": "all"}}, "'k' is 'all', not"),
        ({"gold": {"tables": "t"}}, "'tables' is 't', not a list"),
        ({"error": {}}, "'error' is {}, not an error with its code"),
    ],
)
def test_a_record_that_none_can_be_is_told_by_its_line(
    tmp_path: Path, more: dict[str, Any], told: str
) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in (rec(0), {**rec(1), **more})))
    with pytest.raises(UsageError) as caught:
        read_records(file)
    assert f"line 2 of {str(file)!r} is no record: " in caught.value.message
    assert told in caught.value.message
    assert caught.value.hint


def test_a_question_that_stands_there_twice(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text("".join(json.dumps(rec(i)) + "\n" for i in (0, 1, 0)))
    with pytest.raises(UsageError, match=r"line 3 .* holds the question 'q-0' again"):
        read_records(file)


def test_a_line_that_is_no_object(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    for line, told in (("[]", r"\[\] is not an object"), ("{}", "'id' is missing")):
        file.write_text(f"{line}\n")
        with pytest.raises(UsageError, match=rf"line 1 .* is no record: {told}"):
            read_records(file)


def test_published_records_are_records() -> None:
    results = Path(__file__).parents[2] / "experiments" / "results"
    files = sorted(results.glob("*.jsonl"))
    assert files
    assert all(read_records(file) for file in files)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the run"):
        RunFolder(tmp_path / "file" / "run", CONFIG)
    with pytest.raises(UsageError, match="cannot read the run"):
        read_records(tmp_path / "none")


def test_slim_keeps_ids_and_scores_only(tmp_path: Path) -> None:
    full = rec(
        10,
        n_tables=1,
        seconds=0.1,
        tokens={"prompt": 3},
        gold={"tables": ["shop.customer"]},
        prediction={"sql": "SELECT 'secret'"},
        error={"code": "execution", "message": "secret"},
    )
    assert "secret" not in json.dumps(slim(full))
    assert slim(full)["error"] == "execution"
    with RunFolder(tmp_path / "run", CONFIG) as folder:
        folder.append(full)
        folder.append(rec(9))
        with pytest.raises(UsageError, match="cannot read"):
            write_slim(tmp_path / "run", tmp_path / "x.jsonl")
        folder.finish({"n": 2})
    target = tmp_path / "results" / "run.jsonl"
    write_slim(tmp_path / "run", target)
    text = target.read_text(encoding="utf-8")
    assert "secret" not in text
    assert "customer" not in text
    assert [r["id"] for r in read_records(target)] == ["q-9", "q-10"]
    assert read_summary(target) == read_summary(tmp_path / "run") == {"n": 2}
