from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbrag.errors import UsageError
from dbrag.evaluation.reports.runs import (
    in_common,
    mean,
    mean_of_groups,
    question_sets,
    read_runs,
    related,
)

from .made import not_run, recall, record, write_run

FOUR = [recall("q-0", "a", 1, 1.0), recall("q-1", "a", 1, 0.0), recall("q-2", "b", 2, 0.5)]


def test_folders_files_and_names(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", FOUR, "retrieval", "bm25")
    (tmp_path / "pub.jsonl").write_bytes((tmp_path / "one" / "records.jsonl").read_bytes())
    (tmp_path / "pub.json").write_bytes((tmp_path / "one" / "summary.json").read_bytes())
    published = str(tmp_path / "pub.jsonl")
    first, second, third = read_runs([folder, f"mine={published}", str(tmp_path / "pub.json")])
    assert [run.name for run in (first, second, third)] == ["one", "mine", "pub"]
    assert first.records == second.records == third.records
    assert (first.task, first.method, first.data, first.finished) == (
        "retrieval",
        "bm25",
        "pack",
        True,
    )
    assert mean(first.records, "R@5") == 0.5
    assert mean_of_groups(first, "R@5") == (0.5 + 0.5) / 2
    assert related(first, second)
    (one,) = question_sets([first, second, third], "retrieval")
    assert one.title == "pack, dev.json, 3 of 4 questions"
    assert len(one.runs) == 3


def test_records_without_a_summary_can_be_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "cut", FOUR, "retrieval", finished=False, model="local:x")
    (bare := tmp_path / "bare.jsonl").write_bytes((tmp_path / "cut" / "records.jsonl").read_bytes())
    cut, alone = read_runs([folder, str(bare)])
    assert (cut.finished, cut.method, cut.model) == (False, "dbrag", None)
    assert (alone.task, alone.method, alone.data) == ("retrieval", "", "unknown data")
    answers = [record("q-0", "only", 1, {"EX": 1.0})]
    (tmp_path / "ex.jsonl").write_text(json.dumps(answers[0]) + "\n")
    (run,) = read_runs([str(tmp_path / "ex.jsonl")])
    assert (run.task, run.data) == ("answers", "only")


def test_what_was_not_run_has_a_reason_and_no_records(tmp_path: Path) -> None:
    path = not_run(tmp_path / "dtr", "retrieval", "dtr", "no weights", "hf download x/y")
    (run,) = read_runs([path])
    assert run.not_run == {"reason": "no weights", "command": "hf download x/y"}
    assert run.records == ()
    assert question_sets([run], "retrieval") == []


def test_the_same_name_twice(tmp_path: Path) -> None:
    a, b = (write_run(tmp_path / part / "run", FOUR) for part in ("a", "b"))
    assert [run.name for run in read_runs([a, b])] == ["a/run", "b/run"]
    with pytest.raises(UsageError, match="two runs are named 'x'"):
        read_runs([f"x={a}", f"x={b}"])
    with pytest.raises(UsageError, match="two runs are named"):
        read_runs([a, a])


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the run"):
        read_runs([str(tmp_path / "none")])
    with pytest.raises(UsageError, match="no run is given"):
        read_runs([])
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(UsageError, match="holds no record"):
        read_runs([str(tmp_path / "empty.jsonl")])
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(UsageError, match="is not a JSON object"):
        read_runs([str(tmp_path / "list.json")])
    (tmp_path / "torn.json").write_text("{")
    with pytest.raises(UsageError, match=r"cannot read .*torn\.json"):
        read_runs([str(tmp_path / "torn.json")])


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ({"config": {"task": "wrong database"}}, "'task' is 'wrong database', not 'retrieval' or"),
        ({"config": []}, "'config' is [], not an object"),
        ({"config": {"data": {"tables": "many"}}}, "'tables' is 'many', not a whole number"),
        ({"config": {"questions": {"n": -1}}}, "'n' is -1, not a whole number"),
        ({"config": {"settings": {"rerank_k": "x"}}}, "'rerank_k' is 'x', not a whole number"),
        ({"versions": "new"}, "'versions' is 'new', not an object"),
        ({"not_run": None}, "'not_run' is None, not an object"),
    ],
)
def test_a_summary_that_none_can_be(tmp_path: Path, told: object, wrong: str) -> None:
    run = Path(write_run(tmp_path / "a", FOUR, "retrieval"))
    (run / "summary.json").write_text(json.dumps(told))
    with pytest.raises(UsageError) as caught:
        read_runs([str(run)])
    assert wrong in caught.value.message
    assert "summary.json" in caught.value.message


def test_a_configuration_that_none_can_be(tmp_path: Path) -> None:
    run = Path(write_run(tmp_path / "a", FOUR, "retrieval", finished=False))
    (run / "config.json").write_text(json.dumps({"settings": "none"}))
    with pytest.raises(UsageError, match=r"config\.json.*'settings' is 'none', not an object"):
        read_runs([str(run)])


def test_records_of_something_else(tmp_path: Path) -> None:
    file = tmp_path / "wrong.jsonl"
    file.write_text(json.dumps({"id": "q-0", "db_id": "a", "scores": {}}) + "\n")
    with pytest.raises(UsageError, match="'q-0' lacks 'n_tables'"):
        read_runs([str(file)])


def test_runs_of_other_questions_stand_apart(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", FOUR, "retrieval")
    b = write_run(tmp_path / "b", FOUR[:2], "retrieval")
    c = write_run(tmp_path / "c", FOUR, "retrieval", data=("other", 2, 9))
    runs = read_runs([a, b, c])
    assert [len(one.runs) for one in question_sets(runs, "retrieval")] == [1, 1, 1]
    assert related(runs[0], runs[1])
    assert not related(runs[0], runs[2])


def test_a_sample_beside_a_run_of_all_questions(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "whole", FOUR, "retrieval")
    sample = write_run(tmp_path / "sample", FOUR[1:3], "retrieval")
    other = write_run(tmp_path / "other", FOUR, "retrieval", data=("other", 2, 9))
    missing = not_run(tmp_path / "missing", "retrieval", "dtr", "no weights", "get them")
    runs = in_common(read_runs([whole, sample, other, missing]))
    assert [len(run.records) for run in runs] == [2, 2, len(FOUR), 0]
    assert [one["id"] for one in runs[0].records] == [one["id"] for one in FOUR[1:3]]
    sets = question_sets(runs, "retrieval")
    assert [[run.name for run in one.runs] for one in sets] == [["whole", "sample"], ["other"]]
    assert sets[0].title.endswith("2 of 4 questions")


def test_runs_without_a_common_question(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", FOUR[:2], "retrieval")
    last = write_run(tmp_path / "last", FOUR[2:], "retrieval")
    with pytest.raises(UsageError, match=r"no question of 'pack' is in all .*: first, last"):
        in_common(read_runs([first, last]))
