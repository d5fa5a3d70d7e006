from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest

from dbrag.sources.files import jsonfile

from .conftest import Folder, load


def test_an_array_of_objects(folder: Folder) -> None:
    text = (
        '[{"id": 1, "p": 12.50, "s": "007", "d": "2024-01-02", "ok": true,'
        ' "big": 12345678901234567890},'
        '\n {"id": 2, "p": 3, "t": "23:59", "big": -1, "s": null}]'
    )
    read = folder.read("Orders.json", text)
    assert read.table.name == "Orders"
    assert read.columns == {
        "id": "int64",
        "p": "decimal128(18, 2)",
        "s": "string",
        "d": "date32[day]",
        "ok": "bool",
        "big": "decimal128(38, 0)",
        "t": "time64[us]",
    }
    assert read.rows[0] == (
        1, Decimal("12.50"), "007", dt.date(2024, 1, 2), True, Decimal(12345678901234567890), None,
    )  # fmt: skip
    assert read.rows[1] == (2, Decimal("3.00"), None, None, None, Decimal(-1), dt.time(23, 59))


def test_texts_that_look_like_numbers_stay_texts(folder: Folder) -> None:
    read = folder.read("a.json", '[{"a": "1", "b": "true", "c": "1.5"}]')
    assert read.rows == [("1", "true", "1.5")]


def test_several_kinds_in_a_column_become_text_as_written(folder: Folder) -> None:
    read = folder.read("a.json", '[{"a": 1.50}, {"a": "x"}, {"a": [1, 2.50, null]}, {"a": true}]')
    assert read.column("a") == ["1.50", "x", "[1, 2.50, null]", "true"]


def test_nested_objects_become_columns(folder: Folder) -> None:
    text = '[{"id": 1, "address": {"city": "Rome", "geo": {"lat": 1.5}}, "address_city": "x"}]'
    read = folder.read("a.json", text)
    assert list(read.columns) == ["id", "address_city", "address_geo_lat", "address_city_2"]
    assert read.rows == [(1, "Rome", Decimal("1.5"), "x")]
    assert "nested objects" in read.guessed


def test_objects_with_very_many_different_keys_stay_json(folder: Folder) -> None:
    rows = [{"id": i, "m": {f"k{i}": i}} for i in range(700)]
    read = folder.read("a.json", json.dumps(rows))
    assert list(read.columns) == ["id", "m"]
    assert read.rows[699] == (699, '{"k699": 699}')


def test_lines(folder: Folder) -> None:
    text = '{"a": 1}\n\n{"a": 2, "b": "x"}\r\n{"b": "y"}'
    for name in ("a.jsonl", "a.ndjson", "a.json"):
        assert folder.read(name, text).rows == [(1, None), (2, "x"), (None, "y")]


def test_bad_lines_are_counted_and_named(folder: Folder) -> None:
    read = folder.read("a.jsonl", '{"a": 1}\nbad\n{"a": 2}\n{"a": \n{"a": 3}\n')
    assert read.rows == [(1,), (2,), (3,)]
    assert "2 lines are no valid JSON and left out: 2, 4" in read.warned
    assert "no valid JSON" in folder.reason("b.jsonl", "bad\nworse\n")


def test_an_object_of_arrays_is_a_table_each(folder: Folder) -> None:
    folder.write("a.json", '{"count": 2, "users": [{"id": 1}, {"id": 2}], "pets": [{"p": "x"}]}')
    tables, _ = folder.find("a.json")
    assert [table.name for table in tables] == ["a_users", "a_pets"]
    assert load(tables[0]).rows == [(1,), (2,)]
    assert "'count'" in tables[0].warnings[0]
    assert folder.read("b.json", '{"results": [{"id": 1}]}').table.name == "b"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('{"a": 1, "b": {"c": 2}}', [(1, 2)]),
        ("[1, 2, 3]", [(1,), (2,), (3,)]),
        ('[[1, "x"], [2, "y"]]', [(1, "x"), (2, "y")]),
        ('{"x": [1, 2], "y": ["a", "b"]}', [(1, "a"), (2, "b")]),
        ('{"k1": {"n": 1}, "k2": {"n": 2}}', [("k1", 1), ("k2", 2)]),
        ('[{"a": 1}, null, {"a": 2}]', [(1,), (None,), (2,)]),
        ('[{"a": NaN}, {"a": 1.5}]', [(None,), (Decimal("1.5"),)]),
        ('[{"a": 1, "a": 2}]', [(1, 2)]),
        ('[{"a": "N/A"}, {"a": 1}]', [(None,), (1,)]),
        ('[{"a": "\\ud800x"}]', [("\\ud800x",)]),
        ('[{"": 1, " b ": 2}]', [(1, 2)]),
    ],
)
def test_shapes(folder: Folder, text: str, rows: list[tuple[object, ...]]) -> None:
    assert folder.read("a.json", text).rows == rows


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"a":', "no valid JSON"),
        ('[{"a": 1} {"a": 2}]', "no valid JSON"),
        ('[{"a": 1}] x', "no valid JSON"),
        ("[]", "no columns"),
        ("", "is empty"),
        ("hello", "no valid JSON"),
    ],
)
def test_what_is_no_table(folder: Folder, text: str, reason: str) -> None:
    assert reason in folder.reason("a.json", text)


def test_values_longer_than_a_block_are_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonfile, "_CHUNK", 7)
    rows = [{"id": i, "text": "é" * i, "list": [i] * i} for i in range(60)]
    read = folder.read("a.json", json.dumps(rows, ensure_ascii=False, indent=1))
    assert read.column("text") == [row["text"] for row in rows]
    assert [json.loads(cell) for cell in read.column("list")] == [row["list"] for row in rows]
    text = json.dumps({"n": 1, "rows": rows})
    assert folder.read("b.json", text).column("id") == list(range(60))


def test_numbers_at_the_end_of_a_block_are_whole(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonfile, "_CHUNK", 1)
    assert folder.read("a.json", "[123456, 7890123]").column("value") == [123456, 7890123]
