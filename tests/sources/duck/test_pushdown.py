"""A filter that Arrow applies in the file finds the rows that DuckDB itself would find."""

from __future__ import annotations

import random
import re
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dbrag.sources.duck.engine import open_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection

NAN, INF = float("nan"), float("inf")
# Column → (its type, the values it is filled with, constants it is compared with).
COLUMNS: dict[str, tuple[Any, list[Any], list[str]]] = {
    "i": (pa.int64(), [1, 2, 3, -5, 2**62], ["1", "2.5", "'3'", "4611686018427387904", "NULL"]),
    "f": (
        pa.float64(),
        [1.0, NAN, INF, -INF, 0.0, -0.0, 2.5],
        ["'nan'::DOUBLE", "1", "0", "-0.0", "'inf'::DOUBLE"],
    ),
    "g": (pa.float32(), [1.0, NAN, 0.1], ["0.1", "'nan'::FLOAT", "1"]),
    "s": (pa.string(), ["", "a", "A", "ä", "z" * 20, "a\0b"], ["''", "'a'", "'ä'", "'B'"]),
    "d": (
        pa.date32(),
        [date(2020, 1, 1), date(1, 1, 1), date(9999, 12, 31)],
        ["DATE '2020-01-01'", "DATE '9999-12-31'", "TIMESTAMP '2020-01-01 12:00'"],
    ),
    "ts": (
        pa.timestamp("us"),
        [datetime(2020, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999)],
        ["TIMESTAMP '2020-01-01'", "DATE '2020-01-01'"],
    ),
    "tz": (
        pa.timestamp("us", "Europe/Berlin"),
        [datetime(2020, 1, 1), datetime(1969, 12, 31, 23, 59, 59)],
        ["TIMESTAMPTZ '2020-01-01 00:00:00+00'", "DATE '2019-12-31'"],
    ),
    "tn": (
        pa.timestamp("ns"),
        [1, 1577836800123456789],
        ["TIMESTAMP_NS '2020-01-01 00:00:00.123456789'", "TIMESTAMP '2020-01-01'"],
    ),
    "n": (
        pa.decimal128(12, 2),
        [Decimal("1.10"), Decimal("-0.01"), Decimal("99999999.99")],
        ["1.1", "1.105", "-0.01::DOUBLE", "1"],
    ),
    "b": (pa.bool_(), [True, False], ["true", "false"]),
    "u": (pa.uint64(), [0, 2**64 - 1], ["0", "18446744073709551615", "-1"]),
    "bl": (pa.binary(), [b"", b"\0", b"\xff"], ["''::BLOB", "'\\x00'::BLOB"]),
    "t": (pa.time64("us"), [time(0), time(0, 0, 1)], ["TIME '00:00:01'", "TIME '24:00:00'"]),
}
SHAPES = [
    "count(*) FROM T WHERE {c} = {v}",
    "count(*) FROM T WHERE {c} <> {v}",
    "count(*) FROM T WHERE {c} < {v}",
    "count(*) FROM T WHERE {c} >= {v}",
    "count(*) FROM T WHERE NOT ({c} > {v})",
    "count(*) FROM T WHERE {c} IS DISTINCT FROM {v}",
    "count(*) FROM T WHERE {c} IS NOT DISTINCT FROM {v}",
    "count(*) FROM T WHERE {c} IN ({v}, {w})",
    "count(*) FROM T WHERE {c} NOT IN ({v}, {w})",
    "count(*) FROM T WHERE {c} BETWEEN {v} AND {w}",
    "count(*) FROM T WHERE {c} = {v} OR {c} IS NULL",
    "count(*) FROM T WHERE {c} = {v} OR i = 1",
    "{c}, count(*) FROM T WHERE {c} > {v} GROUP BY 1 ORDER BY 1",
    "{c} FROM T ORDER BY {c} DESC NULLS LAST LIMIT 7",
    "{c} FROM T ORDER BY {c} LIMIT 7 OFFSET 500",
    "count(*) FROM T WHERE {c} = (SELECT max({c}) FROM T)",
    "count(*) FROM T JOIN (SELECT DISTINCT {c} AS k FROM T WHERE {c} >= {v}) q ON k = {c}",
    "min({c}), max({c}), count({c}) FROM T WHERE {c} <= {v}",
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBPyConnection]:
    """``parquet`` is read through Arrow; ``copied`` are the same rows inside DuckDB."""
    chance = random.Random(7)
    table = pa.table(
        {
            name: pa.array([chance.choice([None, *values]) for _ in range(1000)], kind)
            for name, (kind, values, _) in COLUMNS.items()
        }
    )
    path = tmp_path_factory.mktemp("pushdown") / "x.parquet"
    pq.write_table(table, path, row_group_size=50)
    with open_engine(memory_mb=256, threads=2) as connection:
        connection.register("parquet", ds.dataset(path))
        connection.execute("CREATE TEMP TABLE copied AS SELECT * FROM parquet")
        yield connection


@pytest.mark.parametrize("column", COLUMNS)
def test_the_same_rows_are_found(column: str, engine: DuckDBPyConnection) -> None:
    constants = COLUMNS[column][2]
    for shape in SHAPES:
        for value in constants:
            sql = "SELECT " + shape.format(c=column, v=value, w=constants[-1])
            found = [
                repr(engine.execute(re.sub(r"\bT\b", name, sql)).fetchall())
                for name in ("parquet", "copied")
            ]
            # 0.0 and -0.0 are equal: which of them is the greatest depends on the threads.
            one, other = (text.replace("-0.0", "0.0") for text in found)
            assert one == other, sql
