"""``experiments/tables.py`` over the published runs."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "experiments"
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
