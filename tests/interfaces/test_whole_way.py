"""The whole way through the command line on real files, with the public fakes as models."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.database import connect
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.settings import Settings

SQL = "SELECT city, COUNT(*) AS n FROM customers GROUP BY city"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FunctionModel:
    """Put the fakes behind the commands; ``model.reply`` is what the model writes."""
    fake = FunctionModel(lambda _: str(fake.reply))
    fake.reply = f"```sql\n{SQL}\n```"  # type: ignore[attr-defined]

    def with_fakes(*, settings: Settings) -> Any:
        return connect(settings=settings, chat_model=fake, embedder=HashEmbedder())

    monkeypatch.setitem(vars(dbrag), "connect", with_fakes)
    return fake


def listing(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def test_from_index_to_answer(cli, model, small_shop: Path) -> None:
    before = listing(small_shop.parent)
    report = cli("index", "-s", small_shop, "--json").json
    assert [(s["name"], s["status"]) for s in report["sources"]] == [("small shop", "built")]
    again = cli("index", "-s", small_shop, "--json").json
    assert again["sources"][0]["status"] == "unchanged"

    state = cli("status", "-s", small_shop, "--json").json
    assert state["exists"]
    assert state["sources"][0]["status"] == "indexed"
    assert state["sources"][0]["rows"] >= 10

    found = cli("search", "-s", small_shop, "customers in each city", "--json").json
    names = [candidate["table"]["name"] for candidate in found["candidates"]]
    assert "customers" in names
    top = found["candidates"][0]
    assert top["score"] == pytest.approx(sum(top["parts"].values()), abs=0.01)

    answer = cli("ask", "-s", small_shop, "How many customers in each city?", "--json").json
    assert answer["status"] == "answered"
    assert sorted(map(str, answer["rows"])) == sorted(
        map(str, [[None, 1], ["Dublin", 1], ["Lisbon", 1]])
    )
    assert answer["tables"] == [{"source": "small shop", "schema": None, "name": "customers"}]
    assert answer["model"] == "test:function"
    assert listing(small_shop.parent) == before


def test_an_unindexed_source_is_indexed_first(cli, model, small_shop: Path) -> None:
    done = cli("ask", "-s", small_shop, "How many customers in each city?")
    assert done.code == 0
    assert done.err.startswith("indexing small shop (")
    assert "3 rows" in done.out
    second = cli("ask", "-s", small_shop, "How many customers in each city?")
    assert second.err == ""
    with closing(sqlite3.connect(small_shop)) as connection:
        connection.execute("INSERT INTO customers VALUES (4, 'Zoe', 'Porto')")
        connection.commit()
    third = cli("ask", "-s", small_shop, "How many customers in each city?")
    assert third.err.startswith("indexing small shop (")
    assert "4 rows" in third.out


def test_dry_run(cli, model, small_shop: Path) -> None:
    value = cli("ask", "-s", small_shop, "cities of customers?", "--dry-run", "--json").json
    assert value["sql"]
    assert value["rows"] == []


def test_trace_and_explain(cli, model, small_shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    done = cli("ask", "-s", small_shop, "cities of customers?", "--explain", "--trace", path)
    assert done.code == 0
    stages = [entry["stage"] for entry in json.loads(path.read_text())["trace"]]
    assert {"index", "retrieve", "select", "program", "vote"} <= set(stages)
    for stage in ("retrieve", "select", "program", "vote"):
        assert f"\n{stage}" in done.out


def test_tables_and_exclude(cli, model, small_shop: Path) -> None:
    done = cli("ask", "-s", small_shop, "cities?", "--tables", "nothing")
    assert done.code == 2
    assert "'nothing'" in done.err
    done = cli("search", "-s", small_shop, "cities?", "--exclude", "customers", "--json")
    assert "customers" not in [c["table"]["name"] for c in done.json["candidates"]]


@pytest.mark.parametrize(
    ("statement", "code", "error"),
    [
        ("DELETE FROM customers", 2, "refused"),
        ("SELECT 1; SELECT 2", 2, "refused"),
        ("WITH d AS (DELETE FROM orders RETURNING *) SELECT * FROM d", 2, "refused"),
        ("SELECT nam FROM customers", 1, "unknown_name"),
        ("SELECT * FROM costumers", 1, "unknown_name"),
    ],
)
def test_sql_is_guarded(cli, model, small_shop: Path, statement, code, error) -> None:
    before = small_shop.read_bytes()
    done = cli("sql", "-s", small_shop, statement, "--json")
    assert (done.code, done.json["error"]["code"]) == (code, error)
    assert small_shop.read_bytes() == before


def test_sql(cli, model, small_shop: Path) -> None:
    statement = 'SELECT "line no", price FROM "order lines" ORDER BY order_id, "line no"'
    value = cli("sql", "-s", small_shop, statement, "--json").json
    assert [row[0] for row in value["rows"]] == [1, 2, 1, 1]
    assert value["rows"][-1][1] is None
    out = cli("sql", "-s", small_shop, "SELECT name FROM customers", "--max-rows", "1").out
    assert "1 of 3 rows shown" in out


def test_drop(cli, model, small_shop: Path) -> None:
    cli("index", "-s", small_shop)
    done = cli("index", "-s", small_shop, "--drop", "small shop")
    assert done.code == 0, done.err
    state = cli("status", "-s", small_shop, "--json").json
    assert state["sources"][0]["status"] == "not indexed"
    assert cli("index", "-s", small_shop, "--drop", "nothing").code in (2, 3)
    assert small_shop.exists()


def test_a_source_that_is_gone_can_be_dropped(cli, model, small_shop: Path, tmp_path) -> None:
    index, gone = str(tmp_path / "i"), tmp_path / "gone.csv"
    gone.write_text("id,name\n1,Kabul\n")
    assert cli("index", "-s", small_shop, "-s", f"gone={gone}", "--index", index).code == 0
    gone.unlink()
    told = cli("search", "--index", index, "customers")
    assert told.code == 3
    assert f"try: a source that is gone: dbrag index --index {index} --drop NAME" in told.err
    assert cli("index", "--index", index, "--drop", "gone").code == 0
    assert cli("search", "--index", index, "customers").code == 0


class TestBadInput:
    """Each is one clear line, or it works."""

    def test_no_such_file(self, cli, model, tmp_path: Path) -> None:
        done = cli("ask", "-s", tmp_path / "none.db", "q", "--json")
        assert (done.code, done.json["error"]["code"]) == (3, "source_not_found")

    @pytest.mark.parametrize("content", [b"just text", b"SQLite format 3\0" + b"\xff" * 500])
    def test_not_a_database(self, cli, model, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "bad.db"
        path.write_bytes(content)
        done = cli("ask", "-s", path, "how many?", "--json")
        assert (done.code, done.json["error"]["code"]) == (3, "source_unreadable")
        assert "bad.db" in done.json["error"]["message"]
        assert path.read_bytes() == content

    def test_an_empty_database(self, cli, model, tmp_path: Path) -> None:
        path = tmp_path / "empty.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (a)")
            connection.execute("DROP TABLE t")
        done = cli("ask", "-s", path, "how many?", "--json")
        assert (done.code, done.json["error"]["code"]) == (3, "source_unreadable")
        assert "has no tables" in done.json["error"]["message"]

    def test_an_empty_folder(self, cli, model, tmp_path: Path) -> None:
        folder = tmp_path / "nothing"
        folder.mkdir()
        assert cli("index", "-s", folder).code == 3

    def test_a_bad_file_among_good_ones(self, cli, model, small_shop: Path) -> None:
        (small_shop.parent / "bad.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 500)
        report = cli("index", "-s", small_shop.parent, "--json").json
        states = {source["name"]: source["status"] for source in report["sources"]}
        assert states == {"small shop": "built", "bad": "skipped"}
        answer = cli("ask", "-s", small_shop.parent, "customers in each city?", "--json")
        assert answer.code == 0
        assert any("bad" in w["message"] for w in answer.json["warnings"])

    def test_a_long_question(self, cli, model, small_shop: Path) -> None:
        done = cli("ask", "-s", small_shop, "why " * 25_000, "--json")
        assert done.code == 2
        assert len(done.json["error"]["message"]) < 500

    def test_a_locked_database(self, cli, model, small_shop: Path) -> None:
        with closing(sqlite3.connect(small_shop, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            done = cli("sql", "-s", small_shop, "SELECT 1 FROM customers", "--json")
            connection.execute("ROLLBACK")
        if done.code:
            assert (done.code, done.json["error"]["code"]) == (3, "source_busy")

    def test_odd_names_and_cells(self, cli, model, tmp_path: Path) -> None:
        path = tmp_path / "odd #1.db"
        columns = ", ".join(f'"column {i}"' for i in range(500))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"CREATE TABLE wide ({columns})")
            connection.execute('CREATE TABLE "表 ""x"" select" ("名字" TEXT, "from" BLOB)')
            connection.execute("CREATE TABLE big (cell TEXT)")
            connection.execute("INSERT INTO big VALUES (?)", ("x" * 10_000_000,))
            connection.execute(
                'INSERT INTO "表 ""x"" select" VALUES (?, ?)', ("李雷 \x1b[31m", b"\x00\xff")
            )
            connection.commit()
        assert cli("index", "-s", path).code == 0
        statement = 'SELECT "名字", "from" FROM "表 ""x"" select"'
        value = cli("sql", "-s", path, statement, "--json").json
        assert value["rows"] == [["李雷 \x1b[31m", "AP8="]]
        assert "\x1b" not in cli("sql", "-s", path, statement).out
        assert len(cli("sql", "-s", path, "SELECT cell FROM big", "--json").json["rows"][0][0]) == (
            10_000_000
        )
        model.reply = "SELECT COUNT(*) FROM wide"
        answer = cli("ask", "-s", path, "how many rows has wide?", "--json")
        assert answer.json["rows"] == [[0]]
        assert [p.name for p in tmp_path.glob("odd*")] == ["odd #1.db"]

    @pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
    @pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root reads all")
    def test_no_permission(self, cli, model, small_shop: Path) -> None:
        small_shop.chmod(0)
        done = cli("sql", "-s", small_shop, "SELECT 1", "--json")
        assert (done.code, done.json["error"]["code"]) == (3, "source_unreadable")

    def test_an_index_that_cannot_be_written(self, cli, model, small_shop: Path) -> None:
        blocked = small_shop.parent / "file"
        blocked.write_text("")
        done = cli("index", "-s", small_shop, "--index", blocked / "index", "--json")
        assert (done.code, done.json["error"]["code"]) == (3, "index")
        assert blocked.read_text() == ""
