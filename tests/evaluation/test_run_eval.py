from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import pytest

from dbrag.errors import UsageError
from dbrag.evaluation import run_eval
from dbrag.evaluation.config import asks_model, behaviour, for_run, told
from dbrag.evaluation.records import read_records
from dbrag.settings import Settings

from .conftest import Parrot, SmallBench, make_catalog


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, bench: SmallBench) -> list[Any]:
    """The façade replaced by the small bench; what it was opened with is kept."""
    seen: list[Any] = []

    class Database:
        def __init__(self, settings: Settings, *, chat_model: Any, embedder: Any) -> None:
            seen.append(settings)
            self.settings, self._chat_model = settings, chat_model
            self.sources = [SimpleNamespace(name=n, dialect="sqlite") for n in ("shop", "zoo")]
            self.skipped = [SimpleNamespace(name="broken")]
            self.search, self.ask, self.run_sql = bench.search, bench.ask, bench.run_sql

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *args: object) -> None:
            seen.append("closed")

        def index(self, progress: Any = None) -> None:
            seen.append("indexed")

        def opened_index(self) -> Any:
            return SimpleNamespace(catalog=make_catalog())

        def chat_model(self) -> Any:
            return self._chat_model

        def embedder(self) -> Any:
            return SimpleNamespace(name="test:encoder", sha256="00ff")

    module = ModuleType("dbrag.database")
    module.Database = Database  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dbrag.database", module)
    return seen


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    records = [
        {"db_id": "shop", "question": f"Who {i}?", "query": "SELECT name FROM customer"}
        for i in range(6)
    ]
    records.append({"db_id": "zoo", "question": "What?", "query": "SELECT name FROM animal"})
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(records))
    return path


def test_retrieval(opened: list[Any], questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    given = Settings(sources=("else.db",), timeout_s=9)
    summary = run_eval(
        "retrieval", data=tmp_path, questions=questions, settings=given, out=out, limit=3, seed=5
    )
    assert opened[0].sources == (str(tmp_path),)
    assert opened[1:] == ["indexed", "closed"]
    assert summary["n"] == 3
    assert summary["R@5"] == 1.0
    assert summary["out"] == str(out)
    config = summary["config"]
    assert (config["task"], config["method"], config["k"]) == ("retrieval", "dbrag", 50)
    assert (config["limit"], config["seed"]) == (3, 5)
    assert config["weights"]["coarse"]["names"] > 0
    assert config["weights"]["select"]["coverage"] > 0
    assert config["data"] == {
        "name": tmp_path.name,
        "sources": 2,
        "tables": 3,
        "skipped": ["broken"],
    }
    assert config["questions"]["name"] == "mine.json"
    assert len(config["questions"]["sha256"]) == 64
    assert config["settings"]["timeout_s"] == 9
    assert not {"votes", "model", "rerank_k"} & config["settings"].keys()
    assert str(tmp_path) not in json.dumps(config)  # no path of this machine
    assert summary["versions"]["encoder"] == {"name": "test:encoder", "sha256": "00ff"}
    on_disk = json.loads((out / "summary.json").read_text())
    assert on_disk == {k: v for k, v in summary.items() if k != "out"}


@pytest.mark.parametrize(
    ("base_url", "said"), [("https://example.org/v1", "on"), ("http://127.0.0.1:9/v1", "off")]
)
def test_the_configuration_says_whether_replies_are_remembered(
    base_url: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", base_url)
    remote = Settings(model="openai:x", cache=str(tmp_path), learned="mine.sql")
    held = for_run(remote, "answers", "dbrag")
    assert (held.reply_cache, held.learned) == (said, "off")
    assert behaviour(held, "answers", "dbrag")["settings"]["reply_cache"] == said
    assert for_run(remote, "retrieval", "hybrid").reply_cache == "auto"  # no model is asked
    assert "reply_cache" not in behaviour(remote, "retrieval", "hybrid")["settings"]
    assert for_run(Settings(), "answers", "dbrag").reply_cache == "off"
    assert for_run(Settings(reply_cache="on"), "answers", "dbrag").reply_cache == "on"
    given = for_run(replace(remote, reply_cache="on"), "answers", "dbrag", Parrot("SELECT 1"))
    assert given.reply_cache == "off"


@pytest.mark.parametrize(
    ("spec", "published"),
    [
        ("local:qwen2.5-coder-1.5b", "local:qwen2.5-coder-1.5b"),
        ("local:/home/me/models/x.gguf", "local:x.gguf"),
        ("/home/me/models/x.gguf", "x.gguf"),
        ("C:\\models\\x.gguf", "x.gguf"),
        ("/home/me/encoder/", "encoder"),
        ("openrouter:meta/llama", "openrouter:meta/llama"),
        ("openai:bge@https://me:secret@host/v1", "openai:bge@https://host/v1"),
    ],
)
def test_what_is_published_of_a_models_name(spec: str, published: str) -> None:
    assert told(spec) == published
    settings = Settings(model=spec, encoder=spec)
    values = behaviour(settings, "answers", "dbrag")["settings"]
    assert (values["model"], values["encoder"]) == (published, published)


def test_a_reranking_run_is_another_one_with_another_model(
    opened: list[Any], questions: Path, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"data": tmp_path, "questions": questions, "limit": 2}
    model = Parrot("[1]")
    summary = run_eval(
        "retrieval", **given, settings=Settings(rerank_k=15), method="rerank", chat_model=model
    )
    config = summary["config"]
    assert (config["settings"]["model"], config["settings"]["rerank_k"]) == ("test:parrot", 15)
    assert summary["versions"]["model"] == "test:parrot"
    assert summary["orders"].keys() == {"prior", "model"}
    assert config["weights"]["rerank"] == {"prior": 1.0, "model": 1.0, "c": 60.0}
    far = Settings(model="openai:gpt-4o")
    assert asks_model(far, "dbrag")
    assert not asks_model(far, "hybrid")
    assert not asks_model(Settings(), "dbrag")
    assert asks_model(Settings(rerank="on"), "dbrag")


def test_answers(opened: list[Any], questions: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "data": tmp_path,
        "questions": questions,
        "settings": Settings(),
        "method": "naive",
        "chat_model": Parrot("SELECT name FROM customer"),
    }
    first = run_eval("answers", **options, votes=1)
    out = Path(first["out"])
    assert out.parent == Path("dbrag-eval")  # named by task, method and time where --out is not
    assert first["EX"] == round(6 / 7, 6)
    assert first["failed"] == 0
    assert first["versions"]["model"] == first["config"]["settings"]["model"] == "test:parrot"
    assert "votes" not in first["config"]["settings"]
    options["chat_model"].text = "nothing is left to ask"
    again = run_eval("answers", **options, out=out, resume=True)
    assert again["EX"] == first["EX"]
    questions.write_text(questions.read_text() + "\n")
    with pytest.raises(UsageError, match="questions was"):
        run_eval("answers", **options, out=out, resume=True)
    assert len(read_records(out)) == 7


def test_mistakes_are_told_before_anything_is_opened(
    opened: list[Any], questions: Path, tmp_path: Path
) -> None:
    good: dict[str, Any] = {"data": tmp_path, "questions": questions, "settings": Settings()}
    for task, change, message in [
        ("speed", {}, "unknown task 'speed'"),
        ("answers", {"method": "magic"}, "unknown method 'magic'"),
        ("answers", {"questions": tmp_path / "no.json"}, "no question file"),
        ("answers", {"data": tmp_path / "none"}, "no folder or database"),
        ("answers", {"resume": True}, "--resume needs the folder"),
    ]:
        with pytest.raises(UsageError, match=message):
            run_eval(task, **{**good, **change})
    assert opened == []


def test_wrong_questions_leave_no_folder(
    opened: list[Any], questions: Path, tmp_path: Path
) -> None:
    questions.write_text('[{"db_id": "nope", "question": "?", "query": "SELECT 1"}]')
    with pytest.raises(UsageError, match="'nope'"):
        run_eval(
            "answers",
            data=tmp_path,
            questions=questions,
            settings=Settings(),
            out=tmp_path / "run",
        )
    assert not (tmp_path / "run").exists()
