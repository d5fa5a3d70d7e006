"""The values between the stages: JSON without loss, Arrow without surprise."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.types import (
    Answer,
    AnswerWarning,
    Candidate,
    Execution,
    IndexReport,
    Program,
    ResultColumn,
    SearchResult,
    SourceReport,
    Step,
    Table,
    TableRef,
    ValueMatch,
)
from dbrag.values import json_value

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
)
CELLS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner)),
    max_leaves=8,
)


@given(CELLS)
def test_every_cell_is_strict_json(value: object) -> None:
    json.loads(json.dumps(json_value(value), allow_nan=False))


@given(st.integers())
def test_integers_keep_every_digit(n: int) -> None:
    value = json_value(n)
    # A reader that holds numbers as doubles must not lose a digit either.
    assert int(value) == n
    if isinstance(value, int):
        assert int(float(value)) == n


@given(st.decimals(allow_nan=False))
def test_decimals_keep_every_digit(d: Decimal) -> None:
    assert Decimal(json_value(d)) == d
    if d.is_finite() and abs(int(d.as_tuple().exponent)) < 1000:
        assert "E" not in json_value(d)


@given(st.binary())
def test_binary_is_base64(data: bytes) -> None:
    assert base64.b64decode(json_value(data)) == data
    assert json_value(bytearray(data)) == json_value(memoryview(data)) == json_value(data)


@given(st.datetimes() | st.dates() | st.times())
def test_times_are_iso(value: object) -> None:
    assert type(value).fromisoformat(json_value(value)) == value


def test_examples() -> None:
    assert json_value(True) is True
    assert json_value(2**53) == 2**53
    assert json_value(2**53 + 1) == "9007199254740993"
    assert json_value(-(2**53) - 1) == "-9007199254740993"
    assert json_value(float("nan")) == "nan"
    assert json_value(float("-inf")) == "-inf"
    assert json_value(dt.date(2025, 1, 2)) == "2025-01-02"
    identity = "12345678-1234-5678-1234-567812345678"
    assert json_value(UUID(identity)) == identity
    assert json_value({1: (Decimal("1.10"), None)}) == {"1": ["1.10", None]}


REF = TableRef("shop", None, "orders")
CONTRACT_KEYS = {
    "schema",
    "question",
    "status",
    "columns",
    "rows",
    "row_count",
    "truncated",
    "text",
    "steps",
    "sql",
    "dialect",
    "tables",
    "agreement",
    "confidence",
    "votes",
    "warnings",
    "evidence",
    "readings",
    "error",
    "seconds",
    "tokens",
    "model",
}


def answer(rows: tuple[tuple[object, ...], ...], **more: object) -> Answer:
    columns = (ResultColumn("n", "int64"), ResultColumn("n", "string"))
    return Answer(
        question="how many?",
        status="answered",
        text="",
        execution=Execution(columns, rows, 0.1),
        program=Program((Step("a", "SELECT 1"),), "SELECT 1", "sqlite", (REF,)),
        tables=(REF,),
        **more,
    )


def test_an_answer_has_the_keys_of_the_contract() -> None:
    full = answer(((1, "x"),), agreement=2 / 3, warnings=(AnswerWarning("c", "m"),)).to_dict()
    empty = Answer("q", "failed", "", error={"code": "c", "message": "m", "hint": ""}).to_dict()
    assert set(full) == set(empty) == CONTRACT_KEYS
    assert full["schema"] == 1
    assert full["agreement"] == 0.6667
    assert full["tables"] == [{"source": "shop", "schema": None, "name": "orders"}]
    assert empty["sql"] is None
    assert empty["rows"] == []


def test_columns_of_one_name_both_keep_their_values() -> None:
    result = answer(((1, "x"), (2, "y")))
    assert result.to_dict()["rows"] == [[1, "x"], [2, "y"]]
    assert [c["name"] for c in result.to_dict()["columns"]] == ["n", "n"]
    assert result.table.column(1).to_pylist() == ["x", "y"]


@given(st.integers(0, 30), st.none() | st.integers(0, 40))
def test_the_row_count_is_true_whatever_is_shown(n: int, shown: int | None) -> None:
    value = answer(tuple((i, "x") for i in range(n)), max_rows=shown).to_dict()
    assert value["row_count"] == n
    assert len(value["rows"]) == (n if shown is None else min(n, shown))
    assert value["truncated"] == (len(value["rows"]) < n)


def test_arrow_is_never_cut() -> None:
    result = answer(tuple((i, "x") for i in range(9)), max_rows=2)
    assert result.table.num_rows == 9
    assert len(result.to_pandas()) == 9
    assert Answer("q", "failed", "").table is None
    assert Answer("q", "failed", "").to_pandas().empty


def test_arrow_of_mixed_types_is_text() -> None:
    columns = (ResultColumn("a", "mixed"), ResultColumn("b", "int64"))
    table = Execution(columns, ((1, 1), ("x", None), (None, "y")), 0.0).table
    assert table.column("a").to_pylist() == ["1", "x", None]
    assert table.column("b").to_pylist() == ["1", None, "y"]


def test_table_ref() -> None:
    assert str(REF) == "shop.orders"
    assert str(TableRef("db", "public", "t")) == "db.public.t"
    assert {REF: 1}[TableRef("shop", None, "orders")] == 1


def test_columns_are_found_whatever_their_case() -> None:
    from dbrag.types import Column

    table = Table(REF, (Column("Größe"), Column("n")))
    assert table.column("GRÖSSE") == Column("Größe")
    assert table.column("m") is None


def test_reports_and_candidates_are_json() -> None:
    report = IndexReport((SourceReport("shop", "built", tables=1, seconds=1.23456),), 1.5, 10, 99)
    candidate = Candidate(
        REF, 0.123456, {"bm25": 1.0}, ({"d": dt.date(2025, 1, 1)},), (ValueMatch("a", "b"),), "why"
    )
    result = SearchResult("q", (candidate,), 0.1)
    assert json.loads(json.dumps(report.to_dict()))["sources"][0]["seconds"] == 1.235
    value = json.loads(json.dumps(result.to_dict()))["candidates"][0]
    assert value["rows"] == [{"d": "2025-01-01"}]
    (match,) = value["matches"]
    assert match == {"column": "a", "value": "b", "said": "", "how": "exact"}
    assert value["score"] == 0.1235


def test_values_are_frozen() -> None:
    with pytest.raises(AttributeError):
        REF.name = "other"
