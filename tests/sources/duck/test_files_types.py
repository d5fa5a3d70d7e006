"""Columns of Parquet files: every type is read and filtered, also where files disagree."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from dbrag.errors import (
    UnknownName,
)

from .conftest import rows

if TYPE_CHECKING:
    from collections.abc import Callable

TYPES: dict[str, tuple[Any, str, Any]] = {
    "half": (pa.array(np.array([1.5], dtype=np.float16)), "FLOAT", 1.5),
    "float": (pa.array([0.1], pa.float32()), "FLOAT", 0.1),
    "decimal": (
        pa.array([Decimal("1234567890123456789012345678.0123456789")], pa.decimal128(38, 10)),
        "DECIMAL(38,10)",
        Decimal("1234567890123456789012345678.0123456789"),
    ),
    "wide decimal": (pa.array([Decimal("1.01")], pa.decimal256(60, 2)), "VARCHAR", "1.01"),
    "narrow wide decimal": (
        pa.array([Decimal("1.01")], pa.decimal256(10, 2)),
        "DECIMAL(10,2)",
        Decimal("1.01"),
    ),
    "unsigned": (pa.array([2**64 - 1], pa.uint64()), "UBIGINT", 2**64 - 1),
    "nanoseconds": (
        pa.array([1577836800123456789], pa.timestamp("ns")),
        "TIMESTAMP_NS",
        "2020-01-01 00:00:00.123456789",
    ),
    "zone": (
        pa.array([1577836800123456], pa.timestamp("us", "Europe/Berlin")),
        "TIMESTAMP WITH TIME ZONE",
        None,
    ),
    "seconds": (pa.array([1577836800], pa.timestamp("s")), "TIMESTAMP_MS", datetime(2020, 1, 1)),
    "date": (pa.array([date(2020, 1, 1)]), "DATE", date(2020, 1, 1)),
    "time": (pa.array([1001], pa.time64("ns")), "TIME_NS", "00:00:00.000001001"),
    "duration": (pa.array([1000], pa.duration("us")), "INTERVAL", "PT0.001S"),
    "dictionary": (pa.array(["a"]).dictionary_encode(), "VARCHAR", "a"),
    "binary": (pa.array([b"\xff\x00"]), "BLOB", b"\xff\x00"),
    "fixed binary": (pa.array([b"\xff\x00"], pa.binary(2)), "BLOB", b"\xff\x00"),
    "uuid": (pa.array([UUID(int=5).bytes], pa.uuid()), "UUID", UUID(int=5)),
    "json": (pa.array(['{"a": 1.10}'], pa.json_()), "JSON", '{"a": 1.10}'),
    "bool": (pa.array([True]), "BOOLEAN", True),
    "string view": (pa.array(["a"], pa.string_view()), "VARCHAR", "a"),
    "large string": (pa.array(["a"], pa.large_string()), "VARCHAR", "a"),
    "list": (pa.array([[1, None]]), "BIGINT[]", [1, None]),
    "list of halves": (
        pa.array([[np.float16(1)]], pa.list_(pa.float16())),
        "FLOAT[]",
        [1.0],
    ),
    "struct": (
        pa.array([{"a": 1, "b": [Decimal("1.10")]}]),
        "STRUCT(a BIGINT, b DECIMAL(3,2)[])",
        {"a": 1, "b": [Decimal("1.10")]},
    ),
    "map": (
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "MAP(VARCHAR, BIGINT)",
        {"k": 1},
    ),
    "nothing": (pa.array([None]), "VARCHAR", None),
}


@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_read_and_can_be_filtered(name: str, files: Callable[..., Any]) -> None:
    array, kind, value = TYPES[name]
    array = pa.concat_arrays([array, pa.nulls(1, array.type)])
    source = files({"t": pa.table({"id": [1, 2], name: array})})
    (table,) = source.reflect()
    assert (table.columns[1].name, table.columns[1].type) == (name, kind)
    found = rows(source, f'SELECT "{name}" FROM t ORDER BY id')
    if value is not None:
        assert found == [(value,), (None,)]
    null = array.null_count
    q = f'"{name}"'
    checks = {
        f"{q} IS NULL": null,
        f"{q} IS NOT NULL": 2 - null,
        f"{q} = (SELECT any_value({q}) FROM t)": 2 - null,
        f"{q} >= (SELECT min({q}) FROM t)": 2 - null,
    }
    for condition, expected in checks.items():
        assert rows(source, f"SELECT count(*) FROM t WHERE {condition}") == [(expected,)]


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("uuid", "'00000000-0000-0000-0000-000000000005'"),
        ("json", "'{\"a\": 1.10}'"),
        ("wide decimal", "'1.01'"),
        ("half", "1.5"),
        ("dictionary", "'a'"),
        ("unsigned", "18446744073709551615"),
    ],
)
def test_a_filter_with_a_constant(name: str, condition: str, files: Callable[..., Any]) -> None:
    source = files({"t": pa.table({name: TYPES[name][0]})})
    for sql in (f'"{name}" = {condition}', f'"{name}" IN ({condition}, {condition})'):
        assert rows(source, f"SELECT count(*) FROM t WHERE {sql}") == [(1,)]


MIXED: dict[str, tuple[Any, Any, str, str]] = {
    "int, double": (pa.array([1]), pa.array([1.5]), "DOUBLE", "1"),
    "int, long": (pa.array([1], pa.int32()), pa.array([2**40]), "BIGINT", "1"),
    "int, text": (pa.array([1]), pa.array(["a"]), "VARCHAR", "'1'"),
    "date, text": (pa.array([date(2020, 1, 1)]), pa.array(["a"]), "VARCHAR", "'2020-01-01'"),
    "date, timestamp": (
        pa.array([date(2020, 1, 1)]),
        pa.array([datetime(2021, 1, 1)]),
        "TIMESTAMP",
        "DATE '2020-01-01'",
    ),
    "signed, unsigned": (
        pa.array([-1]),
        pa.array([2**64 - 1], pa.uint64()),
        "DECIMAL(20,0)",
        "-1",
    ),
    "int, decimal": (pa.array([1]), pa.array([Decimal("2.50")]), "DECIMAL(22,2)", "1"),
    "decimals": (
        pa.array([Decimal("1.01")]),
        pa.array([Decimal("12345.123456")]),
        "DECIMAL(11,6)",
        "1.01",
    ),
    "text, dictionary": (
        pa.array(["a"]),
        pa.array(["b"]).dictionary_encode(),
        "VARCHAR",
        "'a'",
    ),
    "nothing, int": (pa.array([7]), pa.array([None]), "BIGINT", "7"),
}


@pytest.mark.parametrize("name", MIXED)
def test_files_that_disagree_on_a_type(name: str, files: Callable[..., Any]) -> None:
    one, other, kind, value = MIXED[name]
    parts = {"1.parquet": pa.table({"c": one}), "2.parquet": pa.table({"c": other, "new": [5]})}
    source = files({"t": parts})
    (table,) = source.reflect()
    assert [(c.name, c.type) for c in table.columns] == [("c", kind), ("new", "BIGINT")]
    assert ("types differ" in table.columns[0].comment) == (name[:4] not in ("text", "noth"))
    assert rows(source, f"SELECT count(*) FROM t WHERE c = {value}") == [(1,)]
    assert rows(source, f"SELECT new FROM t WHERE c = {value}") == [(None,)]
    assert len(rows(source, "SELECT c FROM t")) == 2


def test_a_column_that_cannot_be_read_is_named(files: Callable[..., Any]) -> None:
    parts = {"1.parquet": pa.table({"a": [1], "c": [1]}), "2.parquet": pa.table({"c": [[1]]})}
    source = files({"t": parts})
    (table,) = source.reflect()
    assert [column.name for column in table.columns] == ["a"]
    assert "'c' left out: its files disagree" in table.comment
    with source.session() as session, pytest.raises(UnknownName):
        session.execute("SELECT c FROM t")
