from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from dbrag.errors import UsageError

from .conftest import Folder, Read


def column(folder: Folder, *cells: str, **settings: Any) -> Read:
    """A column ``value`` beside a column of texts, separated by tabs."""
    text = "value\tother\n" + "".join(f"{cell}\tt{i}\n" for i, cell in enumerate(cells))
    return folder.read("a.tsv", text, **settings)


@pytest.mark.parametrize(
    ("cells", "kind", "first"),
    [
        (["1", "-2"], "int64", 1),
        (["9223372036854775807", "-9223372036854775808"], "int64", 2**63 - 1),
        (["9223372036854775808", "1"], "decimal128(38, 0)", Decimal(2**63)),
        (["9" * 38], "decimal128(38, 0)", Decimal("9" * 38)),
        (["9" * 39, "1"], "string", "9" * 39),
        (["12.50", "3"], "decimal128(18, 2)", Decimal("12.50")),
        (["-.5", "0.25"], "decimal128(18, 2)", Decimal("-0.50")),
        (["12345678901234567.12345678901234567890"], "decimal128(38, 20)",
         Decimal("12345678901234567.12345678901234567890")),
        (["1e3", "2.5E-3"], "double", 1000.0),
        (["0.30000000000000004", "1.5"], "double", 0.30000000000000004),
        (["1e999", "1"], "string", "1e999"),
        (["007", "123"], "string", "007"),
        (["+49 30 1234", "030"], "string", "+49 30 1234"),
        (["true", "FALSE"], "bool", True),
        (["yes", "No"], "bool", True),
        (["NO", "NO"], "string", "NO"),
        (["0", "1"], "int64", 0),
        (["true", "0"], "string", "true"),
        (["2024-02-29", "2023-01-01"], "date32[day]", dt.date(2024, 2, 29)),
        (["2024/2/9"], "date32[day]", dt.date(2024, 2, 9)),
        (["2024-02-30", "2024-01-01"], "string", "2024-02-30"),
        (["0001-01-01", "9999-12-31"], "date32[day]", dt.date(1, 1, 1)),
        (["31/12/2024", "01/02/2024"], "date32[day]", dt.date(2024, 12, 31)),
        (["12/31/2024", "01/02/2024"], "date32[day]", dt.date(2024, 12, 31)),
        (["01.02.2024", "03.04.2024"], "date32[day]", dt.date(2024, 2, 1)),
        (["31-Dec-2024", "1 May 2024"], "date32[day]", dt.date(2024, 12, 31)),
        (["Dec 31, 2024", "September 1, 2024"], "date32[day]", dt.date(2024, 12, 31)),
        (["31/12/2024", "12/31/2024"], "string", "31/12/2024"),
        (["2024-01-02", "31/12/2024"], "string", "2024-01-02"),
        (["20240102", "20240103"], "int64", 20240102),
        (["2024-01-02 03:04:05", "2024-01-02"], "timestamp[us]", dt.datetime(2024, 1, 2, 3, 4, 5)),
        (["2024-01-02T03:04:05.123456"], "timestamp[us]",
         dt.datetime(2024, 1, 2, 3, 4, 5, 123456)),
        (["31.12.2024 23:59"], "timestamp[us]", dt.datetime(2024, 12, 31, 23, 59)),
        (["12/31/2024 11:59:59 PM", "1/2/2024 12:00 AM"], "timestamp[us]",
         dt.datetime(2024, 12, 31, 23, 59, 59)),
        (["2024-01-01 24:00:00"], "string", "2024-01-01 24:00:00"),
        (["2024-01-02T03:04:05+02:00", "2024-01-02 03:04:05Z"], "timestamp[us, tz=UTC]",
         dt.datetime(2024, 1, 2, 1, 4, 5, tzinfo=dt.UTC)),
        (["2024-01-02T03:04:05Z", "2024-01-02T03:04:05"], "string", "2024-01-02T03:04:05Z"),
        (["12:30:00", "23:59:59"], "time64[us]", dt.time(12, 30)),
        (["9:05", "23:59"], "time64[us]", dt.time(9, 5)),
        (["25:00:00", "12:30:00"], "string", "25:00:00"),
        (["12%", "13%"], "string", "12%"),
        (["$12.50", "$3.00"], "string", "$12.50"),
        (["1,234.50", "12.00"], "decimal128(18, 2)", Decimal("1234.50")),
        (["1.234,50", "12,00"], "decimal128(18, 2)", Decimal("1234.50")),
        (["1 234,50", "12,00"], "decimal128(18, 2)", Decimal("1234.50")),
        (["1\u00a0234", "12"], "int64", 1234),
        (["1'234.50", "12.00"], "decimal128(18, 2)", Decimal("1234.50")),
        (["1,234,567", "1"], "int64", 1234567),
        (["1.5", "2,5"], "string", "1.5"),
        (["x", "1", "2024-01-01"], "string", "x"),
        ([" 1", "2 "], "int64", 1),
        ([" a", "b"], "string", " a"),
    ],
)  # fmt: skip
def test_types(folder: Folder, cells: list[str], kind: str, first: Any) -> None:
    read = column(folder, *cells)
    assert read.columns["value"] == kind
    assert read.column("value")[0] == first
    if kind == "string":
        assert read.column("value") == cells


def test_nanoseconds(folder: Folder) -> None:
    read = column(folder, "2024-01-02 03:04:05.123456789")
    assert read.columns["value"] == "timestamp[ns]"
    assert read.column("value")[0].nanosecond == 789


def test_null_words_only_where_the_rest_is_of_one_type(folder: Folder) -> None:
    read = column(folder, "1", "NA", "-", "", "n/a")
    assert read.column("value") == [1, None, None, None, None]
    assert "'-', 'NA', 'n/a' read as NULL" in read.warned
    read = column(folder, "x", "NA", "-", "")
    assert read.column("value") == ["x", "NA", "-", None]
    assert not read.warned


def test_quoted_empty_cells_are_null_among_numbers_only(folder: Folder) -> None:
    read = folder.read("a.csv", '"n","t"\n"1","a"\n"",""\n')
    assert read.rows == [(1, "a"), (None, "")]


def test_null_words_of_the_user(folder: Folder) -> None:
    read = column(folder, "1", "missing", "NA", nulls=("missing",))
    assert read.column("value") == ["1", None, "NA"]
    read = folder.read("b.csv", "n,t\n1,missing\n-99,x\n", nulls=("missing", "-99"))
    assert read.rows == [(1, None), (None, "x")]


def test_a_type_holds_for_all_rows_not_for_a_sample(folder: Folder) -> None:
    body = "".join(f"{i},{i % 28 + 1:02}/01/2024,0\n" for i in range(1, 50_000))
    read = folder.read("a.csv", "id,d,z\n" + body + "x,01/02/2024,1.5\n")
    assert read.columns == {"id": "string", "d": "date32[day]", "z": "decimal128(18, 1)"}
    assert read.column("id")[0] == "1"


def test_ambiguous_dates_stay_text_and_say_so(folder: Folder) -> None:
    read = column(folder, "01/02/2024", "03/04/2024")
    assert read.column("value") == ["01/02/2024", "03/04/2024"]
    assert 'set dates = "dmy" or "mdy"' in read.warned
    for order, month in (("dmy", 2), ("mdy", 1)):
        found = column(folder, "01/02/2024", "03/04/2024", dates=order)
        assert found.column("value")[0].month == month
    read = column(folder, "01/02/24")
    assert read.columns["value"] == "string"
    assert "two digits" in read.warned
    assert column(folder, "01/02/24", dates="dmy").column("value") == [dt.date(2024, 2, 1)]


def test_another_column_decides_ambiguous_dates(folder: Folder) -> None:
    read = folder.read("a.csv", "a,b\n31/12/2024,01/02/2024\n02/03/2024,03/04/2024\n")
    assert read.column("b")[0] == dt.date(2024, 2, 1)
    assert "column 'b': dates as day/month/year" in read.guessed


def test_decimal_marks_that_could_separate_thousands(folder: Folder) -> None:
    assert folder.read("a.csv", "a,b\n1.234,x\n2.345,y\n").column("a")[0] == Decimal("1.234")
    assert folder.read("b.csv", 'a,b\n"1,234",x\n"12,345",y\n').column("a") == [1234, 12345]
    read = folder.read("c.csv", "a;b\n1.234;x\n2.345;y\n")
    assert read.column("a") == ["1.234", "2.345"]
    assert 'set decimal = "." or ","' in read.warned
    assert folder.read("c.csv", decimal=",").column("a") == [1234, 2345]
    assert folder.read("c.csv", decimal=".").column("a")[0] == Decimal("1.234")
    read = folder.read("d.csv", "a;b\n1.234;1,5\n2.345;2,25\n")
    assert read.column("a") == [1234, 2345]


def test_types_of_the_user(folder: Folder) -> None:
    text = "zip,n,d,f,when\n01234,5,1.5,007,2024-01-02\n99999,6,2.25,8,2024-01-03\n"
    kinds = {"ZIP": "int64", "n": "string", "d": "double", "f": "decimal(9, 2)", "when": "string"}
    read = folder.read("a.csv", text, types=kinds)
    assert read.rows[0] == (1234, "5", 1.5, Decimal("7.00"), "2024-01-02")
    assert read.columns["f"] == "decimal128(9, 2)"
    read = folder.read("a.csv", types={"nothing": "string"})
    assert "'nothing', which is no column" in read.warned


def test_a_value_that_is_not_of_the_users_type(folder: Folder) -> None:
    text = "a,b\n1,x\n2,y\n\nthree,z\n"
    with pytest.raises(UsageError, match=r"a\.csv' line 5: column 'a' holds 'three'") as caught:
        folder.read("a.csv", text, types={"a": "int64"})
    assert "types.a" in caught.value.hint
    with pytest.raises(UsageError, match=r"holds '1\.55'"):
        folder.read("b.csv", "a,b\n1.5,x\n1.55,y\n", types={"a": "decimal(5,1)"})
    with pytest.raises(UsageError, match="holds '01/02/2024'"):
        folder.read("c.csv", "a,b\n01/02/2024,x\n03/04/2024,x\n", types={"a": "date"})


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"decimal": ";"}, "decimal"),
        ({"thousands": "ab"}, "thousands"),
        ({"dates": "dym"}, "dates"),
        ({"delimiter": ";;"}, "delimiter"),
        ({"header": -1}, "header"),
        ({"types": {"a": "float"}}, "types.a"),
        ({"types": {"a": "decimal(40,2)"}}, "types.a"),
    ],
)
def test_settings_that_mean_nothing(folder: Folder, settings: dict[str, Any], name: str) -> None:
    with pytest.raises(UsageError, match=name.replace(".", r"\.")):
        folder.read("a.csv", "a,b\n1,2\n", **settings)


def test_times_never_become_days_of_1970(folder: Folder) -> None:
    read = folder.read("a.csv", "id,at\n1,08:15\n2,17:30:30\n")
    assert read.column("at") == [dt.time(8, 15), dt.time(17, 30, 30)]


def test_lists_with_commas_beside_decimal_points(folder: Folder) -> None:
    read = folder.read("a.csv", 'price,tags\n12.50,"1,2"\n3.25,"4,5"\n')
    assert read.column("tags") == ["1,2", "4,5"]
    assert 'set decimal = ","' in read.warned
    read = folder.read("b.csv", 'price,n\n"12,50",1\n"3,25",2\n')
    assert read.column("price") == [Decimal("12.50"), Decimal("3.25")]


def test_few_cells_that_keep_a_column_from_its_type_are_named(folder: Folder) -> None:
    lines = [f"{i}.50,2024-01-{i % 28 + 1:02},{i:05},name {i},{i}" for i in range(100)]
    text = "\n".join(["a,d,zip,name,half", *lines, "n.n.,soon,x,y,z", *["1,,,,q"] * 99])
    warned = folder.read("a.csv", text).warned
    assert "column 'a' is kept as text: nearly all cells are numbers, but not 'n.n.'" in warned
    assert "column 'd' is kept as text: nearly all cells are dates, but not 'soon'" in warned
    assert "'zip'" not in warned  # leading zeros are told already
    assert "'name'" not in warned
    read = folder.read("a.csv", nulls=("n.n.", "soon"))
    assert (read.columns["a"], read.columns["d"]) == ("decimal128(18, 2)", "date32[day]")


def test_such_a_cell_may_come_late(folder: Folder) -> None:
    text = "\n".join(["a,b", *[f"{i},x" for i in range(400_000)], "oops,y"])
    assert "but not 'oops'" in folder.read("a.csv", text).warned


def test_numbers_that_are_texts_are_not_told_of(folder: Folder) -> None:
    rows = [{"a": str(i), "b": i} for i in range(100)] + [{"a": "x", "b": "y"}]
    warned = folder.read("a.json", json.dumps(rows)).warned
    assert "column 'a'" not in warned
    assert "column 'b' is kept as text: nearly all cells are numbers, but not 'y'" in warned
