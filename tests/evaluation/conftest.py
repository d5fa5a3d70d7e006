"""A bench of two small databases on plain sqlite3, without index or model."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from dbrag.catalog.catalog import Catalog
from dbrag.errors import ExecutionError
from dbrag.evaluation.methods import Tools
from dbrag.models.base import Prompt, Reply
from dbrag.types import (
    Answer,
    Candidate,
    Column,
    Execution,
    ForeignKey,
    ResultColumn,
    SearchResult,
    Table,
    TableRef,
)

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE "order" (id INTEGER PRIMARY KEY, customer_id INTEGER, total REAL);
INSERT INTO customer VALUES (1, 'Ada'), (2, 'Bob');
INSERT INTO "order" VALUES (1, 1, 9.5), (2, 1, 3.25), (3, 2, 1.0);
"""
ZOO = """
CREATE TABLE animal (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO animal VALUES (1, 'Emu');
"""
CUSTOMER = TableRef("shop", None, "customer")
ORDER = TableRef("shop", None, "order")
ANIMAL = TableRef("zoo", None, "animal")


def make_catalog() -> Catalog:
    key = ForeignKey(("customer_id",), CUSTOMER, ("id",))
    return Catalog(
        (
            Table(
                CUSTOMER,
                (Column("id", "INTEGER"), Column("name", "TEXT")),
                primary_key=("id",),
                sample_rows=(("1", "Ada"), ("2", "Bob"), ("3", "never shown")),
            ),
            Table(
                ORDER,
                (Column("id", "INTEGER"), Column("customer_id", "INTEGER"), Column("order total")),
                primary_key=("id",),
                foreign_keys=(key,),
                sample_rows=(("1", None, "9.5 */ x" + "y" * 200),),
            ),
            Table(ANIMAL, (Column("id", "INTEGER"), Column("name", "TEXT"))),
        )
    )


class SmallBench:
    """Ranks all tables in a fixed order; answers from a dict; runs SQL."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.order = [CUSTOMER, ANIMAL, ORDER]
        self.answers: dict[str, Answer | Exception] = {}
        self.asked: list[str] = []
        self.given: list[tuple[str, ...]] = []

    def search(
        self,
        question: str,
        top: int | None = None,
        k: int | None = None,
        *,
        rerank: bool | None = None,
    ) -> SearchResult:
        self.asked.append(question)
        if question == "fail":
            raise ExecutionError("no luck with 'Ada'")
        if question == "bug":
            raise KeyError("bug")
        parts = {CUSTOMER: 0.1, ANIMAL: 0.9, ORDER: 0.5}
        found = tuple(Candidate(t, 1.0, {"names": parts[t]}) for t in self.order[: top or 5])
        if not rerank:
            return SearchResult(question, found, 0.0)
        told = {
            "model": "test:parrot",
            "k": 3,
            "votes": 2,
            "valid": 1,
            "calls": 2,
            "seconds": 0.75,
            "tokens": {"prompt": 100, "cached": 0, "completion": 10},
            "left_out": {"tables": 0, "columns": 0, "rows": 0},
        }
        orders = {"prior": (ANIMAL, CUSTOMER, ORDER), "model": (ORDER, ANIMAL, CUSTOMER)}
        return SearchResult(question, found, 1.0, rerank=told, orders=orders)

    def ask(self, question: str, votes: int | None = None, tables: Sequence[str] = ()) -> Answer:
        self.asked.append(question)
        self.given.append(tuple(tables))
        answer = self.answers[question]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run_sql(self, source_name: str, statement: str) -> Execution:
        path = self.folder / f"{source_name}.sqlite"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            try:
                cursor = connection.execute(statement)
                rows = tuple(cursor.fetchall())
            except sqlite3.Error as error:
                raise ExecutionError(str(error)) from error
            columns = tuple(ResultColumn(d[0], "") for d in cursor.description)
            return Execution(columns, rows, 0.0)


class Parrot:
    """A chat model that says one thing and remembers what it was asked."""

    name, remote, context_tokens = "test:parrot", False, 4096

    def __init__(self, text: str) -> None:
        self.text = text
        self.prompts: list[Prompt] = []

    def sample(self, prompt: Prompt, n: int = 1, **options: object) -> list[Reply]:
        self.prompts.append(prompt)
        assert options["temperature"] == 0.0
        assert n == 1
        return [Reply(self.text, prompt_tokens=100, cached_tokens=40, completion_tokens=9)]

    def close(self) -> None:
        """Nothing to free."""


@pytest.fixture
def bench(tmp_path: Path) -> SmallBench:
    for name, script in (("shop", SHOP), ("zoo", ZOO)):
        with closing(sqlite3.connect(tmp_path / f"{name}.sqlite")) as connection:
            connection.executescript(script)
    return SmallBench(tmp_path)


@pytest.fixture
def make_tools(bench: SmallBench) -> Callable[[str], tuple[Tools, Parrot]]:
    def make(reply: str) -> tuple[Tools, Parrot]:
        model = Parrot(reply)
        return Tools(bench, make_catalog(), lambda: model), model

    return make
