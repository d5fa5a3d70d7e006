from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import UsageError
from dbrag.evaluation.compare import compare, compare_records
from dbrag.evaluation.metrics import OVERLAPS, overlap_key
from dbrag.evaluation.report import comparison_table, metric_keys, paper_table, summary_table
from dbrag.evaluation.summary import quantile, summarise


def run(scores: dict[str, float], db: str = "", failed: tuple[str, ...] = ()) -> dict[str, Any]:
    records = {
        id_: {
            "id": id_,
            "db_id": db or f"db{i % 4}",
            "n_tables": 1 + i % 2,
            "scores": {"EX": score, "RowF1": score / 2},
            "seconds": 1.0 + i,
            "tokens": {"prompt": 10, "completion": i},
            "error": None,
        }
        for i, (id_, score) in enumerate(scores.items())
    }
    for id_ in failed:
        records[id_] |= {"scores": {}, "error": {"code": "limit", "message": ""}}
    return records


A = run({f"q-{i}": float(i < 4) for i in range(8)})
B = run({f"q-{i}": float(i in (1, 2, 3, 4, 5, 6)) for i in range(8)}, failed=("q-7",))


def test_pairs_by_question() -> None:
    ex, f1 = compare_records(A, {**B, "q-99": B["q-0"]})
    assert (ex.metric, ex.n, ex.left_out) == ("EX", 8, 1)
    assert (ex.a, ex.b) == (0.5, 0.75)
    assert ex.questions.mean == ex.databases.mean == 0.25
    assert ex.wins == ("q-4", "q-5", "q-6")
    assert ex.losses == ("q-0",)
    assert ex.p == pytest.approx(2 * 5 / 16)
    assert ex.questions.low is not None
    assert ex.questions.low <= 0.25
    assert f1.metric == "RowF1"
    assert f1.p is None
    assert json.loads(json.dumps(ex.to_dict()))["losses"] == ["q-0"]


def test_the_other_way_round_is_the_mirror() -> None:
    (there,), (back,) = compare_records(A, B, ["EX"]), compare_records(B, A, ["EX"])
    assert (there.wins, there.losses) == (back.losses, back.wins)
    assert there.questions.mean == -back.questions.mean
    assert there.p == back.p


def test_files_and_folders(tmp_path: Path) -> None:
    for name, records in (("a", A), ("b", B)):
        (tmp_path / name).mkdir()
        lines = [json.dumps(record) + "\n" for record in records.values()]
        (tmp_path / name / "records.jsonl").write_text("".join(lines))
    (ex,) = compare(tmp_path / "a", tmp_path / "b" / "records.jsonl", ["EX"])
    assert ex.b == 0.75


def test_runs_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="share no question"):
        compare_records(A, {"x-0": A["q-0"]})
    with pytest.raises(UsageError, match="no metric 'R@5'"):
        compare_records(A, B, ["R@5"])
    with pytest.raises(UsageError, match="'q-0' is about another database"):
        compare_records(A, run({"q-0": 1.0}, db="other"))


def test_comparison_table() -> None:
    table = comparison_table(compare_records(A, B, ["EX"]), "naive", "dbrag")
    header, _, row = table.strip().split("\n")
    assert header.startswith("| metric | n | naive | dbrag | dbrag − naive |")
    assert row.startswith("| EX | 8 | 50.0 | 75.0 | +25.0 |")
    assert row.endswith("| 3 | 1 | 0.625 |")
    one = comparison_table(compare_records(run({"q": 1.0}), run({"q": 1.0}), ["EX"]))
    assert "| – | – |" in one


def test_summary_and_its_table() -> None:
    config = {"task": "answers", "method": "dbrag"}
    summary = summarise(list(B.values()), ["EX", "RowF1"], config, {"model": "test:parrot"})
    assert metric_keys(summary) == ["EX", "RowF1"]
    assert (summary["n"], summary["failed"], summary["errors"]) == (8, 1, {"limit": 1})
    assert (summary["EX"], summary["RowF1"]) == (0.75, 0.375)
    assert summary["by_tables"]["1"] == {"n": 4, "EX": 0.75, "RowF1": 0.375}
    assert summary["seconds"] == {"median": 4.5, "p95": 8.0, "total": 36.0}
    assert summary["tokens"] == {"median": 13.5, "prompt": 10, "cached": 0, "completion": 3.5} | {
        "cache_hits": 0
    }
    assert summary["versions"]["model"] == "test:parrot"
    low, high = summary["interval"]["EX"]["questions"]
    assert low < 0.75 < high
    table = summary_table({"a|b": summary})
    assert table.split("\n")[0] == (
        "| run | n | failed | EX | RowF1 | EX, 1 table | EX, 2 tables | s median | s p95 | tokens |"
    )
    assert table.split("\n")[2] == "| a\\|b | 8 | 1 | 75.0 | 37.5 | 75.0 | 75.0 | 4.5 | 8 | 14 |"


def scored(where: bool | None, n_tables: int, **scores: float) -> dict[str, Any]:
    keys = [overlap_key(kind, part) for kind in OVERLAPS for part in ("P", "R", "F1")]
    return {
        "id": "q",
        "db_id": "d",
        "n_tables": n_tables,
        "where": where,
        "scores": {**dict.fromkeys(("TableEM", *keys), 0.0), **scores},
        "seconds": 1.0,
        "tokens": {"cache_hits": 2},
        "error": None,
    }


def test_the_papers_figures_by_hand() -> None:
    records = [
        scored(True, 1, TableEM=1.0, RowP=1.0, RowR=0.5, RowF1=2 / 3),
        scored(True, 2, RowP=0.5, RowR=0.0, CellP=1.0, CellR=1.0, CellF1=1.0),
        scored(False, 1, RowP=0.0, RowR=0.0),
        scored(None, 2),
    ]
    metrics = list(records[0]["scores"])
    summary = summarise(records, metrics, {"task": "answers"})
    # Means of precision and recall first, F1 of these: 2 · 0.375 · 0.125 / 0.5.
    assert summary["macro"]["Row"] == {"precision": 0.375, "recall": 0.125, "f1": 0.1875}
    assert summary["RowF1"] == pytest.approx(1 / 6, abs=1e-6)
    assert summary["macro"]["Cell"] == {"precision": 0.25, "recall": 0.25, "f1": 0.25}
    assert list(summary["by_where"]) == ["with", "without"]
    filtered = summary["by_where"]["with"]
    assert (filtered["n"], filtered["TableEM"]) == (2, 0.5)
    assert filtered["macro"]["Row"] == {"precision": 0.75, "recall": 0.25, "f1": 0.375}
    assert summary["by_tables"]["2"]["macro"]["Row"]["precision"] == 0.25
    assert summary["tokens"]["cache_hits"] == 8
    lines = paper_table({"run": summary}).split("\n")
    assert lines[0].startswith(
        "| run | questions | n | Table EM | values | row P | row R | row F1 |"
    )
    assert [line.split(" | ")[1] for line in lines[2:-1]] == [
        "all",
        "1 table",
        "2 tables",
        "with WHERE",
        "without WHERE",
    ]
    assert lines[2].startswith("| run | all | 4 | 25.0 | – | 37.5 | 12.5 | 18.8 |")
    assert "RowP" not in summary_table({"run": summary})
    assert "macro" not in summarise(records, ["TableEM"], {})
    plain = [{k: v for k, v in r.items() if k != "where"} for r in records]
    assert summarise(plain, ["TableEM"], {})["by_where"] == {}
    with pytest.raises(UsageError, match="'q' was scored without EX"):
        summarise(records, ["EX"], {})


def test_quantile_is_the_nearest_rank() -> None:
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile(list(range(1, 101)), 0.95) == 95
    assert quantile([7], 0.95) == 7
    assert quantile([1, 2], 0.0) == 1
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)
