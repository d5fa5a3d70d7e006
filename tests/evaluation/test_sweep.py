"""``experiments/sweep.py`` with a scripted model: a folder for each value, resumable."""

from __future__ import annotations

import json
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import ModelNotInstalled
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder

SCRIPT = Path(__file__).parents[2] / "experiments" / "sweep.py"
COUNT = "SELECT count(*) FROM customers"
ASKED = [
    ("How many customers are there?", COUNT),
    ("Which city does the customer Anna Costa live in?", "SELECT city FROM customers"),
]


class Model(FunctionModel):
    """Ranks where it is asked for numbers, else counts customers; may stop after some calls."""

    def __init__(self, stop_after: int | None = None) -> None:
        super().__init__(self.reply)
        self.stop_after = stop_after

    def reply(self, prompt: Prompt) -> str:
        if self.stop_after is not None and len(self.prompts) > self.stop_after:
            raise KeyboardInterrupt
        return '{"tables": [1, 2]}' if "best tables" in prompt.request else COUNT


class Bed:
    """A database, two questions and the script."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.out = path, folder / "runs"
        self.questions = folder / "questions.json"
        self.questions.write_text(
            json.dumps([{"db_id": path.stem, "question": q, "query": sql} for q, sql in ASKED])
        )
        self.config = folder / "sweep.toml"
        self.config.write_text(f"index = '{folder / 'index'}'\nvotes = 1\n")

    def __call__(self, *arguments: str, model: Any = None, out: Path | None = None) -> int:
        main = runpy.run_path(str(SCRIPT))["main"]
        places = ["--data", str(self.path), "--questions", str(self.questions)]
        places += ["--out", str(out or self.out), "--config", str(self.config)]
        code: int = main([*arguments, *places], chat_model=model, embedder=HashEmbedder())
        return code

    def settings(self, name: str) -> dict[str, Any]:
        config = json.loads((self.out / name / "config.json").read_text())
        found: dict[str, Any] = config["settings"]
        return found

    def records(self, name: str) -> Sequence[str]:
        return (self.out / name / "records.jsonl").read_text().splitlines()


@pytest.fixture
def bed(small_shop: Path, tmp_path: Path) -> Bed:
    return Bed(small_shop, tmp_path)


def test_k(bed: Bed, capsys: pytest.CaptureFixture[str]) -> None:
    model = Model()
    assert bed("k", "2", "3", "--rows", "relevant", "none", model=model) == 0
    names = ["k-2-relevant", "k-3-relevant", "k-2-none", "k-3-none"]
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[0] for row in rows[2:]] == [f"| {name}" for name in names]
    assert "R@5" in rows[0]
    told = bed.settings("k-3-none")
    assert (told["rerank_k"], told["row_context"]) == (3, "none")
    assert len(model.prompts) == 8
    for name in names:
        record = json.loads(bed.records(name)[0])
        assert record["rerank"]["k"] == int(name[2])


def test_l(bed: Bed) -> None:
    model = Model()
    assert bed("l", "0", "2", model=model) == 0
    assert bed.settings("l-2-relevant")["program_rows"] == "context"
    assert bed.settings("l-0-relevant")["context_rows"] == 0
    assert "-- rows:" not in model.prompts[0].context
    assert "-- rows:" in model.prompts[-1].context
    assert json.loads((bed.out / "l-2-relevant" / "summary.json").read_text())["EX"] == 0.5


def test_votes(bed: Bed) -> None:
    assert bed("votes", "1", "3", model=Model()) == 0
    assert [bed.settings(name)["votes"] for name in ("vote-1", "vote-3")] == [1, 3]


def test_a_killed_sweep_goes_on(bed: Bed, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        bed("votes", "1", "3", model=Model(stop_after=1))
    assert len(bed.records("vote-1")) == 1
    assert not (bed.out / "vote-3").exists()
    model = Model()
    assert bed("votes", "1", "3", model=model) == 0
    assert len(bed.records("vote-1")) == len(bed.records("vote-3")) == 2
    asked = len(model.prompts)
    assert bed("votes", "1", "3", model=model) == 0
    assert len(model.prompts) == asked, "a finished sweep asks nothing"
    assert capsys.readouterr().out.count("| vote-3 | 2 |") == 2


def test_a_model_that_is_missing_does_not_end_the_sweep(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(spec: str, settings: Any) -> Any:
        if spec == "test:gone":
            raise ModelNotInstalled("no key for 'test:gone'", "export TEST_KEY=…")
        return Model()

    monkeypatch.setattr("dbrag.models.load.load_chat_model", load)
    monkeypatch.setenv("DBRAG_REPLY_CACHE", "off")
    assert bed("models", "test:gone", "test:here/v1") == 5
    told = capsys.readouterr()
    assert "model-test-gone not run: no key for 'test:gone'. export TEST_KEY=…" in told.err
    assert "| model-test-here-v1 | 2 |" in told.out
    assert bed.settings("model-test-here-v1")["model"] == "test:here/v1"
    assert bed("models", "test:here/v1", "--task", "answers", out=bed.out / "answers") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("k", "2", "x"), "k must be a whole number, not 'x'"),
        (("k", "51"), "K is at most 50, the tables of a ranking, not 51"),
        (("k", "1"), "rerank_k must be at least 2, not 1"),
        (("l", "2", "6", "--rows", "random"), "context_rows must be at most 5 with"),
        (("votes", "0"), "votes must be at least 1, not 0"),
        (("votes", "1", "--rows", "none"), "a sweep over votes takes no --rows"),
        (("k", "2", "--task", "answers"), "a sweep over k is no run of eval answers"),
        (("models", "a:b/c", "a:b-c"), "would have one folder"),
    ],
)
def test_wrong_values_are_refused_before_the_first_run(
    bed: Bed, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Model()
    assert bed(*arguments, model=model) == 2
    assert message in capsys.readouterr().err
    assert not bed.out.exists()
    assert not model.prompts
