"""A command line in this process, over a database that is scripted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.interfaces.cli import main
from dbrag.settings import Settings
from dbrag.types import (
    Answer,
    AnswerWarning,
    Candidate,
    Execution,
    IndexReport,
    Program,
    ResultColumn,
    SearchResult,
    SourceReport,
    Step,
    TableRef,
    ValueMatch,
)

ORDERS = TableRef("shop", None, "orders")


def an_answer(question: str = "how many?", rows: int = 3, **more: Any) -> Answer:
    """An answered question with ``rows`` rows of a name and a number."""
    sql = "SELECT name, COUNT(*) FROM orders GROUP BY name"
    values: dict[str, Any] = {
        "question": question,
        "status": "answered",
        "text": "",
        "execution": Execution(
            (ResultColumn("name", "string"), ResultColumn("n", "int64")),
            tuple((f"row {i}", i) for i in range(rows)),
            0.1,
        ),
        "program": Program((Step("answer", sql),), sql, "sqlite", (ORDERS,)),
        "tables": (ORDERS,),
        "agreement": 2 / 3,
        "votes_requested": 3,
        "votes_valid": 3,
        "seconds": {"total": 1.5, "retrieve": 0.1, "reason": 1.3, "execute": 0.1},
        "tokens": {"prompt": 900, "cached": 0, "completion": 50},
        "model": "local:test",
        "trace": ({"stage": "retrieve", "candidates": [{"table": "shop.orders", "score": 2.0}]},),
    }
    return Answer(**{**values, **more})


@dataclass
class FakeDatabase:
    """Gives back ``result``, or raises it; remembers the calls."""

    settings: Settings
    result: Any
    events: tuple[dict[str, Any], ...] = ()
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    closed: bool = False

    def _give(self, call: str, default: Any, **arguments: Any) -> Any:
        self.calls.append((call, arguments))
        listener = arguments.get("on_event")
        for event in self.events if listener else ():
            listener(event)
        result = default if self.result is None else self.result
        if isinstance(result, BaseException):
            raise result
        return result(arguments) if callable(result) else result

    def ask(self, question: str, **arguments: Any) -> Any:
        limit = arguments.get("max_rows")
        default = an_answer(question, max_rows=50 if limit is None else limit)
        return self._give("ask", default, question=question, **arguments)

    def sql(self, statement: str, **arguments: Any) -> Any:
        default = an_answer(statement, agreement=None, votes_requested=0)
        return self._give("sql", default, statement=statement, **arguments)

    def search(self, question: str, **arguments: Any) -> Any:
        candidate = Candidate(
            ORDERS,
            1.25,
            {"bm25": 1.0, "join": 0.25},
            ({"name": "x", "n": 1},),
            (ValueMatch("name", "x"),),
            "name matches",
        )
        warning = AnswerWarning("source_skipped", "bad.db was skipped")
        result = SearchResult(question, (candidate,), 0.01, (warning,))
        return self._give("search", result, question=question, **arguments)

    def index(self, **arguments: Any) -> Any:
        reports = (
            SourceReport("shop", "built", "", 4, 1203, 1000, True, 0.5),
            SourceReport("old", "unchanged"),
            SourceReport("bad", "skipped", "not a database"),
        )
        return self._give("index", IndexReport(reports, 1.5, 120.0, 123_456), **arguments)

    def drop(self, name: str) -> Any:
        return self._give("drop", None, name=name)

    def status(self) -> Any:
        source = {
            "name": "shop",
            "location": "/data/shop.db",
            "status": "indexed",
            "tables": 4,
            "rows": 1203,
            "rows_indexed": 1000,
            "sampled": ["orders"],
            "indexed_at": "2026-01-01T00:00:00Z",
            "age_s": 7300.0,
        }
        state = {
            "schema": 1,
            "index": "/cache/index",
            "exists": True,
            "bytes": 123_456,
            "encoder": {"name": "local:mini", "sha256": "81" * 32},
            "sources": [source],
        }
        return self._give("status", state)

    def close(self) -> None:
        self.closed = True


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be exactly one JSON object."""
        assert self.out.endswith("}\n")
        assert "\n" not in self.out[:-1]
        value = json.loads(self.out)
        assert value["schema"] == 1
        return value


Cli = Callable[..., Done]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command line in this process."""

    def run(*arguments: str | Path) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return run


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDatabase:
    """Put a scripted database behind the commands; set ``result`` or ``events`` on it."""
    database = FakeDatabase(Settings(), None)

    def connect(*sources: str, settings: Settings) -> FakeDatabase:
        database.settings = settings
        return database

    # Not setattr: it would ask for the real one first, and so load every library.
    monkeypatch.setitem(vars(dbrag), "connect", connect)
    return database
