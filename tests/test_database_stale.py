"""An index that is out of date: brought up to date before the answer, or said so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dbrag import scope
from dbrag.errors import IndexLocked
from tests.conftest import connect


def test_a_changed_source_is_indexed_again_before_the_answer(small_shop: Path) -> None:
    events: list[Any] = []
    replies = ["SELECT COUNT(*) FROM customers", "SELECT COUNT(*) FROM suppliers"]
    with connect(small_shop, *replies, votes=1) as db:
        db.ask("How many customers?", on_event=events.append)
        assert events[0]["stage"] == "index"
        with closing(sqlite3.connect(small_shop)) as connection:
            connection.execute("CREATE TABLE suppliers (supplier_id INTEGER, name TEXT)")
            connection.execute("INSERT INTO suppliers VALUES (1, 'Ann')")
            connection.commit()
        events.clear()
        answer = db.ask("How many suppliers are there?", on_event=events.append)
    assert events[0]["stage"] == "index"
    assert answer.execution is not None
    assert answer.execution.rows == ((1,),)


def test_a_file_that_became_unreadable_is_not_indexed_again_each_time(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a", "b"):
        with closing(sqlite3.connect(folder / f"{name}.db")) as connection:
            connection.execute("CREATE TABLE t (x)")
            connection.commit()
    with connect(folder, index=tmp_path / "index") as db:
        db.search("t")
    (folder / "b.db").write_bytes(b"no database at all")
    events: list[Any] = []
    with connect(folder, index=tmp_path / "index") as db:
        found = db.search("t", on_event=events.append)
    assert events == []
    assert "source_skipped" in [warning.code for warning in found.warnings]
    # What is left of it in the index takes no part: nothing could be run there.
    assert [str(candidate.table) for candidate in found.candidates] == ["a.t"]


class _Server:
    """A SQLite file that calls itself a server: its location is a URL."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.location = f"postgresql://reader@db.example/{inner.name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _add_customer(
    path: Path, sql: str = "INSERT INTO customers VALUES (9, 'Zoe', 'Porto')"
) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


def test_a_server_under_writes_is_not_indexed_at_every_question(small_shop: Path) -> None:
    with connect(small_shop, index=small_shop.parent / "index") as db:
        db.sources = (_Server(db.sources[0]),)  # type: ignore[assignment]
        db.index()
        _add_customer(small_shop)
        late = db.search("customers in Porto")
        assert [w.code for w in late.warnings] == ["index_stale"]
        assert "refresh_s" in late.warnings[0].message
        assert db.sql("SELECT COUNT(*) FROM customers").execution.rows == ((4,),)  # type: ignore[union-attr]


def test_a_new_column_of_a_server_is_found_at_once(small_shop: Path) -> None:
    with connect(small_shop, index=small_shop.parent / "index") as db:
        db.sources = (_Server(db.sources[0]),)  # type: ignore[assignment]
        db.index()
        _add_customer(small_shop, "ALTER TABLE customers ADD COLUMN phone TEXT")
        scope._reflected.clear()
        assert not db.search("phone of a customer").warnings
        names = {c.name for t in db.opened_index().catalog.tables for c in t.columns}
        assert "phone" in names


def test_while_another_process_indexes_the_old_index_answers(
    small_shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: Any, **__: Any) -> None:
        raise IndexLocked("another process (7) is indexing here")

    with connect(small_shop, index=small_shop.parent / "index") as db:
        db.index()
        _add_customer(small_shop)
        monkeypatch.setattr(db, "index", locked)
        (warning,) = db.search("customers").warnings
        assert warning.code == "index_stale"
        assert "another process" in warning.message


def test_without_any_index_the_lock_of_another_process_is_an_error(
    small_shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: Any, **__: Any) -> None:
        raise IndexLocked("another process (7) is indexing here")

    with connect(small_shop, index=small_shop.parent / "index") as db:
        monkeypatch.setattr(db, "index", locked)
        with pytest.raises(IndexLocked):
            db.search("customers")
