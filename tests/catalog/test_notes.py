"""The user's notes: whose they are, what they add, and what is told of those that fit nothing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.notes import (
    MAX_DESCRIPTION,
    annotated,
    notes_of,
    spoken_names,
)
from dbrag.options import ColumnNote, TableNote
from dbrag.types import Column, Table, TableRef


def table(source: str, schema: str | None, name: str, *columns: str, comment: str = "") -> Table:
    return Table(TableRef(source, schema, name), tuple(Column(c) for c in columns), comment=comment)


CUSTOMERS = table("shop", None, "Customers", "cust_nm", "st", comment="from the old system")
ORDERS = table("shop", None, "orders", "id", "ID")
OLD_ORDERS = table("archive", "y2020", "orders", "id")
TABLES = [OLD_ORDERS, CUSTOMERS, ORDERS]
NOTE = TableNote(description="people")


def owners(name: str, tables: list[Table] = TABLES) -> list[str]:
    return [str(ref) for ref in notes_of({name: NOTE}, Catalog(tables)).tables]


def told(notes: dict[str, TableNote]) -> list[tuple[str, str]]:
    return [(one.code, one.message) for one in notes_of(notes, Catalog(TABLES)).problems]


@pytest.mark.parametrize("name", ["customers", "Customers", "shop.customers", " SHOP.Customers "])
def test_a_table_may_be_named_in_short(name: str) -> None:
    assert owners(name) == ["shop.Customers"]
    assert not told({name: NOTE})


@pytest.mark.parametrize(
    ("name", "ref"),
    [
        ("shop.orders", "shop.orders"),
        ("archive.orders", "archive.y2020.orders"),
        ("y2020.orders", "archive.y2020.orders"),
        ("archive.y2020.orders", "archive.y2020.orders"),
    ],
)
def test_as_much_of_the_name_as_is_needed(name: str, ref: str) -> None:
    assert owners(name) == [ref]


def test_of_names_that_differ_by_case_the_exact_one_counts() -> None:
    both = [table("s", None, "T"), table("s", None, "t")]
    assert owners("t", both) == ["s.t"]
    assert owners("s.T", both) == ["s.T"]
    note = TableNote(columns={"ID": ColumnNote("big"), "Id": ColumnNote("either")})
    assert [c.comment for c in annotated(ORDERS, note).columns] == ["", "big"]
    (message,) = [text for _, text in told({"shop.orders": note})]
    assert message == (
        "notes 'shop.orders' hold 'Id', which 2 columns of shop.orders are called "
        "(did you mean ID?)"
    )


def test_a_note_that_fits_nothing_is_told_with_a_near_name() -> None:
    assert told({"shop.custmers": NOTE}) == [
        (
            "notes_unused",
            "notes 'shop.custmers' name no table here (did you mean shop.Customers?)",
        )
    ]
    assert told({"custmers": NOTE})[0][1].endswith("(did you mean shop.Customers?)")
    assert told({"zebra": NOTE}) == [("notes_unused", "notes 'zebra' name no table here")]
    assert told({"orders": NOTE})[0][1] == (
        "notes 'orders' could mean 2 tables: archive.y2020.orders, shop.orders; write source.table"
    )
    note = TableNote(columns={"cust_name": ColumnNote("x")})
    assert told({"customers": note})[0][1] == (
        "notes 'customers' hold 'cust_name', which no columns of shop.Customers are called "
        "(did you mean cust_nm?)"
    )


def test_two_notes_on_one_table_are_told_and_the_longer_name_holds() -> None:
    notes = {"shop.customers": NOTE, "customers": TableNote(description="others")}
    assert notes_of(notes, Catalog(TABLES)).tables == {CUSTOMERS.ref: NOTE}
    assert told(notes)[0][1].endswith("are of one table; the second holds")


def test_many_useless_notes_are_told_in_few_lines() -> None:
    messages = told({f"zebra{i:03}": NOTE for i in range(200)})
    assert len(messages) == 11
    assert messages[-1][1] == "190 more notes like these"


def test_thousands_of_useless_notes_take_no_time() -> None:
    tables = [table("shop", None, f"t{i}", "a") for i in range(3_000)]
    notes = {f"zebra{i}": NOTE for i in range(3_000)}
    notes["t1"] = TableNote(columns={f"zebra{i}": ColumnNote("x") for i in range(3_000)})
    started = time.perf_counter()
    assert len(notes_of(notes, Catalog(tables)).problems) == 11
    assert time.perf_counter() - started < 3.0


def test_what_a_note_adds() -> None:
    note = TableNote(
        description="people who bought",
        synonyms=("clients", "clients", "buyers"),
        preferred=True,
        columns={
            "CUST_NM": ColumnNote("full name"),
            "st": ColumnNote("status: A active; C closed", ("state",)),
        },
    )
    found = annotated(CUSTOMERS, note)
    assert found.comment == "people who bought; from the old system"
    assert (found.synonyms, found.preferred) == (("clients", "buyers"), True)
    assert [c.comment for c in found.columns] == ["full name", "status: A active; C closed"]
    assert [c.name for c in found.columns] == [c.name for c in CUSTOMERS.columns]
    assert spoken_names(found) == ("Customers", "clients", "buyers", "people who bought")
    assert [spoken_names(c) for c in found.columns] == [
        ("cust_nm", "full name"),
        ("st", "state", "status: A active"),
    ]


def test_without_notes_nothing_changes() -> None:
    for notes in ({}, {"customers": TableNote()}):
        in_force = notes_of(notes, Catalog(TABLES))
        assert [in_force.apply(table) for table in TABLES] == TABLES


def test_an_error_in_place_of_a_comment_is_no_name_and_gives_way() -> None:
    broken = table("shop", None, "v", "a", comment="cannot be read: no such table")
    assert spoken_names(broken) == ("v",)
    assert annotated(broken, NOTE).comment == "people"


def test_a_long_description_is_cut_and_told() -> None:
    long = TableNote(description="word " * 100, columns={"st": ColumnNote("x" * 121)})
    assert len(annotated(CUSTOMERS, long).comment.split(";")[0]) == MAX_DESCRIPTION
    assert told({"customers": long}) == [
        (
            "notes_cut",
            "notes 'customers': of 499 characters of the description the first 200 count",
        ),
        (
            "notes_cut",
            "notes 'customers' on 'st': of 121 characters of the description the first 120 count",
        ),
    ]


@given(st.text(max_size=400), st.lists(st.text(max_size=60), max_size=5))
def test_no_note_leaves_its_line(text: str, names: list[str]) -> None:
    note = TableNote(text, tuple(names), columns={"st": ColumnNote(text, tuple(names))})
    found = annotated(CUSTOMERS, note)
    texts = [found.comment, *found.synonyms, *(c.comment for c in found.columns)]
    assert all(len(one.splitlines()) <= 1 and "\x1b" not in one for one in texts)
    for warning in notes_of({text: note, "customers": note}, Catalog(TABLES)).problems:
        assert len(warning.message.splitlines()) == 1
