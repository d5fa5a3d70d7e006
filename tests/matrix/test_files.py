"""Data files as people have them."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

from tests.matrix.beds import Bed, FilesBed

if TYPE_CHECKING:
    from collections.abc import Callable

    Connect = Callable[..., Any]

kind = pytest.mark.kind

SALES = "Größe;Preis;Datum\r\n38;1.234,50;31.12.2024\r\n007;0,75;01.02.1969\r\n"

# file name → bytes
FILES = {
    "UTF-8 with BOM, semicolons, decimal commas": ("s.csv", b"\xef\xbb\xbf" + SALES.encode()),
    "cp1252": ("s.csv", SALES.encode("cp1252")),
    "UTF-16": ("s.csv", SALES.encode("utf-16")),
    "tabs": ("s.tsv", SALES.replace(";", "\t").encode()),
    "compressed": ("s.csv.gz", gzip.compress(SALES.encode(), mtime=0)),
}


def folder(bed: Bed) -> Any:
    if not isinstance(bed, FilesBed):
        pytest.skip("databases hold typed tables, not files of text")
    return bed.folder


@pytest.mark.parametrize(
    ("name", "content"),
    [pytest.param(*v, marks=kind(f"file: {k}"), id=k) for k, v in FILES.items()],
)
def test_a_file_of_text(bed: Bed, connect: Connect, name: str, content: bytes) -> None:
    (folder(bed) / name).write_bytes(content)
    with connect() as db:
        rows = db.sql('SELECT "Größe", Preis, Datum FROM s ORDER BY Preis').to_dict()["rows"]
    assert rows == [["007", "0.75", "1969-02-01"], ["38", "1234.50", "2024-12-31"]]


@kind("file: Excel with a title, an empty sheet, dates")
def test_a_workbook(bed: Bed, connect: Connect) -> None:
    from datetime import date

    import openpyxl

    place = folder(bed)
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["Sales of 2024"], [], ["Shop", "Day", "Sold"], ["North", date(2024, 5, 1), 3]):
        sheet.append(row)
    book.create_sheet("nothing here")
    book.save(place / "report.xlsx")
    with connect() as db:
        db.index()
        (table,) = db.opened_index().catalog.tables
        assert [c.name for c in table.columns] == ["Shop", "Day", "Sold"]
        answer = db.sql("SELECT Day, Sold FROM report")
    assert answer.to_dict()["rows"] == [["2024-05-01", 3]]


@kind("file: JSON lines with differing keys")
def test_json_lines(bed: Bed, connect: Connect) -> None:
    lines = '{"id": 12345678901234567890, "a": "x"}\n{"id": 2, "b": {"c": 1.10}}\n'
    (folder(bed) / "events.jsonl").write_text(lines)
    with connect() as db:
        rows = db.sql("SELECT id, a FROM events ORDER BY id DESC").to_dict()["rows"]
    assert [[str(id_), a] for id_, a in rows] == [["12345678901234567890", "x"], ["2", None]]


@kind("file: an unreadable one is named")
def test_an_unreadable_file_is_named(bed: Bed, connect: Connect) -> None:
    place = folder(bed)
    (place / "good.csv").write_text("a,b\n1,x\n")
    (place / "broken.parquet").write_bytes(b"PAR1 this is none")
    with connect() as db:
        db.index()
        warnings = db.search("a").warnings
    assert any("broken.parquet" in warning.message for warning in warnings)
