from __future__ import annotations

import datetime as dt
import io
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from dbrag.sources.files.office import sheet_facts

from .conftest import Folder, load


def workbook(fill: Callable[[Any], object]) -> bytes:
    book = openpyxl.Workbook()
    fill(book)
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def rows(*lines: list[Any]) -> Callable[[Any], object]:
    return lambda book: [book.active.append(line) for line in lines]


def test_values_keep_their_types(folder: Folder) -> None:
    at = dt.datetime(2024, 1, 2, 3, 4, 5)
    content = workbook(
        rows(
            ["id", "at", "day", "time", "ok", "share", "code", "big", "mixed"],
            [1, at, dt.date(2024, 1, 2), dt.time(3, 4), True, 0.125, "007", 2**53, 1],
            [2, None, dt.date(2024, 3, 2), dt.time(23, 59, 59), False, 0.5, "8", 5, "x"],
        )
    )
    read = folder.read("Staff.xlsx", content)
    assert read.table.name == "Staff"
    assert read.table.sheet == "Sheet"
    assert read.columns == {
        "id": "int64", "at": "timestamp[us]", "day": "date32[day]", "time": "time64[us]",
        "ok": "bool", "share": "decimal128(18, 3)", "code": "string", "big": "int64",
        "mixed": "string",
    }  # fmt: skip
    assert read.rows[0] == (
        1, at, dt.date(2024, 1, 2), dt.time(3, 4), True, Decimal("0.125"), "007", 2**53, "1",
    )  # fmt: skip
    assert read.rows[1][1] is None


def test_sheets(folder: Folder) -> None:
    def fill(book: Any) -> None:
        book.active.title = "一月"
        book.active.append(["a", 2019, 2020])
        book.active.append(["x", 1, 2])
        book.active.append(["y", 3, "-"])
        book.create_sheet("Empty")
        second = book.create_sheet("Q 2")
        second.append(["b"])
        second.append(["z"])
        hidden = book.create_sheet("Lists")
        hidden.append(["c"])
        hidden.append(["w"])
        hidden.sheet_state = "hidden"

    folder.write("Plan.xlsx", workbook(fill))
    tables, skipped = folder.find("Plan.xlsx")
    assert [table.name for table in tables] == ["Plan_一月", "Plan_Q 2"]
    assert [table.sheet for table in tables] == ["一月", "Q 2"]
    assert [one.reason for one in skipped] == [
        "has a hidden sheet 'Lists': name it in sheets to read it"
    ]
    first = load(tables[0])
    assert list(first.columns) == ["a", "2019", "2020"]
    assert first.rows == [("x", 1, 2), ("y", 3, None)]
    tables, skipped = folder.find("Plan.xlsx", sheets=("Lists", "No"))
    assert [table.name for table in tables] == ["Plan"]
    assert load(tables[0]).rows == [("w",)]
    assert "no sheet 'No'" in skipped[0].reason


def test_titles_groups_of_columns_and_merged_cells(folder: Folder) -> None:
    def fill(book: Any) -> None:
        sheet = book.active
        sheet["B2"] = "Quarterly report"
        sheet.merge_cells("B2:F2")
        sheet["B4"], sheet["C4"], sheet["E4"] = "Region", 2023, 2024
        for place in ("B4:B5", "C4:D4", "E4:F4"):
            sheet.merge_cells(place)
        for number, name in enumerate(("q1", "q2", "q1", "q2")):
            sheet.cell(5, 3 + number, name)
        for line, values in enumerate((["N", 1, 2, 3, 4.5], ["S", 5, 6, 7, 8]), 6):
            for number, value in enumerate(values):
                sheet.cell(line, 2 + number, value)
        sheet["B8"], sheet["C8"], sheet["C9"] = "W", 1, 2
        sheet.merge_cells("B8:B9")

    read = folder.read("a.xlsx", workbook(fill))
    assert list(read.columns) == ["Region", "2023 q1", "2023 q2", "2024 q1", "2024 q2"]
    assert read.rows[0] == ("N", 1, 2, 3, Decimal("4.5"))
    assert read.rows[2:] == [("W", 1, None, None, None), (None, 2, None, None, None)]
    assert "header in row 5" in read.guessed
    assert "1 merged ranges" in read.warned


def test_a_merged_name_stands_above_each_of_its_columns(folder: Folder) -> None:
    def fill(book: Any) -> None:
        rows(["id", "phone", None], [1, "a", "b"], [2, "c", "d"])(book)
        book.active.merge_cells("B1:C1")

    read = folder.read("a.xlsx", workbook(fill))
    assert list(read.columns) == ["id", "phone", "phone_2"]
    assert read.rows == [(1, "a", "b"), (2, "c", "d")]


def test_blank_rows_and_columns_around_and_within(folder: Folder) -> None:
    def fill(book: Any) -> None:
        sheet = book.active
        for line, values in ((5, ["a", None, "b"]), (6, [1, None, 2]), (8, [3, None, 4])):
            for number, value in enumerate(values):
                sheet.cell(line, 4 + number, value)

    read = folder.read("a.xlsx", workbook(fill))
    assert list(read.columns) == ["a", "b"]
    assert read.rows == [(1, 2), (3, 4)]


def test_errors_in_cells_are_null_and_counted(folder: Folder) -> None:
    def fill(book: Any) -> None:
        rows(["a", "b"], [1, 2], [3, "#N/A"], [5, "#DIV/0!"])(book)
        for place in ("B3", "B4"):
            book.active[place].data_type = "e"

    read = folder.read("a.xlsx", workbook(fill))
    assert read.rows == [(1, 2), (3, None), (5, None)]
    assert "2 cells with an error like #N/A read as NULL" in read.warned


def test_no_header(folder: Folder) -> None:
    content = workbook(rows(*([i, i * 1.5, f"t{i}"] for i in range(5))))
    read = folder.read("a.xlsx", content)
    assert list(read.columns) == ["column_1", "column_2", "column_3"]
    assert len(read.rows) == 5


def test_a_header_can_be_named(folder: Folder) -> None:
    content = workbook(rows(["x", "y"], ["first", "second"], [1, 2]))
    read = folder.read("a.xlsx", content, header=2)
    assert list(read.columns) == ["first", "second"]
    assert read.rows == [(1, 2)]
    assert len(folder.read("a.xlsx", header=0).rows) == 3


def test_a_wrong_type_names_the_row_of_the_sheet(folder: Folder) -> None:
    from dbrag.errors import UsageError

    content = workbook(rows(["a", "b"], [1, 2], [None, None], ["x", 3]))
    with pytest.raises(UsageError, match=r"line 4: column 'a' holds 'x'"):
        folder.read("a.xlsx", content, types={"a": "int64"})


@pytest.mark.parametrize("name", ["a.xlsx", "a.xls", "a.xlsb", "a.ods"])
@pytest.mark.parametrize("content", [b"PK\x03\x04nonsense", b"nonsense" * 100])
def test_damaged_workbooks(folder: Folder, name: str, content: bytes) -> None:
    assert "no workbook" in folder.reason(name, content)


def test_cut_workbooks_never_crash(folder: Folder) -> None:
    content = workbook(rows(["a", "b"], [1, 2]))
    for cut in range(100, len(content), 397):
        assert folder.reason("a.xlsx", content[:cut])


def test_empty_workbooks(folder: Folder) -> None:
    assert folder.reason("a.xlsx", workbook(lambda book: None)) == "has only empty sheets"


def test_a_far_off_cell_takes_no_memory(folder: Folder) -> None:
    def fill(book: Any) -> None:
        book.active.cell(1, 1, "a")
        book.active.cell(1_048_576, 16_384, "b")

    assert "spread over" in folder.reason("a.xlsx", workbook(fill))


def test_a_bomb_is_refused(folder: Folder) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"\0" * (100 << 20))
    assert "refused" in folder.reason("a.xlsx", data.getvalue())


def test_open_document(folder: Folder) -> None:
    def cell(kind: str, value: str) -> str:
        attribute = {"float": "value", "date": "date-value", "boolean": "boolean-value"}.get(kind)
        inner = f' office:{attribute}="{value}"' if attribute else ""
        return (
            f'<table:table-cell office:value-type="{kind}"{inner}><text:p>{value}</text:p>'
            "</table:table-cell>"
        )

    lines = [
        [cell("string", name) for name in ("id", "name", "day", "ok")],
        [cell("float", "1"), cell("string", "Zoë"), cell("date", "2024-01-02"),
         cell("boolean", "true")],
        [cell("float", "2"), cell("string", "x"), cell("date", "2024-03-04"),
         cell("boolean", "false")],
    ]  # fmt: skip
    body = "".join(f"<table:table-row>{''.join(line)}</table:table-row>" for line in lines)
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {names}><office:body>'
        f'<office:spreadsheet><table:table table:name="S">{body}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", content)
    read = folder.read("a.ods", data.getvalue())
    assert read.rows == [
        (1, "Zoë", dt.date(2024, 1, 2), True),
        (2, "x", dt.date(2024, 3, 4), False),
    ]


def test_a_sheet_that_cannot_be_read_does_not_keep_the_others(folder: Folder) -> None:
    def fill(book: Any) -> None:
        rows(["t", "u"], ["a", "b"], [1, 2])(book)
        book.create_sheet("Short").append(["x", "y"])

    folder.write("a.xlsx", workbook(fill))
    tables, skipped = folder.find("a.xlsx", header=2)
    assert [load(table).rows for table in tables] == [[(1, 2)]]
    assert "no header in row 2" in skipped[0].reason


def test_formulas_without_a_saved_value_are_counted(folder: Folder) -> None:
    def fill(book: Any) -> None:
        rows(["n", "twice"], *([i, f"=A{i + 2}*2"] for i in range(3)))(book)

    read = folder.read("a.xlsx", workbook(fill))
    assert read.column("n") == [0, 1, 2]
    assert "3 formulas without a saved value read as NULL" in read.warned


def test_formulas_with_a_value_or_an_empty_text_are_not_counted(tmp_path: Path) -> None:
    cells = (
        '<c r="A1"><f>1+1</f><v>2</v></c><c r="A2" t="str"><f>""</f><v></v></c>'
        '<c r="A3"><f>SUM(A1)</f></c><c r="A4" s="1"><f t="shared" si="0"/><v/></c>'
        '<c r="A5"/><c r="A6"><v></v></c>'
    )
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", '<sheets><sheet name="S" r:id="r1"/></sheets>')
        link = '<Relationship Id="r1" Target="worksheets/sheet1.xml"/>'
        archive.writestr("xl/_rels/workbook.xml.rels", link)
        sheet = f"<worksheet><sheetData><row>{cells}</row></sheetData></worksheet>"
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
    facts = sheet_facts(str(path))["S"]
    assert (facts.cells, facts.blank, facts.errors) == (6, 2, 0)
