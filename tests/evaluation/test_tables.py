"""``experiments/tables.py`` over the published runs."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dbrag.evaluation.scripts import run_script

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "experiments"
NAIVE = str(FOLDER / "results" / "spider-dev-naive.jsonl")
DBRAG = str(FOLDER / "results" / "spider-dev-dbrag.jsonl")


@pytest.fixture(scope="module")
def main() -> Any:
    return runpy.run_path(str(FOLDER / "tables.py"))["main"]


def test_published_runs_are_compared(main: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--metric", "EX", NAIVE, DBRAG]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("| EX | 391 | 57.5 | 73.4 | +15.9 | +10.7 to +20.7 |")
    assert main(["compare", NAIVE, DBRAG, "--questions"]) == 0
    shown = capsys.readouterr().out
    assert "| RowF1 | 391 |" in shown
    assert "EX: spider-dev-dbrag wins dev-" in shown
    assert main(["compare", "--metric", "XX", NAIVE, DBRAG]) == 2
    assert "no metric 'XX'. they have EX," in capsys.readouterr().err


def test_published_runs_stand_in_the_table(main: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", NAIVE, DBRAG]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| spider-dev-naive",
        "| spider-dev-dbrag",
    ]


def test_a_run_that_was_not_run_is_told(
    main: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"reason": "MTQA needs torch", "command": "pip install torch"}
    (tmp_path / "summary.json").write_text(json.dumps({"not_run": told}))
    for command in ("summary", "paper"):
        assert main([command, NAIVE, str(tmp_path)]) == 0
        shown = capsys.readouterr()
        assert "spider-dev-naive" in shown.out
        assert tmp_path.stem not in shown.out
        assert f"{tmp_path.stem} not run: MTQA needs torch. pip install torch" in shown.err
        assert main([command, str(tmp_path)]) == 0
        capsys.readouterr()


def test_runs_of_one_name_each_have_a_line(
    main: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = Path(DBRAG).with_suffix(".json").read_text()
    records = Path(DBRAG).read_text()
    runs = [tmp_path / name for name in ("v1.5", "v1.6", "other/v1.5")]
    for run in runs:
        run.mkdir(parents=True)
        (run / "summary.json").write_text(summary)
        (run / "records.jsonl").write_text(records)
    wanted = [str(runs[0]), "v1.6", str(runs[2])]
    for command in ("summary", "paper", "calibration"):
        assert main([command, *map(str, runs)]) == 0
        lines = capsys.readouterr().out.splitlines()
        names = [line.removeprefix("| ").split(" | ")[0].split(",")[0] for line in lines[2:]]
        assert [name for name in dict.fromkeys(names) if name in wanted] == wanted
    assert main(["compare", "--metric", "EX", str(runs[0]), str(runs[2])]) == 0
    assert f"| {runs[0]} | {runs[2]} |" in capsys.readouterr().out
    assert main(["compare", "--metric", "EX", str(runs[0]), str(runs[0])]) == 0


def test_what_is_no_summary_is_told(
    main: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text('{"n": 3}')
    for command in ("summary", "paper"):
        assert main([command, str(tmp_path / "a.jsonl")]) == 2
        assert "the summary of 'a' lacks 'failed'. take" in capsys.readouterr().err


def test_a_threshold_that_is_no_number(main: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["calibration", DBRAG, "--threshold", "x"])
    assert "must lie between 0 and 1, not 'x'" in capsys.readouterr().err


def test_a_reader_that_goes_away_gets_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, str(FOLDER / "tables.py"), "summary", NAIVE]
    with os.fdopen(writing, "wb") as pipe:
        ended = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_ctrl_c_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> int:
        raise KeyboardInterrupt

    assert run_script(stopped) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert run_script(lambda: 5) == 5


SCRIPTS = [file for place in ("experiments", "bench") for file in (ROOT / place).glob("*.py")]


@pytest.mark.parametrize("name", ["sweep", "tables", "wrong_database", "first_token"])
def test_measuring_scripts_end_so(name: str) -> None:
    (file,) = (one for one in SCRIPTS if one.stem == name)
    assert "sys.exit(run_script(main))" in file.read_text(encoding="utf-8")
