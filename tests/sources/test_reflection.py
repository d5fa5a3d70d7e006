"""Schemas as declared: types, keys, views, virtual tables, difficult names."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from dbrag.errors import SourceUnreadable
from dbrag.sources import open_sources
from dbrag.sources.statements import HIDDEN
from dbrag.types import ForeignKey, TableRef

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dbrag.types import Table

    Make = Callable[..., Path]
    Reflect = Callable[[str], dict[str, Table]]


@pytest.fixture
def reflect(make_db: Make) -> Reflect:
    def run(script: str) -> dict[str, Table]:
        (source,), _ = open_sources([str(make_db("db.sqlite", script))])
        tables = source.reflect()
        source.close()
        assert [t.ref.name for t in tables] == sorted(t.ref.name for t in tables)
        return {table.ref.name: table for table in tables}

    return run


def ref(name: str) -> TableRef:
    return TableRef("db", None, name)


def test_types_are_kept_as_written(reflect: Reflect) -> None:
    table = reflect(
        "CREATE TABLE t (a, b Varchar(20), c decimal(10, 2) NOT NULL, d my own type, "
        "e INTEGER PRIMARY KEY, "
        "g INT GENERATED ALWAYS AS (c * 2) VIRTUAL, h TEXT AS (b || 'x') STORED)"
    )["t"]
    assert [(c.name, c.type) for c in table.columns] == [
        ("a", ""),
        ("b", "Varchar(20)"),
        ("c", "decimal(10, 2)"),
        ("d", "my own type"),
        ("e", "INTEGER"),
        ("g", "INT"),
        ("h", "TEXT"),
    ]
    assert [c.nullable for c in table.columns][:5] == [True, True, False, True, False]
    assert table.primary_key == ("e",)


def test_composite_keys_in_their_own_order(reflect: Reflect) -> None:
    tables = reflect(
        "CREATE TABLE p (a, b, c, PRIMARY KEY (c, a));"
        "CREATE TABLE q (x, y, FOREIGN KEY (y, x) REFERENCES p (c, a));"
        "CREATE TABLE r (m, n, FOREIGN KEY (m, n) REFERENCES p)"
    )
    assert tables["p"].primary_key == ("c", "a")
    assert tables["q"].foreign_keys == (ForeignKey(("y", "x"), ref("p"), ("c", "a")),)
    assert tables["r"].foreign_keys == (ForeignKey(("m", "n"), ref("p"), ("c", "a")),)


def test_keys_without_target_columns_and_in_other_letter_case(reflect: Reflect) -> None:
    tables = reflect(
        "CREATE TABLE Parent (Id INTEGER PRIMARY KEY);"
        "CREATE TABLE child (a REFERENCES PARENT, b REFERENCES parent (ID), c REFERENCES gone (id),"
        "  d REFERENCES parent (missing), e REFERENCES child (a))"
    )
    assert tables["child"].foreign_keys == (
        ForeignKey(("a",), ref("Parent"), ("Id",)),
        ForeignKey(("b",), ref("Parent"), ("Id",)),
        ForeignKey(("e",), ref("child"), ("a",)),
    )


def test_a_key_to_a_table_without_primary_key_is_dropped(reflect: Reflect) -> None:
    tables = reflect("CREATE TABLE p (a); CREATE TABLE q (x REFERENCES p)")
    assert tables["q"].foreign_keys == ()


def test_views_and_internal_tables(reflect: Reflect) -> None:
    tables = reflect(
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT);"
        "INSERT INTO t (a) VALUES ('x'); ANALYZE;"
        "CREATE VIEW v AS SELECT a AS b, count(*) AS n FROM t GROUP BY a"
    )
    assert set(tables) == {"t", "v"}
    assert tables["v"].kind == "view"
    assert [(c.name, c.type) for c in tables["v"].columns] == [("b", "TEXT"), ("n", "")]


def test_a_broken_view_is_kept_and_says_why(reflect: Reflect) -> None:
    tables = reflect(
        "CREATE TABLE t (a); CREATE TABLE u (a); CREATE VIEW v AS SELECT a FROM u;"
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE name = 'u'"
    )
    assert tables["v"].columns == ()
    assert tables["v"].kind == "view"
    assert "no such table" in tables["v"].comment


def test_difficult_names(reflect: Reflect) -> None:
    names = [
        "order",
        "Dashboard-data",
        "two words",
        'quo"te',
        "it's",
        "客户",
        "1st",
        "a.b",
        "[x]",
        "%s",
    ]
    script = ";".join(
        'CREATE TABLE "{0}" ("{0}" PRIMARY KEY, "select" REFERENCES "{1}")'.format(
            name.replace('"', '""'), names[i - 1].replace('"', '""')
        )
        for i, name in enumerate(names)
    )
    tables = reflect(script)
    assert set(tables) == set(names)
    for i, name in enumerate(names):
        assert [c.name for c in tables[name].columns] == [name, "select"]
        other = names[i - 1]
        assert tables[name].foreign_keys == (ForeignKey(("select",), ref(other), (other,)),)


def test_five_hundred_columns(reflect: Reflect) -> None:
    columns = ", ".join(f"column_{i} INT" for i in range(500))
    assert len(reflect(f"CREATE TABLE wide ({columns})")["wide"].columns) == 500


def test_full_text_tables_show_their_columns_but_not_their_storage(reflect: Reflect) -> None:
    tables = reflect(
        "CREATE VIRTUAL TABLE docs USING fts5 (title, body); CREATE TABLE t (a);"
        "CREATE VIRTUAL TABLE boxes USING rtree (id, x0, x1)"
    )
    assert set(tables) == {"docs", "t", "boxes"}
    assert [(c.name, c.comment) for c in tables["docs"].columns] == [
        ("title", ""),
        ("body", ""),
        ("docs", HIDDEN),
        ("rank", HIDDEN),
    ]


def test_virtual_tables_can_be_read_through_the_sealed_connection(make_db: Make) -> None:
    path = make_db(
        script="CREATE VIRTUAL TABLE docs USING fts5 (title);"
        "INSERT INTO docs VALUES ('red fox'), ('blue whale');"
        "CREATE VIRTUAL TABLE boxes USING rtree (id, x0, x1); INSERT INTO boxes VALUES (1, 0, 5)"
    )
    (source,), _ = open_sources([str(path)])
    with source.session() as session:
        session.execute("SELECT title FROM docs WHERE docs MATCH 'fox' ORDER BY rank")
        assert session.fetch(5) == [("red fox",)]
        session.execute("SELECT id FROM boxes WHERE x1 > 4")
        assert session.fetch(5) == [(1,)]
    table = next(t for t in source.reflect() if t.ref.name == "docs")
    with source.scan(table, 5) as rows:
        assert list(rows) == [("red fox", None, None), ("blue whale", None, None)]


def test_a_virtual_table_without_its_module_is_left_out_and_logged(
    reflect: Reflect, caplog: pytest.LogCaptureFixture
) -> None:
    tables = reflect(
        "CREATE TABLE t (a); PRAGMA writable_schema = ON;"
        "INSERT INTO sqlite_master VALUES ('table', 'odd', 'odd', 0,"
        " 'CREATE VIRTUAL TABLE odd USING no_such_module (a)')"
    )
    assert set(tables) == {"t"}
    assert "no such module: no_such_module" in caplog.text


def test_no_tables_is_a_clear_error(make_db: Make) -> None:
    (source,), _ = open_sources([str(make_db(script="PRAGMA user_version = 1"))])
    with pytest.raises(SourceUnreadable, match="it has no tables"):
        source.reflect()


def test_a_schema_from_a_newer_program_is_read_again(make_db: Make) -> None:
    path = make_db()
    (source,), _ = open_sources([str(path)])
    assert [t.ref.name for t in source.reflect()] == ["t"]
    with sqlite3.connect(path) as writer:
        writer.execute("CREATE TABLE new (a)")
    writer.close()
    assert [t.ref.name for t in source.reflect()] == ["new", "t"]
