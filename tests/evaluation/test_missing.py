"""A method whose weights are missing is told as not run, with no figure at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import ModelNotInstalled, UsageError, WeightsError
from dbrag.evaluation import experiments, methods
from dbrag.evaluation.methods import Tools
from dbrag.evaluation.metrics import ANSWER_METRICS, RETRIEVAL_METRICS

from .conftest import Parrot

Made = Callable[[str], tuple[Tools, Parrot]]
REGISTRY = {"retrieval": "RETRIEVAL_METHODS", "answers": "ANSWER_METHODS"}


def evaluate(
    task: str, error: Exception, out: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    def make(tools: Tools) -> Any:
        raise error

    monkeypatch.setattr(methods, REGISTRY[task], {"heavy": make})
    run = {"out": out, "config": {"method": "heavy", "limit": 5}}
    return experiments._evaluate(task, tools, "heavy", (), run)


@pytest.mark.parametrize("task", ["retrieval", "answers"])
@pytest.mark.parametrize("kind", [ModelNotInstalled, WeightsError])
def test_the_summary_tells_why_and_what_to_type(
    task: str,
    kind: type[Exception],
    tmp_path: Path,
    make_tools: Made,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "run"
    error = kind("the weights 'x/y' are not here", "hf download x/y")
    summary = evaluate(task, error, out, make_tools("")[0], monkeypatch)
    told = {"reason": "the weights 'x/y' are not here", "command": "hf download x/y"}
    assert summary["not_run"] == told
    assert summary["method"] == "heavy"
    assert summary["config"] == {"task": task, "method": "heavy", "limit": 5}
    assert not summary.keys() & {str(m) for m in (*ANSWER_METRICS, *RETRIEVAL_METRICS)}
    assert not summary.keys() & {"n", "failed", "seconds", "tokens", "interval"}
    assert json.loads((out / "summary.json").read_text()) == summary
    assert [path.name for path in out.iterdir()] == ["summary.json"]


def test_a_finished_run_is_left_alone(
    tmp_path: Path, make_tools: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "records.jsonl").write_text("")
    with pytest.raises(UsageError, match="holds a run, and no torch") as caught:
        evaluate(
            "answers",
            ModelNotInstalled("no torch", "pip install torch"),
            tmp_path,
            make_tools("")[0],
            monkeypatch,
        )
    assert caught.value.hint == "pip install torch"
    assert not (tmp_path / "summary.json").exists()


def test_other_errors_are_errors(
    tmp_path: Path, make_tools: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="wrong"):
        evaluate("answers", UsageError("wrong"), tmp_path, make_tools("")[0], monkeypatch)
