"""Which tables belong together: by source, by schemas that keys join, or not at all."""

from __future__ import annotations

from dbrag.catalog.parts import group_numbers, parts_of
from dbrag.types import Column, ForeignKey, Table, TableRef


def table(source: str, schema: str | None, name: str, key: TableRef | None = None) -> Table:
    keys = (ForeignKey(("id",), key, ("id",)),) if key else ()
    return Table(TableRef(source, schema, name), (Column("id"),), foreign_keys=keys)


SHOP = [table("shop", None, "a"), table("shop", None, "b")]
SERVER = [
    table("dw", "hr", "people"),
    table("dw", "hr", "pay", TableRef("dw", "hr", "people")),
    table("dw", "sales", "orders", TableRef("dw", "crm", "clients")),
    table("dw", "crm", "clients"),
    table("dw", "misc", "notes"),
]
LAKE = [table("lake", None, "x"), table("lake", None, "y")]


def test_schemas_that_keys_keep_apart_are_databases_of_their_own() -> None:
    parts = parts_of(SERVER)
    assert [parts[t.ref] for t in SERVER] == ["dw.hr", "dw.hr", "dw.crm", "dw.crm", "dw"]


def test_numbers_of_groups() -> None:
    assert group_numbers([*SHOP, *SERVER, *LAKE], {"lake"}) == [0, 0, 1, 1, 2, 2, 3, -1, -1]
    assert group_numbers(LAKE, set()) == [0, 0]
    assert group_numbers([], {"lake"}) == []
