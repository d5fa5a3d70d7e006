"""Columns as Arrow: one type that holds all values exactly, else text."""

from __future__ import annotations

import datetime as dt
import io
import math
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.arrow import AS_TEXT, arrow_array, arrow_type
from dbrag.types import Execution, ResultColumn
from dbrag.values import text_value

ID = UUID("12345678-1234-5678-1234-567812345678")
BERLIN = ZoneInfo("Europe/Berlin")
EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))

MATRIX: list[tuple[list[object], str]] = [
    ([], "null"),
    ([None], "null"),
    ([2**63 - 1, -(2**63)], "int64"),
    ([2**63], "decimal128(38, 0)"),
    ([-(10**37), None, 5], "decimal128(38, 0)"),
    ([10**38], "decimal256(39, 0)"),
    ([10**76], "decimal"),
    ([Decimal("1.10"), Decimal("20")], "decimal128(38, 2)"),
    ([Decimal("1E+30")], "decimal128(38, 0)"),
    ([Decimal("0." + "1" * 38)], "decimal256(39, 38)"),
    ([Decimal("1" * 18 + "." + "3" * 20)], "decimal128(38, 20)"),
    ([Decimal("1" * 40 + ".5")], "decimal256(41, 1)"),
    ([Decimal("1" * 77)], "decimal"),
    ([Decimal("NaN"), Decimal(1)], "decimal"),
    ([Decimal("Infinity")], "decimal"),
    ([Decimal("1E+999999")], "decimal"),
    ([1, Decimal("0.5")], "decimal128(38, 1)"),
    ([1.5, Decimal("0.5")], "mixed"),
    ([1.5, float("nan")], "double"),
    ([10**400, 1.5], "mixed"),
    ([True, None], "bool"),
    (["", None], "string"),
    ([b"a", bytearray(b"b"), memoryview(b"c")], "binary"),
    ([ID], "uuid"),
    ([dt.date(1, 1, 1), dt.date(9999, 12, 31)], "date32[day]"),
    ([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)], "mixed"),
    ([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)], "timestamp[us]"),
    ([dt.datetime(1969, 1, 1, 0, 0, 0, 1, dt.UTC)], "timestamp[us, tz=UTC]"),
    ([dt.datetime(2300, 7, 1, tzinfo=EAST)], "timestamp[us, tz=+05:30]"),
    (
        [dt.datetime(2024, 1, 1, tzinfo=BERLIN), dt.datetime(2024, 7, 1, tzinfo=BERLIN)],
        "timestamp[us, tz=Europe/Berlin]",
    ),
    ([dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, tzinfo=EAST)], "mixed"),
    ([dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1)], "mixed"),
    ([dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(-dt.timedelta(hours=9)))], "mixed"),
    ([dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=3208)))], "mixed"),
    ([dt.time(23, 59, 59, 999_999)], "time64[us]"),
    ([dt.time(12, tzinfo=dt.UTC)], "mixed"),
    ([dt.timedelta(-1, 5, 7)], "duration[us]"),
    ([dt.timedelta.max], "mixed"),
    ([[1, 2], [], None, [None]], "list<item: int64>"),
    ([[], []], "list<item: null>"),
    ([[Decimal("1.5")], (2,)], "list<item: decimal128(38, 1)>"),
    ([[["a"], []], [["b"]]], "list<item: list<item: string>>"),
    ([[1, "a"]], "json"),
    ([[{"a": 1}]], "json"),
    ([{"a": Decimal("1.0")}, [1]], "json"),
    ([["a"], "a"], "mixed"),
    (["a\udce9"], "string"),
]


@pytest.mark.parametrize(("values", "expected"), MATRIX)
def test_the_matrix_of_types(values: list[object], expected: str) -> None:
    assert arrow_type(values) == expected
    array = arrow_array(pa, values, expected)
    assert len(array) == len(values)
    assert str(array.type) == ("string" if expected in AS_TEXT else expected)
    assert array.null_count == values.count(None)
    array.validate(full=True)


@pytest.mark.parametrize(("values", "expected"), MATRIX)
def test_every_type_survives_a_parquet_file(values: list[object], expected: str) -> None:
    table = Execution((ResultColumn("a", expected),), tuple((v,) for v in values), 0.0).table
    file = io.BytesIO()
    pq.write_table(table, file)
    back = pq.read_table(file)
    assert back.schema == table.schema
    assert repr(back.to_pylist()) == repr(table.to_pylist())  # NaN equals no NaN


# Local times that a change of the clocks skips are no instants, and come back as their neighbours.
ZONED = st.datetimes(
    dt.datetime(2, 1, 1),
    dt.datetime(9998, 1, 1),
    timezones=st.just(BERLIN),
    allow_imaginary=False,
)
COLUMNS = st.sampled_from(
    [
        st.booleans(),
        st.integers(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.decimals(allow_nan=False, allow_infinity=False, places=3),
        st.decimals(),
        st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=2),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.binary(),
        st.dates(),
        st.datetimes(),
        ZONED,
        st.datetimes(timezones=st.just(dt.UTC)),
        st.datetimes(timezones=st.timezones(), allow_imaginary=False),
        st.times(),
        st.timedeltas(),
        st.lists(st.integers(-5, 5)),
        st.lists(st.dates() | st.none()),
    ]
).flatmap(lambda cells: st.lists(cells | st.none(), max_size=5))


def same(one: object, two: object) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return one == two or (math.isnan(one) and math.isnan(two))
    return one == two


@given(COLUMNS)
def test_values_come_back_equal(values: list[object]) -> None:
    type_ = arrow_type(values)
    back = arrow_array(pa, values, type_).to_pylist()
    if type_ in AS_TEXT:
        assert back == [None if v is None else text_value(v) for v in values]
    else:
        assert all(same(a, b) for a, b in zip(values, back, strict=True)), (type_, back)


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=st.none() | st.timezones())
    | st.times()
    | st.timedeltas()
    | st.uuids(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(st.tuples(ANY, ANY), max_size=4))
def test_a_table_never_raises(rows: list[tuple[object, object]]) -> None:
    columns = tuple(ResultColumn("n", arrow_type([row[i] for row in rows])) for i in range(2))
    table = Execution(columns, tuple(rows), 0.0).table
    assert table.column_names == ["n", "n"]
    assert table.num_rows == len(rows)
    table.validate(full=True)


@pytest.mark.parametrize("claimed", ["int64", "timestamp[us, tz=UTC]", "decimal128(3, 0)", "x"])
def test_a_wrong_type_becomes_text(claimed: str) -> None:
    assert arrow_array(pa, ["a", None], claimed).to_pylist() == ["a", None]
