"""Every setting that can change a run's figures is in the run's configuration."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest

from dbrag.evaluation import config
from dbrag.evaluation.config import IRRELEVANT, behaviour, ignored
from dbrag.options import FileOptions, JoinOptions, SourceOptions, TableNote
from dbrag.reasoning import confidence, verify
from dbrag.settings import _WORDS, Settings

NAMES = [one.name for one in fields(Settings)]
OTHER: dict[str, Any] = {
    "model": "local:/models/another.gguf",
    "source_options": {"shop": SourceOptions(schemas=("sales",))},
    "file_options": {"*.csv": FileOptions(delimiter=";")},
    "notes": {"shop.orders": TableNote(synonyms=("purchases",))},
    "joins": JoinOptions(add=("shop.a.id = shop.b.a_id",)),
}


def other(name: str) -> Any:
    """Another valid value of a setting; a setting of a new kind has to be added here."""
    default = getattr(Settings(), name)
    kind = next(str(one.type) for one in fields(Settings) if one.name == name)
    if name in OTHER:
        return OTHER[name]
    if name in _WORDS:
        return next(word for word in _WORDS[name] if word != default)
    if kind == "bool":
        return not default
    if kind.startswith(("int", "float")):
        return 7 if default is None else default + 1
    if kind.startswith("str"):
        return f"{default or ''}x"
    assert kind == "tuple[str, ...]", f"{name}: {kind}"
    return ("x",)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("task", "method"),
    [
        ("answers", "dbrag"),
        ("answers", "gold-tables"),
        ("answers", "naive"),
        ("answers", "readtable"),
        ("answers", "mtqa"),
        ("answers", "mtqa-gold"),
        ("retrieval", "hybrid"),
        ("retrieval", "rerank"),
    ],
)
def test_a_changed_setting_changes_the_run(name: str, task: str, method: str) -> None:
    changed = replace(Settings(), **{name: other(name)})
    differs = behaviour(changed, task, method) != behaviour(Settings(), task, method)
    assert differs == (name not in ignored(changed, task, method))


def test_all_but_places_count_for_answers() -> None:
    baselines = set(config._BASELINES.values())
    assert ignored(Settings(), "answers", "dbrag") == IRRELEVANT | baselines
    assert set(NAMES) > IRRELEVANT
    written = {*config._REASONING, *config._RERANKING, *config._READING, *config.LATER, *baselines}
    assert written <= set(NAMES), "a list names a setting that does not exist"
    assert not written & IRRELEVANT


def test_the_weights_that_decide_between_programs_are_told() -> None:
    told = behaviour(Settings(), "answers", "dbrag")["weights"]
    assert told.keys() == {"coarse", "rerank", "select", "source", "verify", "confidence"}
    assert told["verify"] == asdict(verify.WEIGHTS)
    assert told["confidence"] == asdict(confidence.WEIGHTS)
    for task, method in (("answers", "naive"), ("retrieval", "dbrag")):
        weights = behaviour(Settings(), task, method)["weights"]
        assert not weights.keys() & {"source", "verify", "confidence"}


def test_published_runs_can_be_gone_on_with() -> None:
    """Settings that they did not know are told only where they are not the default."""
    plain = behaviour(Settings(), "answers", "dbrag")["settings"]
    assert not plain.keys() & config.LATER
    told = behaviour(Settings(naming_hint="on"), "answers", "dbrag")["settings"]
    assert told == {**plain, "naming_hint": "on"}


def test_a_baseline_depends_on_what_it_uses() -> None:
    def told(method: str, **settings: Any) -> set[str]:
        return set(behaviour(Settings(**settings), "answers", method)["settings"])

    assert {"votes", "m", "model", "encoder"} <= told("readtable")
    assert not told("readtable") & {"rerank_k", "row_context", "selection", "rounds"}
    assert {"rerank_k", "row_context"} <= told("readtable", rerank="on")
    assert not told("mtqa") & {"model", "votes", "rerank_k", "naming_hint"}
    assert {"model", "rerank_k"} <= told("mtqa", rerank="on")
    assert "readtable_tokens" not in told("mtqa", readtable_tokens=9)
    assert "readtable_tokens" in told("readtable", readtable_tokens=9)


def test_a_folder_of_weights_is_told_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "private" / "mine"
    folder.mkdir(parents=True)
    told = behaviour(Settings(mtqa_model=str(folder)), "answers", "mtqa")["settings"]
    assert told["mtqa_model"] == "mine"
    name = "vaishali/multitabqa-base-atis"
    assert behaviour(Settings(mtqa_model=name), "answers", "mtqa")["settings"]["mtqa_model"] == name
