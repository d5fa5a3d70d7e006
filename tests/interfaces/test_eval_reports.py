"""``dbrag eval report | compare | stats`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbrag.interfaces.cli import main
from tests.evaluation.reports.made import record, write_run

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
NAIVE, DBRAG = (str(RESULTS / f"spider-dev-{name}.jsonl") for name in ("naive", "dbrag"))


def test_a_report_is_printed_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "report", NAIVE, f"full={DBRAG}", "--title", "Two runs"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# Two runs\n")
    assert "| spider-dev-naive | EX | 391 | 73.4 | 57.5 |" in printed
    out = str(tmp_path / "r")
    assert (
        main(["eval", "report", NAIVE, DBRAG, "--out", out, "--reference", "spider-dev-naive"]) == 0
    )
    assert capsys.readouterr().out == f"wrote {out}.md\nwrote {out}.html\n"
    assert "| spider-dev-dbrag | EX | 391 | 57.5 | 73.4 |" in Path(f"{out}.md").read_text()
    assert main(["eval", "report", NAIVE, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"][0]["scores"]["EX"] == 0.575448  # 225 of 391
    assert told["files"] == []


def test_a_sample_stands_beside_a_run_of_everything(capsys: pytest.CaptureFixture[str]) -> None:
    sample = str(RESULTS / "spider-dev-60-gold-tables.jsonl")
    assert main(["eval", "report", DBRAG, sample, "--common", "--json"]) == 0
    full, ceiling = json.loads(capsys.readouterr().out)["runs"]
    assert full["n"] == ceiling["n"] == 60
    assert full["scores"]["EX"] == 0.733333  # 44 of 60; 73.4 percent of all 391
    train = str(RESULTS / "spider-train-100-all.jsonl")
    assert main(["eval", "report", DBRAG, train, "--common", "--json"]) == 0
    assert [one["n"] for one in json.loads(capsys.readouterr().out)["runs"]] == [391, 100]


def test_prices_come_from_flags_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = {"prompt": 1_000_000, "cached": 0, "completion": 0}
    run = write_run(
        tmp_path / "r", [record("q-0", "a", 1, {"EX": 1.0}, tokens=tokens)], model="x:m"
    )
    (tmp_path / "p.toml").write_text('["x:m"]\nprompt = 3\ncompletion = 4\n')
    for flags, amount in (
        (["--prices", str(tmp_path / "p.toml")], 3.0),
        (["--price", "x:m=5,0"], 5.0),
        (["--prices", str(tmp_path / "p.toml"), "--price", "x:m=5,0"], 5.0),
    ):
        assert main(["eval", "report", run, "--json", *flags]) == 0
        (told,) = json.loads(capsys.readouterr().out)["runs"]
        assert told["cost"] == {"amount": amount, "currency": "USD"}
    assert main(["eval", "report", run, "--price", "5"]) == 2
    assert "MODEL=PROMPT,COMPLETION" in capsys.readouterr().err


def test_changes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "compare", NAIVE, DBRAG, "--only", "lost"]) == 0
    printed = capsys.readouterr().out
    assert "| won | 85 |" in printed
    assert "## Lost: 23" in printed
    assert "## Won" not in printed
    assert main(["eval", "compare", NAIVE, DBRAG, "--json", "--only", "won"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["questions"]) == told["counts"]["won"] == 85
    assert main(["eval", "compare", NAIVE, str(RESULTS / "spider-dev-retrieval.jsonl")]) == 2
    assert "of answers" in capsys.readouterr().err


def test_statistics_need_no_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", str(tmp_path / "shop.db")]) == 0
    capsys.readouterr()
    questions = tmp_path / "mine.csv"
    questions.write_text(
        'question,tables,sql\nHow many?,shop.customers,"SELECT COUNT(*) FROM customers"\n'
    )
    flags = ["eval", "stats", "--data", str(tmp_path / "shop.db"), "--questions", str(questions)]
    assert main([*flags, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["questions"][0]["rows"]["total"] == 1
    assert told["corpus"]["rows"]["most"] > 1000
    assert main(flags) == 0
    assert "*gold answers of mine.csv*" in capsys.readouterr().out
    made = {path.name for path in tmp_path.iterdir()} - {"cwd"}
    assert made == {"mine.csv", "shop.db"}


def test_sources_are_not_for_these(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "-s", "x.db", "report", NAIVE]) == 2
    assert "not --source" in capsys.readouterr().err


EMPTY = [
    (["retrieval", "--data", "", "--questions", "q.csv"], "'--data' is ''"),
    (["answers", "--data", "x", "--questions", " "], "'--questions' is ' '"),
    (["retrieval", "--data", "x", "--questions", "q.csv", "--out", ""], "'--out' is ''"),
    (["retrieval", "--data", "x", "--questions", "q", "--weights", ""], "'--weights' is ''"),
    (["retrieval", "--data", "x", "--questions", "q", "--sub-questions", ""], "'--sub-questions'"),
    (["stats", "--data", ""], "'--data' is ''"),
    (["stats", "--data", "x", "--questions", ""], "'--questions' is ''"),
    (["report", NAIVE, ""], "is '', no path"),
    (["report", NAIVE, "--out", ""], "'--out' is ''"),
    (["report", NAIVE, "--prices", ""], "'--prices' is ''"),
    (["compare", NAIVE, ""], "is '', no path"),
    (["compare", NAIVE, DBRAG, "--questions", ""], "'--questions' is ''"),
]


@pytest.mark.parametrize(("arguments", "told"), EMPTY)
def test_a_variable_that_is_not_set_is_no_path(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty path would be this folder: all of it read, or a run written into it."""
    assert main(["eval", *arguments]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "a variable of the shell may not be set" in error
