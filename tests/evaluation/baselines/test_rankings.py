"""The retrieval baselines over two real databases, from `run_eval` to the summary."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dbrag.database import Database
from dbrag.errors import ModelNotInstalled, UsageError
from dbrag.evaluation import run_eval
from dbrag.evaluation.baselines import packages, remembered
from dbrag.evaluation.baselines.flat import flat_text
from dbrag.evaluation.baselines.names import RETRIEVAL_BASELINES, BaselineOptions, parts_of
from dbrag.evaluation.baselines.scorers import Sparse, best_first, make_scorer
from dbrag.evaluation.methods import Tools
from dbrag.evaluation.records import read_records
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.settings import Settings
from dbrag.types import Column, Table, TableRef

CONCERTS = """
CREATE TABLE singer (singer_id INTEGER PRIMARY KEY, name TEXT, country TEXT);
CREATE TABLE concert (concert_id INTEGER PRIMARY KEY, title TEXT, year INTEGER);
CREATE TABLE singer_in_concert (
    concert_id INTEGER REFERENCES concert (concert_id),
    singer_id INTEGER REFERENCES singer (singer_id));
INSERT INTO singer VALUES (11, 'Ada', 'France'), (12, 'Bob', 'Peru'), (13, 'Cleo', 'Peru');
INSERT INTO concert VALUES (501, 'Spring', 2014), (502, 'Autumn', 2015);
INSERT INTO singer_in_concert VALUES (501, 11), (501, 12), (502, 11), (502, 13);
"""
SHIPS = """
CREATE TABLE ship (ship_id INTEGER PRIMARY KEY, name TEXT, tonnage INTEGER);
CREATE TABLE mission (mission_id INTEGER PRIMARY KEY, ship_id INTEGER REFERENCES ship (ship_id));
CREATE TABLE harbour (code TEXT PRIMARY KEY, city TEXT);
INSERT INTO ship VALUES (71, 'Emu', 900), (72, 'Gnu', 700);
INSERT INTO mission VALUES (91, 71), (92, 71), (93, 72);
INSERT INTO harbour VALUES ('LIM', 'Lima'), ('NTE', 'Nantes');
"""
QUESTION = "Which singer by name and country is in a concert of which title?"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "databases"
    folder.mkdir()
    for name, script in (("concerts", CONCERTS), ("ships", SHIPS)):
        with closing(sqlite3.connect(folder / f"{name}.sqlite")) as connection:
            connection.executescript(script)
    return folder


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    tables = ["singer", "concert", "singer_in_concert"]
    records = [
        {"db_id": "concerts", "question": QUESTION, "tables": tables},
        {"db_id": "ships", "question": "What is the tonnage of the ship?", "tables": ["ship"]},
    ]
    path = tmp_path / "asked.json"
    path.write_text(json.dumps(records))
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(index=str(tmp_path / "index"), cache=str(tmp_path / "cache"), offline=True)


def evaluate(data: Path, questions: Path, settings: Settings, **more: Any) -> dict[str, Any]:
    out = data.parent / "run" / str(more["method"]).replace(":", "-")
    options = {"embedder": HashEmbedder(), "out": out, **more}
    return run_eval("retrieval", data=data, questions=questions, settings=settings, **options)


OFFLINE = [m for m in RETRIEVAL_BASELINES if parts_of(m)[1] not in ("contriever", "dtr")]


@pytest.mark.parametrize("method", OFFLINE)
def test_every_one_that_needs_no_weights_runs(
    method: str, data: Path, questions: Path, settings: Settings
) -> None:
    if method.startswith("jar"):
        pytest.importorskip("scipy")
    summary = evaluate(data, questions, settings, method=method)
    assert (summary["n"], summary["failed"]) == (2, 0)
    assert summary["R@5"] > 0.6
    assert summary["seconds"]["total"] >= 0
    record = read_records(Path(summary["out"]))[0]
    assert sorted(record["prediction"]["tables"]) == [
        "concerts.concert",
        "concerts.singer",
        "concerts.singer_in_concert",
        "ships.harbour",
        "ships.mission",
        "ships.ship",
    ]
    config = summary["config"]
    assert config["method"] == method
    assert ("weights" in config) == method.endswith("hybrid")
    if method.startswith("jar"):
        assert config["baseline"]["weights"]["tables"] == 10.0
        assert config["baseline"]["sub_questions"] == "the question itself"
        assert record["told"]["solver"] == "optimal"
        assert record["told"]["sub_questions"] == "question"
        assert record["told"]["solver_ms"] > 0
        assert set(record["stages"]) == {"base", "ask", "choose"}
        assert summary["orders"].keys() == {"base"}
        assert "rerank" not in summary


@pytest.mark.parametrize("method", ["contriever", "jar:contriever", "dtr", "pagerank:dtr"])
def test_without_weights_there_is_no_figure(
    method: str,
    data: Path,
    questions: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "torch" else object())
    summary = evaluate(data, questions, settings, method=method)
    assert summary["not_run"] == {
        "reason": f"{parts_of(method)[1]} needs torch",
        "command": 'pip install "dbrag[baselines]"',
    }
    assert not summary.keys() & {"R@5", "CR@5", "n"}
    assert json.loads((Path(summary["out"]) / "summary.json").read_text())["not_run"]


def test_jar_without_scipy_is_not_run(
    data: Path, questions: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    summary = evaluate(data, questions, settings, method="jar")
    assert summary["not_run"]["reason"] == "jar needs scipy"


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("bm25", BaselineOptions(weights="x"), "takes no weights, not 'x'"),
        ("hybrid", BaselineOptions(weights="x"), "takes no weights"),
        ("pagerank", BaselineOptions(sub_questions="model"), "takes no sub-questions"),
        ("jar", BaselineOptions(solver_s=0), "solver_s must be positive"),
        ("jar", BaselineOptions(sub_questions="nowhere.jsonl"), "cannot read the sub-questions"),
    ],
)
def test_options_of_other_methods_are_refused(
    method: str,
    options: BaselineOptions,
    message: str,
    data: Path,
    questions: Path,
    settings: Settings,
) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(data, questions, settings, method=method, baseline=options)


def test_sub_questions_from_a_file(
    data: Path, questions: Path, settings: Settings, tmp_path: Path
) -> None:
    pytest.importorskip("scipy")
    file = tmp_path / "parts.jsonl"
    records = [
        {"id": "asked-0", "sub_questions": ["singer:name\u2028", "concert:title"]},
        {"question": "What is the tonnage of the ship?", "sub_questions": ["ship:tonnage"]},
        {"id": "asked-99", "sub_questions": ["of another file"]},
    ]
    lines = [json.dumps(one, ensure_ascii=False) for one in records]
    file.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    options = BaselineOptions(sub_questions=str(file))
    summary = evaluate(data, questions, settings, method="jar", baseline=options)
    told = [record["told"] for record in read_records(Path(summary["out"]))]
    assert [(one["sub_questions"], one["parts"]) for one in told] == [("file", 2), ("file", 1)]
    assert summary["config"]["baseline"]["sub_questions"].startswith("file ")
    file.write_text(json.dumps(records[0]))
    with pytest.raises(UsageError, match="lacks 1 of 2 questions, the first is 'asked-1'"):
        evaluate(data, questions, settings, method="jar:bm25", baseline=options)
    file.write_text('{"id": "asked-0", "sub_questions": "singer"}')
    with pytest.raises(UsageError, match=r"line 1 of 'parts\.jsonl' is not a question"):
        evaluate(data, questions, settings, method="jar:hybrid", baseline=options)


def test_sub_questions_from_the_chat_model(data: Path, questions: Path, settings: Settings) -> None:
    pytest.importorskip("scipy")
    replies = {QUESTION: '{"concepts": ["singer:name", "concert:title", "singer:name"]}'}
    model = FunctionModel(
        lambda prompt: next((r for q, r in replies.items() if q in prompt.request), "no idea")
    )
    summary = evaluate(
        data,
        questions,
        settings,
        method="jar",
        baseline=BaselineOptions(sub_questions="model"),
        chat_model=model,
    )
    first, second = read_records(Path(summary["out"]))
    assert (first["told"]["sub_questions"], first["told"]["parts"]) == ("model", 2)
    assert first["tokens"]["prompt"] > 0
    assert second["told"]["sub_questions"].startswith("question, the model's reply")
    assert second["told"]["parts"] == 1
    assert summary["config"]["baseline"]["model"] == "test:function"
    assert len(model.prompts) == 2


def test_where_too_few_tables_are_connected_the_base_stands(
    tmp_path: Path, questions: Path, settings: Settings
) -> None:
    pytest.importorskip("scipy")
    folder = tmp_path / "apart"
    folder.mkdir()
    for name, script in (("concerts", CONCERTS), ("ships", SHIPS)):
        with closing(sqlite3.connect(folder / f"{name}.sqlite")) as connection:
            connection.executescript(script)
            for (table,) in connection.execute("SELECT name FROM sqlite_master").fetchall():
                if "autoindex" not in table:
                    connection.execute(f"DELETE FROM {table}")
            connection.commit()
    with closing(sqlite3.connect(folder / "ships.sqlite")) as connection:
        connection.execute("INSERT INTO ship VALUES (1, 'x', 2)")
        connection.commit()
    summary = evaluate(folder, questions, settings, method="jar")
    for record in read_records(Path(summary["out"])):
        told = record["told"]["solver"]
        if told == "infeasible":
            assert record["prediction"]["tables"] == record["prediction"]["base"]
        else:
            assert told == "optimal"


# ---- the bases ----------------------------------------------------------------------


def test_the_text_is_that_of_the_paper() -> None:
    table = Table(
        TableRef("secret", None, "Student"),
        (Column("ID"), Column("Last Name")),
        sample_rows=(("1", "O | K"), ("2", None), ("3", "never")),
    )
    assert flat_text(table) == (
        "table name: student col: id | last name row 1: 1 | o | k row 2: 2 | "
    )
    assert "secret" not in flat_text(table)


def test_bm25_is_the_words_alone() -> None:
    texts = ["table name: ship col: tonnage", "table name: singer col: id", "table name: ship"]
    sparse = Sparse(texts)
    scores = sparse.scores("Which ships?")
    assert scores[1] == 0
    assert scores[2] > scores[0] > 0  # the shorter text
    assert best_first(sparse.scores("nothing known")).tolist() == [0, 1, 2]
    assert sparse.scores("nothing known").tolist() == [0, 0, 0]
    assert Sparse([]).scores("ship").shape == (0,)


def test_coarse_is_the_cosine_alone(data: Path, settings: Settings) -> None:
    from dataclasses import replace

    with Database(replace(settings, sources=(str(data),)), embedder=HashEmbedder()) as db:
        catalog = db.opened_index().catalog
        tools = Tools(db, catalog, db.chat_model)
        found = make_scorer("coarse", tools).scores(QUESTION)
        encoder = HashEmbedder()
        wanted = (
            encoder.encode([flat_text(t) for t in catalog.tables]) @ encoder.encode([QUESTION])[0]
        )
        assert found == pytest.approx(wanted)
        with pytest.raises(UsageError, match="unknown base 'x'"):
            make_scorer("x", tools)


def test_vectors_are_computed_once(tmp_path: Path) -> None:
    calls = []

    def compute() -> Any:
        calls.append(1)
        return np.array([[1.0, 2.0]], np.float32)

    for _ in range(2):
        assert remembered.remembered(tmp_path, ("a", "b"), compute).tolist() == [[1.0, 2.0]]
    assert len(calls) == 1
    remembered.remembered(tmp_path, ("a", "c"), compute)
    assert len(calls) == 2
    for file in (tmp_path / "baselines").iterdir():
        file.write_bytes(b"damaged")
    remembered.remembered(tmp_path, ("a", "b"), compute)
    assert len(calls) == 3
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the vectors"):
        remembered.remembered(tmp_path / "file", ("a",), compute)


def test_torch_that_cannot_be_loaded_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise OSError("libcudnn.so.9: cannot open shared object file")

    monkeypatch.setattr(packages, "find_spec", lambda name: object())
    monkeypatch.setattr(packages, "import_module", broken)
    with pytest.raises(ModelNotInstalled, match=r"dtr cannot load torch: libcudnn\.so\.9"):
        packages.transformers_for("dtr")
