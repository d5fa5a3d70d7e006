"""``bench/program_pool.py`` and ``program_weights.py`` on three databases, scripted models."""

from __future__ import annotations

import importlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dbrag
from dbrag.logistic import sigmoid
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.reasoning.program_signs import ProgramSigns
from dbrag.reasoning.source_doubt import SourceWeights
from dbrag.reasoning.verify import likelihood

BENCH = Path(__file__).parents[2] / "bench"
MODULES = (
    "common",
    "program_pool",
    "program_replay",
    "program_weights",
    "selection_weights",
    "source_doubt",
)

TABLES = {
    "zoo": ("animal", "weight"),
    "shop": ("product", "price"),
    "school": ("pupil", "grade"),
}


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    records = []
    for name, (table, column) in TABLES.items():
        (tmp_path / "spider/database" / name).mkdir(parents=True)
        file = tmp_path / "spider/database" / name / f"{name}.sqlite"
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(
                f"CREATE TABLE {table} ({table}_name TEXT, {column} INTEGER);"
                f"INSERT INTO {table} VALUES ('Emu', 1), ('Owl', 2), ('Yak', 2);"
            )
        for function, said in (("max", "highest"), ("min", "lowest")):
            records.append(
                {
                    "db_id": name,
                    "question": f"What is the {said} {column} of any {table}?",
                    "query": f"SELECT {function}({column}) FROM {table}",
                    "tables": [table],
                }
            )
    (tmp_path / "spider/train.json").write_text(json.dumps(records))
    return tmp_path


@pytest.fixture
def bench(pack: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The scripts, on this pack."""
    monkeypatch.setenv("DBRAG_BENCH", str(pack))
    monkeypatch.syspath_prepend(str(BENCH))
    for name in (*MODULES, "wrong_database"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in (*MODULES, "wrong_database"):
        sys.modules.pop(name, None)


def program(prompt: Prompt) -> str:
    """Always the maximum: right for half of the questions. The table is misspelt at first."""
    question = prompt.text()
    table, column = next(names for names in TABLES.values() if names[0] in question)
    if prompt.turns:
        return f"SELECT max({column}) FROM {table}"
    return f"SELECT max({column}) FROM nothing_of_the_kind"


def ask(bench: dict[str, Any], pack: Path, *more: str, model: FunctionModel) -> list[Any]:
    out = pack / ("wrong.jsonl" if "--wrong" in more else "pool.jsonl")
    arguments = ["--out", str(out), "--index", str(pack / "index"), "--limit", "6", *more]
    bench["program_pool"].main(arguments, chat_model=model, embedder=HashEmbedder())
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_a_pool_goes_on_after_a_cut_line(bench: dict[str, Any], pack: Path) -> None:
    lines = ask(bench, pack, "--variants", "A,S1,G", model=FunctionModel(program, logprob=-0.1))
    assert [line["id"] for line in lines] == [f"train-{i}" for i in range(6)]
    for line in lines:
        assert [attempt["v"] for attempt in line["attempts"]] == ["A", "S1", "G"]
        for attempt in line["attempts"]:
            assert [event["logprob"] for event in attempt["events"]] == [-0.1, -0.1]
    whole = (pack / "pool.jsonl").read_bytes()
    (pack / "pool.jsonl").write_bytes(whole[:-9])
    again = FunctionModel(program)
    assert len(ask(bench, pack, "--variants", "A", model=again)) == 6
    assert len(again.prompts) == 2  # the last question only, and its repair


def test_what_is_printed(
    bench: dict[str, Any], pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(bench, pack, model=FunctionModel(program, logprob=-0.1))
    ask(bench, pack, "--wrong", model=FunctionModel(program, logprob=-0.1))
    capsys.readouterr()
    arguments = [str(pack / "pool.jsonl"), "--wrong", str(pack / "wrong.jsonl"), "--folds", "3"]
    arguments += ["--index", str(pack / "index"), "--alone", str(pack / "alone")]
    bench["program_weights"].main(arguments, embedder=HashEmbedder())
    told = capsys.readouterr().out
    # the first reply never runs; repaired, every program says the maximum
    assert "A            6                0.0%   0.0%           100.0%  50.0%" in told
    for pick in ("first that runs", "vote", "likelihood-weighted vote", "oracle"):
        line = next(line for line in told.splitlines() if line.startswith(pick))
        assert line.split()[-1] == "50.0%"
    assert "programs written" in told
    assert "once more than they were" not in told
    assert "confidence of 6 answers to 6 questions" in told
    source = told[told.index("WEIGHTS = ProgramSigns(") : told.index("# reasoning/confidence.py")]
    pasted: dict[str, Any] = {"ProgramSigns": ProgramSigns}
    exec(source, pasted)
    assert all(map(np.isfinite, astuple(pasted["WEIGHTS"])))
    assert 0 < likelihood(ProgramSigns(), pasted["WEIGHTS"]) < 0.5  # wrong databases included
    assert "WEIGHTS = ConfidenceWeights(" in told


def test_doubt_of_sources_is_fitted_and_told(
    bench: dict[str, Any], pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pack / "spider/dev.json").write_bytes((pack / "spider/train.json").read_bytes())
    with dbrag.connect(
        pack / "spider/database", index=pack / "index", embedder=HashEmbedder()
    ) as db:
        db.index()
    bench["source_doubt"].main(["--index", str(pack / "index")], embedder=HashEmbedder())
    told = capsys.readouterr().out
    assert "over databases: 6 questions, source right 100.0%" in told
    pasted: dict[str, Any] = {"SourceWeights": SourceWeights}
    exec(told[told.index("WEIGHTS = SourceWeights(") :], pasted)
    assert all(map(np.isfinite, astuple(pasted["WEIGHTS"])))


def test_doubt_follows_what_was_seen(bench: dict[str, Any]) -> None:
    script = bench["source_doubt"]
    seen = [
        script.Chosen(f"db{i % 16}", right, logit, 0.5)
        for logit, rights in ((-1.0, 1), (1.0, 3))
        for i in range(160)
        for right in [i % 4 < rights]
    ]
    weights = script.fitted(seen)
    p = {logit: sigmoid(weights.bias + weights.share * logit) for logit in (-1.0, 1.0)}
    assert p == {-1.0: pytest.approx(0.25, abs=0.02), 1.0: pytest.approx(0.75, abs=0.02)}


def test_programs_of_a_wrongly_chosen_source_are_not_fitted_on(bench: dict[str, Any]) -> None:
    weights, replay = bench["program_weights"], bench["program_replay"]
    programs = {"A": replay.Written("k", False, ProgramSigns(), True)}
    missed = {"A": replay.Written("k", False, ProgramSigns(), False)}
    cases = [replay.Case("q", "db", None, True, programs)] * 5
    cases += [replay.Case("q", "db", None, True, missed, right_source=False)] * 5
    rules = weights.Rules(("A",), ("A",), 1, 5, 1e-3, 1.0)
    assert likelihood(ProgramSigns(), weights.fit_programs(cases, rules)) > 0.99


def test_wrong_programs_bring_the_likelihood_down(bench: dict[str, Any]) -> None:
    weights, replay = bench["program_weights"], bench["program_replay"]

    def cases(other: str | None) -> list[Any]:
        programs = {"A": replay.Written("k", False, ProgramSigns(), other is None)}
        return [replay.Case(f"q{i}", f"db{i}", other, True, programs) for i in range(10)]

    fitted = []
    for weight in (0.0, 0.5, 1.0):
        rules = weights.Rules(("A",), ("A",), 1, 5, 1e-3, weight)
        fitted.append(
            likelihood(ProgramSigns(), weights.fit_programs(cases(None) + cases("x"), rules))
        )
    assert fitted[0] > 0.99
    assert fitted[1:] == [pytest.approx(2 / 3, abs=1e-3), pytest.approx(1 / 2, abs=1e-3)]


def test_newtons_method_finds_the_weights_of_the_data(bench: dict[str, Any]) -> None:
    random = np.random.default_rng(1)
    x = np.column_stack([np.ones(20_000), random.normal(size=(20_000, 3))])
    wanted = np.array([-0.5, 2.0, -1.0, 0.0])
    y = (random.random(20_000) < 1 / (1 + np.exp(-x @ wanted))).astype(float)
    found = bench["program_weights"].logistic(x, y, np.ones(len(y)), 1.0)
    assert found == pytest.approx(wanted, abs=0.08)
    gradient = x.T @ (y - 1 / (1 + np.exp(-x @ found))) - np.array([1e-6, 1, 1, 1]) * found
    assert np.abs(gradient).max() < 1e-5


def test_out_of_fold_sees_nothing_of_the_own_database(bench: dict[str, Any]) -> None:
    weights, replay = bench["program_weights"], bench["program_replay"]
    cases = [
        replay.Case(
            f"q{i}",
            f"db{i // 5}",
            None,
            True,
            {"A": replay.Written("k", False, ProgramSigns(), i < 5)},
        )
        for i in range(20)
    ]
    rules = weights.Rules(("A",), ("A",), 1, 4, 1.0, 1.0)
    believed = weights.out_of_fold(cases, rules)
    assert len(believed) == 20
    # the right ones are all of db0: without it none is right, and with it 5 of 15
    assert all(believed[f"q{i}", None]["A"] < 0.01 for i in range(5))
    assert all(believed[f"q{i}", None]["A"] == pytest.approx(1 / 3, abs=0.01) for i in range(5, 20))


def test_votes_stop_when_decided_and_pass_over_what_is_missing(bench: dict[str, Any]) -> None:
    weights, replay = bench["program_weights"], bench["program_replay"]
    a, b, failed = replay.Written("a", False), replay.Written("b", False), replay.Written()
    rules = weights.Rules((), ("A", "B1", "S1", "S2"), 3, 2, 1.0, 1.0)

    def votes(believed: float = 0.5, **programs: Any) -> Any:
        case = replay.Case("q", "db", None, True, programs)
        return weights.voted(case, dict.fromkeys(programs, believed), rules)

    assert votes(0.6, A=a, B1=a, S1=b).written == 2
    assert votes(0.4, A=a, B1=a, S1=b).written == 3  # a certain third one could win
    assert votes(A=a, B1=b, S1=b, S2=a).written == 3
    assert [w.key for w in votes(A=a, S1=failed, S2=b).programs] == ["a", "b"]
    assert votes(A=failed, B1=failed, S1=failed, S2=a).tally is None


def test_mistakes(bench: dict[str, Any], pack: Path) -> None:
    ask(bench, pack, "--variants", "A", "--limit", "1", model=FunctionModel(program))
    index = ["--index", str(pack / "index")]
    with pytest.raises(SystemExit, match="no pool"):
        bench["program_weights"].main([str(pack / "none.jsonl"), *index], embedder=HashEmbedder())
    with pytest.raises(SystemExit, match="too few questions"):
        bench["program_weights"].main([str(pack / "pool.jsonl"), *index], embedder=HashEmbedder())
    line = json.loads((pack / "pool.jsonl").read_text())
    line["attempts"][0]["tables"] = ["zoo.gone"]
    (pack / "other.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(SystemExit, match=r"names a table 'zoo.gone' that the index"):
        bench["program_weights"].main([str(pack / "other.jsonl"), *index], embedder=HashEmbedder())
    with pytest.raises(SystemExit):
        bench["program_pool"].main(["--out", "x", "--wrong", "--variants", "G"])
