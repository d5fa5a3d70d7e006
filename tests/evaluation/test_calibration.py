from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.evaluation.calibration import (
    Call,
    at_threshold,
    auroc,
    brier,
    calibration,
    expected_calibration_error,
    reliability,
)
from dbrag.evaluation.records import RunFolder, slim, write_slim
from dbrag.evaluation.report import calibration_table, reliability_table
from dbrag.evaluation.summary import summarise

TABLES = Path(__file__).parents[2] / "experiments" / "tables.py"
call = st.builds(Call, st.floats(0, 1), st.booleans(), st.sampled_from("abc"))
calls = st.lists(call, min_size=1, max_size=30)

# Told 0.9 three times, right twice; 0.6 twice, right once; 0.2 once, wrong.
HAND = [
    Call(0.9, True, "a"),
    Call(0.9, True, "a"),
    Call(0.9, False, "b"),
    Call(0.6, True, "b"),
    Call(0.6, False, "b"),
    Call(0.2, False, "a"),
]


def test_by_hand() -> None:
    low, middle, high = reliability(HAND)
    assert (low.low, low.high, low.n, low.mean, low.right) == (0.2, 0.3, 1, 0.2, 0)
    assert (middle.low, middle.n, middle.mean, middle.right) == (0.6, 2, 0.6, 0.5)
    assert (high.low, high.high, high.n) == (0.9, 1.0, 3)
    assert (high.mean, high.right) == (pytest.approx(0.9), pytest.approx(2 / 3))
    # 1/6 · 0.2 + 2/6 · 0.1 + 3/6 · (0.9 − 2/3)
    assert expected_calibration_error(HAND) == pytest.approx(1 / 30 + 1 / 30 + 7 / 60)
    # (2 · 0.01 + 0.81 + 0.16 + 0.36 + 0.04) / 6
    assert brier(HAND) == pytest.approx(1.39 / 6)
    # Right 0.9, 0.9, 0.6 against wrong 0.9, 0.6, 0.2: (½ + 1 + 1) · 2 + (0 + ½ + 1) of nine.
    assert auroc(HAND) == pytest.approx(6.5 / 9)


def test_the_ends_and_the_edges_of_the_bins() -> None:
    found = reliability([Call(t, True) for t in (0.0, 0.1, 0.3, 0.6, 0.7, 1.0)])
    assert [(one.low, one.n) for one in found] == [
        (0.0, 1), (0.1, 1), (0.3, 1), (0.6, 1), (0.7, 1), (0.9, 1),
    ]  # fmt: skip
    (one,) = reliability(HAND, bins=1)
    assert (one.low, one.high, one.n) == (0.0, 1.0, 6)
    with pytest.raises(ValueError, match="between 0 and 1"):
        reliability([Call(1.5, True)])
    with pytest.raises(ValueError, match="not 0"):
        reliability(HAND, bins=0)
    for figure in (expected_calibration_error, brier):
        with pytest.raises(ValueError, match="at least one call"):
            figure([])


def test_the_area_is_undefined_where_there_is_nothing_to_tell_apart() -> None:
    assert auroc([Call(0.4, True), Call(0.9, True)]) is None
    assert auroc([Call(0.4, False)]) is None
    assert auroc([]) is None
    assert auroc([Call(0.9, True), Call(0.4, False)]) == 1
    assert auroc([Call(0.4, True), Call(0.9, False)]) == 0
    assert auroc([Call(0.5, True), Call(0.5, False)]) == 0.5


@given(calls)
def test_every_call_is_in_one_bin_and_the_figures_are_shares(given_calls: list[Call]) -> None:
    bins = reliability(given_calls)
    assert sum(one.n for one in bins) == len(given_calls)
    for one in bins:
        inside = [
            c for c in given_calls if one.low <= c.told < one.high or c.told == 1.0 == one.high
        ]
        assert len(inside) == one.n
        assert one.low - 1e-9 <= one.mean <= one.high + 1e-9
        assert one.right == pytest.approx(sum(c.right for c in inside) / one.n)
    assert 0 <= expected_calibration_error(given_calls) <= 1
    assert 0 <= brier(given_calls) <= 1


@given(calls)
def test_ece_in_one_bin_is_the_distance_of_the_means(given_calls: list[Call]) -> None:
    told = sum(c.told for c in given_calls) / len(given_calls)
    right = sum(c.right for c in given_calls) / len(given_calls)
    assert expected_calibration_error(given_calls, 1) == pytest.approx(abs(told - right))
    # By Jensen's inequality the squared error is at least the squared error of the bins.
    assert brier(given_calls) >= expected_calibration_error(given_calls) ** 2 - 1e-9


@given(calls)
def test_the_area_is_the_share_of_pairs_in_order(given_calls: list[Call]) -> None:
    pairs = [
        1.0 if r.told > w.told else 0.5 if r.told == w.told else 0.0
        for r in given_calls
        if r.right
        for w in given_calls
        if not w.right
    ]
    area = auroc(given_calls)
    assert area == (pytest.approx(sum(pairs) / len(pairs)) if pairs else None)
    # Turned around, it is the complement; a monotone change of what is told leaves it.
    turned = auroc([Call(1 - c.told, c.right) for c in given_calls if c.told in (0, 0.5, 1)])
    kept = auroc([c for c in given_calls if c.told in (0, 0.5, 1)])
    assert turned == (None if kept is None else pytest.approx(1 - kept))


def test_the_threshold_by_hand() -> None:
    sure = at_threshold(HAND, 0.6, questions=10)
    assert (sure["n"], sure["coverage"], sure["right"]) == (5, 0.5, 0.6)
    low, high = sure["interval"]["questions"]
    assert low < 0.6 < high
    assert sure["interval"]["databases"] == [pytest.approx(1 / 3, abs=1e-6), 1.0]
    none = at_threshold(HAND, 0.95, questions=10)
    assert none == {"threshold": 0.95, "n": 0, "coverage": 0.0, "right": None, "interval": None}
    with pytest.raises(ValueError, match="6 calls of only 5"):
        at_threshold(HAND, 0.5, questions=5)


@given(calls, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_threshold_covers_less(given_calls: list[Call], s: float, t: float) -> None:
    low, high = (at_threshold(given_calls, x, len(given_calls)) for x in sorted((s, t)))
    assert low["coverage"] >= high["coverage"]


def record(i: int, ex: float | None, **told: Any) -> dict[str, Any]:
    return {
        "id": f"q-{i}",
        "db_id": "ab"[i % 2],
        "n_tables": 1,
        "seconds": 1.0,
        "tokens": {},
        "prediction": {"status": "answered", "sql": "SELECT 'secret'", **told} if told else None,
        "scores": {} if ex is None else {"EX": ex},
        "error": None if ex is not None else {"code": "limit", "message": "secret"},
    }


RECORDS = [
    record(0, 1.0, agreement=1.0, confidence=0.9),
    record(1, 0.0, agreement=1.0, confidence=0.3),
    record(2, 0.0, agreement=1 / 3, confidence=0.2),
    record(3, 1.0, agreement=None, confidence=0.85),  # one vote
    record(4, 0.0, status="unanswerable", agreement=None, confidence=None),
    record(5, None),
]


def test_what_the_summary_tells() -> None:
    told = summarise(RECORDS, ["EX"], {"task": "answers"})["calibration"]
    assert told == calibration(RECORDS)
    assert told == calibration([slim(one) for one in RECORDS])
    agreement, confidence = told["agreement"], told["confidence"]
    assert (agreement["n"], agreement["right"]) == (3, round(1 / 3, 6))
    assert agreement["sure"][0]["n"] == 2
    assert agreement["sure"][0]["right"] == 0.5
    assert agreement["sure"][0]["coverage"] == round(2 / 6, 6)  # of all six questions
    assert [(one["low"], one["n"]) for one in agreement["bins"]] == [(0.3, 1), (0.9, 2)]
    assert (confidence["n"], confidence["AUROC"]) == (4, 1.0)
    assert confidence["sure"][0]["right"] == 1.0
    assert "calibration" not in summarise(RECORDS[:1], [], {"task": "retrieval"})


def test_runs_that_tell_nothing() -> None:
    old = [{k: v for k, v in record(0, 1.0).items() if k != "prediction"}]
    assert calibration(old) == {"agreement": None, "confidence": None}
    assert calibration([record(0, 1.0, agreement=None)])["agreement"] is None
    assert calibration_table({"old": calibration(old)}).count("\n") == 2  # no row


def test_the_tables() -> None:
    told = {"a|b": calibration(RECORDS, [0.5, 0.99])}
    lines = calibration_table(told).splitlines()
    assert len(lines) == 2 + 4
    assert lines[2].startswith("| a\\|b, agreement | 3 | 33.3 | 0.444 | 0.370 | 0.750 | 0.5 | 2 |")
    assert lines[5] == (
        "| a\\|b, confidence | 4 | 50.0 | 0.188 | 0.041 | 1.000 | 0.99 | 0 | – | – | – | 0.0 |"
    )
    assert "| a\\|b, agreement | 90.0 | 100.0 | 2 | 100.0 | 50.0 |" in reliability_table(told)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunFolder(tmp_path / "run", {}) as folder:
        for one in RECORDS:
            folder.append(one)
        folder.finish(summarise(RECORDS, ["EX"], {}))
    write_slim(tmp_path / "run", tmp_path / "kept.jsonl")
    assert "secret" not in (tmp_path / "kept.jsonl").read_text()
    main = runpy.run_path(str(TABLES))["main"]
    runs = [str(tmp_path / "run"), str(tmp_path / "kept.jsonl")]
    assert main(["calibration", *runs, "--threshold", "0.5", "--threshold", "0.9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    whole = [line for line in lines if line.startswith("| run, ")]
    kept = [line for line in lines if line.startswith("| kept, ")]
    assert [line.replace("| kept,", "| run,") for line in kept] == [
        line for line in whole if line not in (lines[0],) and "told" not in line
    ]
    with RunFolder(tmp_path / "silent", {}) as folder:
        folder.append(record(0, 1.0))
    assert main(["calibration", str(tmp_path / "silent")]) == 0
    assert "silent tells neither" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["calibration", runs[0], "--threshold", "1.5"])
    assert "must lie between 0 and 1, not '1.5'" in capsys.readouterr().err
    assert main(["calibration", str(tmp_path / "none")]) == 2
    assert "cannot read the run" in capsys.readouterr().err
