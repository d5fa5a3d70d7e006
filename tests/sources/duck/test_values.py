"""Every value comes out of DuckDB as it is in there."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from .conftest import rows

if TYPE_CHECKING:
    from collections.abc import Callable

VALUES: dict[str, Any] = {
    "1.10::DECIMAL(5,2)": Decimal("1.10"),
    "1234567890123456789012345678.0123456789::DECIMAL(38,10)": Decimal(
        "1234567890123456789012345678.0123456789"
    ),
    "9223372036854775807::BIGINT": 2**63 - 1,
    "18446744073709551615::UBIGINT": 2**64 - 1,
    "170141183460469231731687303715884105727::HUGEINT": 2**127 - 1,
    "340282366920938463463374607431768211455::UHUGEINT": 2**128 - 1,
    "123456789012345678901234567890123456789012345::BIGNUM": (
        "123456789012345678901234567890123456789012345"
    ),
    "'00000000-0000-0000-0000-000000000005'::UUID": UUID(int=5),
    "0.1::FLOAT": 0.1,
    "0.1::DOUBLE": 0.1,
    "'inf'::DOUBLE": float("inf"),
    "TIMESTAMP_NS '2020-01-01 00:00:00.123456789'": "2020-01-01 00:00:00.123456789",
    "'2020-01-01 00:00:00.123456789+02'::TIMESTAMPTZ_NS": "2019-12-31 22:00:00.123456789+00",
    "TIMESTAMP '2020-01-01 00:00:00.123456'": datetime(2020, 1, 1, 0, 0, 0, 123456),
    "TIMESTAMP_S '2020-01-01'": datetime(2020, 1, 1),
    "TIMESTAMPTZ '2020-01-01 00:00:00+02'": datetime(2019, 12, 31, 22, tzinfo=UTC),
    "TIMESTAMPTZ 'infinity'": "infinity",
    "TIMESTAMP '-infinity'": "-infinity",
    "TIMESTAMP '294247-01-01'": "294247-01-01 00:00:00",
    "TIMESTAMPTZ '20200-01-01 00:00:00+00'": "20200-01-01 00:00:00+00",
    "DATE '2020-02-29'": date(2020, 2, 29),
    "DATE '9999-12-31'": date(9999, 12, 31),
    "DATE 'infinity'": "infinity",
    "DATE '10000-01-01'": "10000-01-01",
    "DATE '0044-03-15 (BC)'": "0044-03-15 (BC)",
    "TIME '01:02:03.000004'": time(1, 2, 3, 4),
    "TIME '24:00:00'": "24:00:00",
    "TIME_NS '01:02:03.123456789'": "01:02:03.123456789",
    "TIMETZ '01:02:03+05:30'": time(1, 2, 3, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    "INTERVAL '1 month 2 days 3.5 seconds'": "P1M2DT3.5S",
    "INTERVAL '30 days'": "P30D",
    "INTERVAL '0 days'": "PT0S",
    "INTERVAL '-13 months'": "P-1Y-1M",
    "INTERVAL '-1 day -1 hour -0.000001 seconds'": "P-1DT-1H-0.000001S",
    "INTERVAL '100 years 12 hours 10 minutes'": "P100YT12H10M",
    "INTERVAL '1234 hours 0.5 seconds'": "PT1234H0.5S",
    "'1010'::BIT": "1010",
    "'\\xff\\x00'::BLOB": b"\xff\x00",
    "''::BLOB": b"",
    "'a' || chr(0) || 'b'": "a\0b",
    "''": "",
    "NULL": None,
    "'x'::ENUM('x', 'y')": "x",
    """'{"a": 1.10}'::JSON""": '{"a": 1.10}',
    "union_value(a := 1::DECIMAL(3,1))": Decimal("1.0"),
    "[1, NULL]": [1, None],
    "[1.10::DECIMAL(5,2), NULL]": [Decimal("1.10"), None],
    "[]": [],
    "array_value(1, 2)": (1, 2),
    "{'a': 1, 'b c': [DATE '2020-01-01']}": {"a": 1, "b c": ["2020-01-01"]},
    "MAP {'k': 9223372036854775807}": {"k": 2**63 - 1},
    "MAP {'k': INTERVAL '1 month'}": {"k": "1 month"},
    "{'q\"q': TIMESTAMP_NS '2020-01-01 00:00:00.000000001'}": {
        'q"q': "2020-01-01 00:00:00.000000001"
    },
    "[DATE 'infinity', NULL]": ["infinity", None],
    "row(1, INTERVAL '1 month')": (1, "1 month"),
    "union_value(a := INTERVAL '1 month')": "1 month",
}


@pytest.mark.parametrize("sql", VALUES)
def test_a_value_is_exact(sql: str, database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a")
    ((found,),) = rows(source, f"SELECT {sql} -- a comment at the end")
    assert type(found) is type(VALUES[sql])
    assert found == VALUES[sql]


def test_no_type_of_duckdb_fails_or_is_lost(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT * FROM test_all_types()")
    (table,) = source.reflect()
    assert len(table.columns) > 50
    for column in table.columns:
        sql = f'SELECT "{column.name}", "{column.name}" IS NULL FROM t'
        found = rows(source, sql)
        assert [is_null for _, is_null in found] == [value is None for value, _ in found]
        assert len(found) == 3


def test_duplicate_names_and_order_are_kept(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a")
    sql = (
        "SELECT i AS a, DATE '2020-01-01' AS a, i AS A FROM range(3) r(i) ORDER BY 1 DESC LIMIT 2;"
    )
    with source.session() as session:
        assert session.execute(sql) == ["a", "a", "A"]
        assert [row[0] for row in session.fetch(5)] == [2, 1]
        assert session.fetch(5) == []


def test_the_time_zone_of_the_machine_changes_nothing() -> None:
    code = (
        "import sys; sys.modules['pytz'] = None\n"
        "from dbrag.sources.duck.engine import open_engine\n"
        "c = open_engine(memory_mb=64, threads=1).cursor()\n"
        "print(c.execute(\"SELECT TIMESTAMPTZ '2020-01-01 00:00:00+00', "
        "(TIMESTAMP '2020-01-01')::TIMESTAMPTZ, date_trunc('day', "
        "TIMESTAMPTZ '2020-01-01 23:30:00+00')\").fetchall())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for zone in ("UTC", "Asia/Kolkata", "America/New_York")
    }
    assert len(printed) == 1
