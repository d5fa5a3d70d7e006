"""The whole way of a question over a real SQLite file, with a scripted model."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import dbrag
from dbrag.errors import (
    ExecutionError,
    Refused,
    SourceError,
    SourceNotFound,
    UnknownName,
    UsageError,
)
from dbrag.models.testing import FunctionModel, HashEmbedder
from tests.conftest import connect


def test_a_right_program_is_answered_by_the_engine(small_shop: Path) -> None:
    with connect(small_shop, "SELECT COUNT(*) AS n FROM customers", votes=1) as db:
        answer = db.ask("How many customers are there?")
    assert answer.status == "answered"
    assert answer.execution is not None
    assert answer.execution.rows == ((3,),)
    assert answer.text == "3"
    assert answer.agreement is None
    assert [str(ref) for ref in answer.tables] == ["small shop.customers"]
    assert answer.table is not None
    assert answer.table.to_pydict() == {"n": [3]}
    assert answer.to_pandas()["n"].tolist() == [3]
    assert set(answer.seconds) == {"total", "retrieve", "reason", "execute"}


def test_the_json_has_every_key_of_the_contract(small_shop: Path) -> None:
    with connect(small_shop, "SELECT * FROM customers", votes=1, max_rows=2) as db:
        data = db.ask("List all customers").to_dict()
    assert list(data) == [
        "schema", "question", "status", "columns", "rows", "row_count", "truncated", "text",
        "steps", "sql", "dialect", "tables", "agreement", "confidence", "votes", "warnings",
        "evidence", "readings", "error",
        "seconds", "tokens", "model",
    ]  # fmt: skip
    assert (data["row_count"], len(data["rows"]), data["truncated"]) == (3, 2, True)
    json.dumps(data)


def test_an_unknown_column_goes_back_to_the_model_with_the_nearest(small_shop: Path) -> None:
    db = connect(
        small_shop,
        "SELECT title FROM customers",
        "```sql\nSELECT name FROM customers ORDER BY name;\n```",
        votes=1,
    )
    with db:
        answer = db.ask("What are the names of the customers?")
        (second,) = db.chat_model().prompts[1:]  # type: ignore[attr-defined]
    assert answer.status == "answered"
    assert "title" in second.turns[-1][1]
    assert answer.execution is not None
    assert len(answer.execution.rows) == 3


def test_a_wrong_alias_and_another_spelling_are_mended_and_told(small_shop: Path) -> None:
    sql = (
        "SELECT T2.name FROM customers AS T1 JOIN orders AS T2 "
        "ON T1.customer_id = T2.customer_id WHERE T1.city = 'lisbon' LIMIT 1"
    )
    with connect(small_shop, sql, votes=1) as db:
        answer = db.ask("Which customer from lisbon has an order?")
    assert answer.execution is not None
    assert answer.execution.rows == (("Anna Costa",),)
    told = [warning.message for warning in answer.warnings if warning.code == "mended"]
    assert told
    assert "'lisbon' read as 'Lisbon'" in told[0]


def test_no_row_stays_no_row(small_shop: Path) -> None:
    sql = "SELECT name FROM customers WHERE city = 'Atlantis'"
    with connect(small_shop, sql, sql, votes=1) as db:
        answer = db.ask("Which customers live in Atlantis?")
    assert answer.status == "answered"
    assert answer.text.startswith("No row matches. (not sure: ")
    assert answer.to_dict()["rows"] == []
    assert "empty_result" in [warning.code for warning in answer.warnings]


def test_votes_stop_when_decided_and_agreement_is_told(small_shop: Path) -> None:
    count = "SELECT COUNT(*) FROM customers"
    with connect(small_shop, count, "SELECT COUNT(name) FROM customers", votes=3) as db:
        answer = db.ask("How many customers are there?")
    assert (answer.votes_requested, answer.votes_valid, answer.agreement) == (3, 2, 1.0)


def test_a_split_vote_is_told(small_shop: Path) -> None:
    replies = [
        "SELECT 1 FROM customers",
        "SELECT name FROM customers",
        "SELECT city FROM customers",
    ]
    with connect(small_shop, *replies, votes=3) as db:
        answer = db.ask("List the customers")
    assert answer.agreement == pytest.approx(1 / 3)
    assert "votes_split" in [warning.code for warning in answer.warnings]
    assert "do not agree" in answer.text


def test_a_program_that_never_runs_is_a_failure_not_an_answer(small_shop: Path) -> None:
    model = FunctionModel(lambda prompt: f"SELECT nothing{len(prompt.turns)} FROM customers")
    with dbrag.connect(small_shop, chat_model=model, embedder=HashEmbedder(), votes=1) as db:
        answer = db.ask("How many customers are there?")
    assert answer.status == "failed"
    assert answer.exit_code == 1
    assert answer.error is not None
    assert answer.error["code"] == "unknown_name"
    assert answer.to_dict()["rows"] == []


@pytest.mark.parametrize(
    "reply",
    [
        "DROP TABLE customers",
        "DELETE FROM customers",
        "SELECT 1; DELETE FROM customers",
        "WITH d AS (DELETE FROM customers RETURNING *) SELECT * FROM d",
        "PRAGMA writable_schema = 1",
        "ATTACH DATABASE 'x.db' AS x",
        "SELECT load_extension('x')",
    ],
)
def test_a_hijacked_model_changes_nothing(small_shop: Path, reply: str) -> None:
    before = hashlib.sha256(small_shop.read_bytes()).hexdigest()
    files = sorted(small_shop.parent.iterdir())
    model = FunctionModel(lambda _: reply)
    with dbrag.connect(small_shop, chat_model=model, embedder=HashEmbedder(), votes=1) as db:
        answer = db.ask("Remove all customers")
    assert answer.status in ("failed", "answered")
    if answer.status == "answered":
        assert answer.sql is not None
        assert "DELETE" not in answer.sql
    assert hashlib.sha256(small_shop.read_bytes()).hexdigest() == before
    assert [p for p in sorted(small_shop.parent.iterdir()) if p not in files] in (
        [],
        [small_shop.parent / "cache"],
    )


def test_dry_run_writes_a_program_and_runs_nothing(small_shop: Path) -> None:
    with connect(small_shop, "SELECT COUNT(*) FROM customers") as db:
        answer = db.ask("How many customers?", dry_run=True)
    assert answer.execution is None
    assert answer.sql == "SELECT COUNT(*) FROM customers"
    assert answer.status == "answered"


def test_tables_and_exclude(small_shop: Path) -> None:
    with connect(small_shop, "SELECT COUNT(*) FROM orders", votes=1) as db:
        db.ask("How many customers?", tables=["orders"])
        (prompt,) = db.chat_model().prompts  # type: ignore[attr-defined]
        assert "CREATE TABLE orders" in prompt.context
        assert "CREATE TABLE customers" not in prompt.context
        found = db.search("How many customers?", exclude=["customers"])
        assert "customers" not in [candidate.table.name for candidate in found.candidates]
        with pytest.raises(UsageError, match="no table 'custmers'") as error:
            db.search("x", tables=["custmers"])
        assert "customers" in error.value.hint


def test_sql_runs_on_the_source_that_is_named(small_shop: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE customers (customer_id INTEGER, name TEXT, city TEXT)")
        connection.commit()
    with dbrag.connect(f"a={small_shop}", f"b={other}", embedder=HashEmbedder()) as db:
        with pytest.raises(UsageError, match="2 sources could run this"):
            db.sql("SELECT COUNT(*) FROM customers")
        for source, count in (("a", 3), ("b", 0)):
            answer = db.sql("SELECT COUNT(*) FROM customers", source=source)
            assert answer.to_dict()["rows"] == [[count]]
            assert answer.tables[0].source == source
        with pytest.raises(SourceNotFound, match="no source is named") as error:
            db.sql("SELECT COUNT(*) FROM customers", source="c")
        assert error.value.hint == "known sources: a, b"


def test_sql_goes_through_the_guard(small_shop: Path) -> None:
    with connect(small_shop) as db:
        assert db.sql("SELECT COUNT(*) FROM customers").to_dict()["rows"] == [[3]]
        with pytest.raises(Refused):
            db.sql("DELETE FROM customers")
        with pytest.raises(UnknownName):
            db.sql("SELECT x FROM customers")
        with pytest.raises(ExecutionError):
            db.sql("SELECT * FROM nothing")


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question_is_refused(small_shop: Path, question: str) -> None:
    with connect(small_shop) as db, pytest.raises(UsageError, match="empty"):
        db.ask(question)


def test_a_question_of_100_000_characters_is_refused_with_its_size(small_shop: Path) -> None:
    with connect(small_shop) as db, pytest.raises(UsageError, match="100,000 characters"):
        db.ask("a" * 100_000)


def test_an_empty_database_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    with connect(path) as db, pytest.raises(SourceError, match="no tables"):
        db.ask("How many customers?")


def test_no_source_and_a_missing_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no source"):
        dbrag.connect()
    with pytest.raises(SourceError, match="missing"):
        dbrag.connect(tmp_path / "missing.db")


def test_it_works_inside_a_running_event_loop(small_shop: Path) -> None:
    async def notebook() -> dbrag.Answer:
        with connect(small_shop, "SELECT COUNT(*) FROM customers", votes=1) as db:
            return db.ask("How many customers?")

    assert asyncio.run(notebook()).status == "answered"


def test_a_remote_model_is_told(small_shop: Path) -> None:
    model = FunctionModel(lambda _: "SELECT 1 FROM customers", remote=True)
    with dbrag.connect(small_shop, chat_model=model, embedder=HashEmbedder(), votes=1) as db:
        answer = db.ask("Anything?")
    assert "remote_model" in [warning.code for warning in answer.warnings]


def test_what_was_odd_in_files_is_told_to_their_readers(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "log.jsonl").write_text('{"a":1}\n{"a":2}\nnot json\n')
    (folder / "whole.csv").write_text("a,b\n1,2\n")
    for i in range(12):
        (folder / f"junk{i:02}.csv").write_bytes(b"\x00\x01\x02\xff" * 50)
    with connect(
        folder, "SELECT SUM(a) FROM log", votes=1, index=tmp_path / "index", cache=tmp_path / "c"
    ) as db:
        report = db.index()
        told = {w.message for w in report.warnings if w.code == "source_skipped"}
        assert len(told) == 11  # ten by name, then how many more
        assert any("junk00.csv was skipped: is no text" in message for message in told)
        assert any(message.startswith("2 more were skipped") for message in told)
        [entry] = db.status()["sources"]
        assert len(entry["left_out"]) == 12
        notes = {one["table"]: one for one in entry["notes"]}
        assert "left out: 3" in notes["log"]["odd"][0]
        assert notes["whole"]["odd"] == []
        assert "delimiter ','" in notes["whole"]["notes"]
        for answer in (db.sql("SELECT SUM(a) FROM log"), db.ask("What is the sum of a?")):
            [odd] = [w.message for w in answer.warnings if w.code == "file_read"]
            assert "data.log" in odd
            assert "no valid JSON" in odd
        sound = db.sql("SELECT b FROM whole")
        assert "file_read" not in [warning.code for warning in sound.warnings]


def test_of_several_sources_the_one_with_the_table_says_what_is_wrong(tmp_path: Path) -> None:
    for name, table in (("a", "one"), ("b", "two"), ("c", "three")):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as connection:
            connection.execute(f"CREATE TABLE {table} (x)")
            connection.commit()
    with connect(tmp_path, index=tmp_path / "index") as db:
        with pytest.raises(UnknownName, match="no such column: 'y'"):
            db.sql("SELECT y FROM two")
        with pytest.raises(UnknownName, match="no such table: 'four'"):
            db.sql("SELECT y FROM four")


def test_a_source_that_cannot_be_read_says_why_before_there_is_an_index(tmp_path: Path) -> None:
    path = tmp_path / "junk.csv"
    path.write_bytes(bytes(range(256)) * 20)
    with connect(path, index=tmp_path / "index", cache=tmp_path / "c") as db:
        for _ in range(2):
            with pytest.raises(SourceError, match="is no text"):
                db.search("anything")


def test_an_answer_tells_what_its_program_does(small_shop: Path) -> None:
    sql = "SELECT city, COUNT(*) AS n FROM customers WHERE name LIKE 'A%' GROUP BY city"
    with connect(small_shop, sql, *["no SQL"] * 4, votes=1) as db:
        told = db.ask("How many customers by city?").to_dict()["evidence"]
        direct = db.sql(sql).to_dict()["evidence"]
        failed = db.ask("How many?", tables=["customers"]).to_dict()
    assert told["tables"][0]["rows"] == 3
    assert told["filters"] == ["customers.name starts with 'A'"]
    assert told["groups"] == ["customers.city"]
    assert {**direct, "tables": told["tables"]} == told
    assert (failed["status"], failed["evidence"]) == ("failed", None)


def test_of_many_sources_that_fit_twenty_are_named(tmp_path: Path) -> None:
    for n in range(25):
        with closing(sqlite3.connect(tmp_path / f"s{n:02}.db")) as connection:
            connection.execute("CREATE TABLE t (a)")
    with (
        connect(tmp_path, index=tmp_path / "i") as db,
        pytest.raises(UsageError, match=r"25 sources .*s18, s19 and 5 more$"),
    ):
        db.sql("SELECT 1")
