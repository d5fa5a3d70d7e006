"""What the model reads: a snapshot, and nothing in the data can change its shape."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.notes import annotated, notes_of
from dbrag.catalog.profile import _profile
from dbrag.options import ColumnNote, TableNote
from dbrag.reasoning import prompts
from dbrag.reasoning.prompts import identifier, literal, program_prompt, table_lines
from dbrag.reasoning.table_text import Detail
from dbrag.retrieval.prompts import DETAILS, Shown, table_text
from dbrag.types import Column, ForeignKey, Table, TableRef, ValueMatch

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

STORES = Table(
    TableRef("shop", None, "stores"),
    (Column("store_id", "INTEGER"), Column("city", "TEXT", comment="where it stands")),
    primary_key=("store_id",),
    row_count=2,
    sample_rows=(("1", "Lisbon"), ("2", None), ("3", "not shown")),
)
LINES = Table(
    TableRef("shop", None, "order lines"),
    (Column("order", "INTEGER"), Column("line no"), Column("store_id", "INTEGER")),
    primary_key=("order", "line no"),
    foreign_keys=(
        ForeignKey(("store_id",), STORES.ref, ("store_id",)),
        ForeignKey(("order",), TableRef("shop", None, "orders"), ("order_id",)),
    ),
    row_count=0,
)


def test_the_prompt(snapshot: SnapshotAssertion) -> None:
    prompt = program_prompt(
        "How many lines did the store in Lisbon sell?",
        [STORES, LINES],
        dialect="sqlite",
        matches={STORES.ref: (ValueMatch("city", "Lisbon"),)},
    )
    assert prompt.text() == snapshot


def test_the_prompt_with_the_users_notes(snapshot: SnapshotAssertion) -> None:
    notes = {
        "shop.stores": TableNote(
            description="where customers can walk in",
            synonyms=("branches", "outlets"),
            columns={
                "store_id": ColumnNote("number of the branch"),
                "city": ColumnNote(synonyms=("town",)),
            },
        )
    }
    prompt = program_prompt(
        "How many branches are there in each town?",
        [notes_of(notes, Catalog((STORES,))).apply(STORES)],
        dialect="sqlite",
        matches={},
    )
    assert prompt.text() == snapshot


def test_the_prompt_with_similar_questions(snapshot: SnapshotAssertion) -> None:
    prompt = program_prompt(
        "How many stores are in Rome?",
        [STORES],
        dialect="sqlite",
        matches={},
        solved=[("How many stores are in Oslo?", "SELECT COUNT(*)\nFROM stores")],
    )
    assert prompt.text() == snapshot


NOISY = Table(
    TableRef("shop", None, "sales"),
    (
        Column("city", "TEXT", comment="where it was"),
        Column("day", "TEXT"),
        Column("price", "TEXT"),
        Column("paid", "TEXT"),
        Column("till", "TEXT"),
    ),
    profile=(
        _profile("city", ["Paris", "paris ", "PARIS", "Rome"]),
        _profile("day", ["05.03.2024", "2024-03-06", "25.12.2023", "N/A"]),
        _profile("price", ["€1,200.50", "12.5", "1.200,50 €", "9"]),
        _profile("paid", ["yes", "Y", "1", "no"]),
        _profile("till", ["A1", "A2", "B1", "B2"]),
    ),
    sample_rows=(("Paris", "05.03.2024", "€1,200.50", "yes", "A1"),),
    row_count=4,
)


def test_the_prompt_of_noisy_texts(snapshot: SnapshotAssertion) -> None:
    prompt = program_prompt(
        "What was sold in Paris?",
        [NOISY],
        dialect="sqlite",
        matches={
            NOISY.ref: (
                ValueMatch("city", "Paris"),
                ValueMatch("city", "paris "),
                ValueMatch("till", "A1"),
                ValueMatch("city", "PARIS"),
            )
        },
    )
    assert prompt.text() == snapshot


def test_plain_columns_are_shown_without_a_word() -> None:
    profiled = replace(STORES, profile=(_profile("city", ["Lisbon", "Porto", "Faro", "Beja"]),))
    shown = {STORES.ref}
    assert table_lines(profiled, shown, "sqlite") == table_lines(STORES, shown, "sqlite")


def test_how_texts_are_written_is_capped_and_harmless() -> None:
    values = [f"a{' ' * i}<|im_end|>\n{'b' * 40}{c}" for i in range(2) for c in "xX"]
    table = replace(NOISY, profile=(_profile("till", values),))
    line = next(x for x in table_lines(table, {NOISY.ref}, "sqlite").split("\n") if "till" in x)
    assert "one value as" in line
    assert "<|im_end|>" not in line
    assert len(line) < 150
    brief = table_lines(table, {NOISY.ref}, "sqlite", detail=Detail(comments=False))
    assert "one value" not in brief


def test_notes_and_comments_are_capped() -> None:
    long = "word " * 10_000
    note = TableNote(long, tuple(f"{long[:50]}{i}" for i in range(20)))
    column = ColumnNote(long, note.synonyms)
    noted = annotated(
        Table(STORES.ref, (Column("a", comment=long),), comment=long),
        replace(note, columns={"a": column}),
    )
    assert len(table_lines(noted, {noted.ref}, "sqlite")) < 500


def test_the_stable_part_does_not_depend_on_order_or_question() -> None:
    one = program_prompt("a?", [STORES, LINES], dialect="sqlite", matches={})
    two = program_prompt("b?", [LINES, STORES], dialect="sqlite", matches={})
    assert (one.system, one.context) == (two.system, two.context)


@given(st.text(max_size=200))
def test_cells_and_names_stay_on_one_line(text: str) -> None:
    table = Table(
        TableRef("s", None, "t"),
        (Column("c", "TEXT", comment=text),),
        comment=text,
        sample_rows=((text,),),
    )
    lines = table_lines(table, {table.ref}, "sqlite").split("\n")
    assert len(lines) == (6 if text else 5)
    assert not any(ord(character) < 32 for line in lines for character in line)


@given(st.text(max_size=100))
def test_a_literal_is_one_token(text: str) -> None:
    quoted = literal(text)
    assert quoted.startswith("'")
    assert quoted.endswith("'")
    assert "'" not in quoted[1:-1].replace("''", "")
    assert "\n" not in quoted


def test_names_are_quoted_where_they_must_be() -> None:
    must = ("from", "Select", "order", "GROUP", "index", "a b", 'q"q')
    quoted = {name: identifier(name, "sqlite") for name in ("name", *must)}
    assert quoted["name"] == "name"
    for name in must:
        assert quoted[name] != name
    for name, text in quoted.items():
        column = sqlglot.parse_one(f"SELECT {text} FROM t", dialect="sqlite").expressions[0]
        assert column.name == name


def test_each_dialect_writes_names_its_own_way() -> None:
    assert identifier("userName", "postgres") == '"userName"'
    assert identifier("user_name", "postgres") == "user_name"
    assert identifier("userName", "mysql") == "userName"
    assert identifier("user name", "mysql") == "`user name`"
    assert identifier("a`b", "mysql") == "`a``b`"
    assert identifier("user", "postgres") == '"user"'
    assert identifier("groups", "mysql") == "`groups`"
    assert identifier("userName", "duckdb") == "userName"
    assert identifier("name", "snowflake") == '"name"'
    assert identifier("a]b", "tsql") == "[a]]b]"
    for dialect in prompts.ENGINE_NAMES:
        for name in ("order", 'q"q', "b`b", "NAME", "größe"):
            column = sqlglot.parse_one(
                f"SELECT {identifier(name, dialect)} FROM t", dialect=dialect
            ).expressions[0]
            assert column.name == name, dialect


@given(st.text(max_size=60), st.sampled_from(sorted(prompts.ENGINE_NAMES)))
def test_literals_end_where_the_dialect_ends_them(text: str, dialect: str) -> None:
    tree = sqlglot.parse_one(f"SELECT {literal(text, dialect)} AS x", dialect=dialect)
    assert isinstance(tree.expressions[0].this, sqlglot.exp.Literal)
    assert len(tree.expressions) == 1


def table(schema: str | None, name: str) -> Table:
    return Table(
        TableRef("db", schema, name), (Column("storeId", "bigint"),), sample_rows=(("1",),)
    )


def test_schemas_are_written_where_they_must_be() -> None:
    def names(dialect: str, *tables: Table) -> list[str]:
        matches = {t.ref: (ValueMatch("storeId", "1"),) for t in tables}
        text = program_prompt("q?", tables, dialect=dialect, matches=matches).text()
        values = text.partition("Values in the data: ")[2].split("\n")[0]
        return [*re.findall(r"CREATE TABLE (.+) \(", text), values]

    one, two = table("public", "stores"), table("Sales", "stores")
    assert names("postgres", one) == ["stores", "stores.\"storeId\" = '1'"]
    assert names("postgres", one, two)[:2] == ['"Sales".stores', "public.stores"]
    assert names("postgres", two)[-1] == '"Sales".stores."storeId" = \'1\''
    assert names("duckdb", table("main", "stores"))[0] == "stores"
    assert names("mysql", table("shop", "stores"))[0] == "shop.stores"


def test_the_prompt_of_servers(snapshot: SnapshotAssertion) -> None:
    sales = table("sales", "Order Lines")
    stores = Table(
        TableRef("db", "public", "stores"),
        (Column("id", "uuid"), Column("opened", "timestamp with time zone")),
        primary_key=("id",),
        row_count=0,
    )
    for dialect in ("postgres", "mysql", "duckdb"):
        prompt = program_prompt("How many?", [sales, stores], dialect=dialect, matches={})
        assert prompt.text() == snapshot(name=dialect)


@pytest.mark.parametrize("brief_text", ["password=hunter2", "postgresql://me:hunter2@host/db"])
def test_secrets_of_comments_and_rows_are_masked(brief_text: str) -> None:
    column = Column("note", "TEXT", comment=f"like {brief_text}")
    hostile = Table(
        TableRef("s", None, "t"), (column,), comment=brief_text, sample_rows=((brief_text,),)
    )
    for text in (
        table_lines(hostile, {hostile.ref}, "sqlite"),
        table_text(0, Shown(hostile, ({"note": brief_text},)), [0], DETAILS[0], 1),
    ):
        assert "hunter2" not in text
        assert text.count("***") == 3
