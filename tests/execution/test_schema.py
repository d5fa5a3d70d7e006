"""Schemas are kept by the identity of their tables."""

from __future__ import annotations

import pytest

from dbrag.errors import UnknownName
from dbrag.execution import guard, schema
from dbrag.execution.schema import schemas_of
from dbrag.index.lazy import Tables
from dbrag.types import Column, Table, TableRef


def read_anew(source: str, n: int) -> Tables:
    """Tables of a stored catalog that is too large to be kept: new objects at each look."""

    def read(i: int) -> Table:
        return Table(TableRef(source, None, f"{source}{i}"), (Column("x", "INTEGER"),))

    return Tables(read, 0, n)


def test_a_key_is_made_of_the_tables_that_are_kept() -> None:
    with schema._lock:
        schema._schemas.clear()
    for n in range(1, 10):
        for source in ("a", "b"):
            (found,) = schemas_of(read_anew(source, n))
            assert {table.ref.source for table in found.tables} == {source}
    for key, kept in schema._schemas.items():
        assert key == tuple(id(table) for one in kept for table in one.tables)


def test_a_table_of_another_source_is_unknown() -> None:
    for n in range(1, 10):
        guard.admit("SELECT x FROM a0", "sqlite", read_anew("a", n))
        with pytest.raises(UnknownName):
            guard.admit("SELECT x FROM a0", "sqlite", read_anew("b", n))
