from __future__ import annotations

import json
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
    with pytest.raises(UsageError, match=r"line 1 .* is damaged"):
        read_records(tmp_path)


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
