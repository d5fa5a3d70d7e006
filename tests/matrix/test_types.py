"""Values arrive exactly as stored, in JSON too."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from tests.matrix.beds import Bed, Made, has, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    Connect = Callable[..., Any]

kind = pytest.mark.kind

LONG = "a long text, not to be cut: " + "0123456789" * 2_000

# kind of the column, value stored, value in JSON
VALUES: dict[str, tuple[str, Any, Any]] = {
    "numeric(38,20)": (
        "decimal",
        Decimal("123456789012345678.12345678901234567890"),
        "123456789012345678.12345678901234567890",
    ),
    "small decimal": ("decimal", Decimal("-0.00000000000000000001"), "-0.00000000000000000001"),
    "19-digit bigint": ("bigint", 9223372036854775807, "9223372036854775807"),
    "negative bigint": ("bigint", -9223372036854775807, "-9223372036854775807"),
    "UUID": (
        "uuid",
        UUID("0b9c7bd1-3a5e-4b5e-9a64-3c1d7e2f9a10"),
        "0b9c7bd1-3a5e-4b5e-9a64-3c1d7e2f9a10",
    ),
    "date": ("date", date(1969, 7, 20), "1969-07-20"),
    "time of day": ("time", time(8, 5, 7), "08:05:07"),
    "timestamp with microseconds": (
        "timestamp",
        datetime(1969, 7, 20, 20, 17, 40, 123456),
        "1969-07-20T20:17:40.123456",
    ),
    "timestamp with zone": (
        "timestamptz",
        datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
        "2024-03-31T01:30:00+00:00",
    ),
    "binary": ("bytes", b"\x00\xff\x10", "AP8Q"),
    "boolean": ("bool", True, True),
    "double": ("double", 0.1, 0.1),
    "long text": ("text", LONG, LONG),
    "text of all kinds": ("text", "línea 1\nلغة\t'\"\\ 😀", "línea 1\nلغة\t'\"\\ 😀"),
    "enum": ("enum", "ok", "ok"),
    "array": ("array", [1, 2, 3], [1, 2, 3]),
}


@pytest.mark.parametrize(
    ("column", "value", "json"),
    [pytest.param(*row, marks=kind(f"value: {name}"), id=name) for name, row in VALUES.items()],
)
def test_a_value_is_exact(bed: Bed, connect: Connect, column: str, value: Any, json: Any) -> None:
    has(bed, column)
    bed.make(Made("t", {"id": "int", "v": column}, [(1, value), (2, None)]))
    with connect() as db:
        db.index()
        answer = db.sql("SELECT v FROM t ORDER BY id")
    first, second = (row[0] for row in answer.to_dict()["rows"])
    assert second is None
    if bed.name in ("sqlite", "mariadb") and column == "bool":
        json = 1  # booleans are whole numbers there
    if bed.name == "sqlite" and column == "timestamp":
        json = str(value)  # stored as text
    if bed.name == "mariadb" and column == "time":
        json = "08:05:07.000000"  # its TIME may be 838 hours and is text
    if bed.name == "files" and column == "double":
        json = "0.1"  # written so in a text, it is exact
    assert first == json
    assert answer.execution.table.num_rows == 2


@kind("value: interval")
def test_an_interval_keeps_its_months(bed: Bed, connect: Connect) -> None:
    has(bed, "interval")
    bed.make(Made("t", {"v": "interval"}, [(timedelta(days=1, seconds=7),)]))
    with connect() as db:
        assert db.sql("SELECT v FROM t").to_dict()["rows"] == [["P1DT7S"]]
        (row,) = db.sql("SELECT INTERVAL '14 months' AS v FROM t").to_dict()["rows"]
    assert row == ["P1Y2M"]


@kind("value: bit string")
def test_a_bit_string(bed: Bed, connect: Connect) -> None:
    has(bed, "bit")
    bed.do("CREATE TABLE t (v bit(8))" if bed.name != "duckdb" else "CREATE TABLE t (v BIT)")
    literal = "'10100101'" if bed.name == "duckdb" else "b'10100101'"
    bed.do(f"INSERT INTO t VALUES ({literal})")
    with connect() as db:
        (row,) = db.sql("SELECT v FROM t").to_dict()["rows"]
    assert row in (["10100101"], [165])


@kind("value: JSON")
def test_json(bed: Bed, connect: Connect) -> None:
    has(bed, "json")
    text = '{"a": [1, 2.50], "b": null, "big": 12345678901234567890}'
    bed.make(Made("t", {"v": "json"}, [(text,)]))
    with connect() as db:
        (row,) = db.sql("SELECT v FROM t").to_dict()["rows"]
    import json

    read = json.loads(row[0], parse_float=str, parse_int=str)
    assert read == {"a": ["1", "2.50"], "b": None, "big": "12345678901234567890"}


@kind("NULL and empty text")
def test_null_is_not_the_empty_text(bed: Bed, connect: Connect) -> None:
    bed.make(Made("t", {"id": "int", "v": "text"}, [(1, ""), (2, None), (3, "x")]))
    with connect() as db:
        rows = db.sql("SELECT v FROM t ORDER BY id").to_dict()["rows"]
    assert rows == [[""], [None], ["x"]]


@kind("duplicate column names")
def test_duplicate_names_keep_both_values(bed: Bed, connect: Connect) -> None:
    bed.make(Made("t", {"id": "int"}, [(1,)]))
    with connect() as db:
        answer = db.sql("SELECT 1 AS n, 2 AS n FROM t")
    assert [c.name for c in answer.execution.columns] == ["n", "n"]
    assert answer.to_dict()["rows"] == [[1, 2]]
    assert answer.execution.table.column_names == ["n", "n"]


@kind("a cap never changes a number")
def test_a_cap_on_rows_is_after_the_counting(bed: Bed, connect: Connect) -> None:
    bed.make(Made("t", {"id": "int"}, [(i,) for i in range(1500)]))
    with connect(max_rows=10, profile_rows=100) as db:
        db.index()
        assert db.sql("SELECT COUNT(*) FROM t").execution.rows == ((1500,),)
        listed = db.sql("SELECT id FROM t").to_dict()
    assert (len(listed["rows"]), listed["row_count"], listed["truncated"]) == (10, 1500, True)


@kind("zero rows, no invented answer")
def test_an_empty_result_is_no_answer(bed: Bed, connect: Connect) -> None:
    bed.make(Made("people", {"id": "int", "name": "text"}, [(1, "Ann")]))
    program = f"SELECT name FROM people WHERE {quoted(bed, 'id')} = 7"
    with connect(program, program, program, program, votes=1) as db:
        answer = db.ask("What is the name of the person with id 7?")
    assert answer.to_dict()["rows"] == []
    assert "Ann" not in answer.text


@kind("empty table")
def test_an_empty_table(bed: Bed, connect: Connect) -> None:
    bed.make(Made("nobody", {"id": "int", "name": "text"}), Made("one", {"a": "int"}, [(1,)]))
    with connect() as db:
        db.index()
        assert db.sql("SELECT COUNT(*) FROM nobody").execution.rows == ((0,),)
