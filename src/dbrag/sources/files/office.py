"""What the spreadsheet reader does not tell of an .xlsx file: errors and far-off cells."""

from __future__ import annotations

import html
import re
import zipfile
import zlib
from dataclasses import dataclass

_BLOCK = 1 << 20
_SHEET = re.compile(r"<(?:\w+:)?sheet\b[^>]*>")
_RELATION = re.compile(r"<(?:\w+:)?Relationship\b[^>]*>")
_CELL = re.compile(rb'<(?:\w+:)?c r="([A-Z]{1,3})(\d{1,7})"')
_NO_VALUE = re.compile(
    rb"<(?:\w+:)?c ([^>]*)>\s*<(?:\w+:)?f\b(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>|</(?:\w+:)?c>)"
)
_ERROR = re.compile(rb'<(?:\w+:)?c [^>]*\bt="e"')


@dataclass(frozen=True, slots=True)
class SheetFacts:
    """Of one sheet: cells that exist, the area they span, cells that hold an error.

    ``blank`` counts formulas without a saved value: the program that wrote the file did
    not compute them, as openpyxl does not.
    """

    cells: int
    area: int
    errors: int
    blank: int = 0


def sheet_facts(path: str) -> dict[str, SheetFacts]:
    """Facts by sheet name; empty where the file is of another kind."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if "xl/workbook.xml" not in names:
                return {}
            book = archive.read("xl/workbook.xml").decode("utf-8", "replace")
            links = archive.read("xl/_rels/workbook.xml.rels").decode("utf-8", "replace")
            targets = {}
            for tag in _RELATION.findall(links):
                target = _attribute(tag, "Target").lstrip("/")
                targets[_attribute(tag, "Id")] = target if target[:3] == "xl/" else f"xl/{target}"
            facts = {}
            for tag in _SHEET.findall(book):
                member = targets.get(_attribute(tag, "id"), "")
                if member in names:
                    facts[_attribute(tag, "name")] = _facts(archive, member)
            return facts
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError):
        return {}


def _attribute(tag: str, name: str) -> str:
    match = re.search(rf'[\s:]{name}="([^"]*)"', tag)
    return html.unescape(match[1]) if match else ""


def _facts(archive: zipfile.ZipFile, member: str) -> SheetFacts:
    cells = errors = blank = 0
    columns: set[bytes] = set()
    low, high = 1 << 30, 0
    rest = b""
    with archive.open(member) as stream:
        while block := stream.read(_BLOCK):
            block = rest + block
            # A cell is looked at whole.
            cut = max(block.rfind(b"<c "), block.rfind(b"</sheetData"))
            if cut < 0:
                cut = block.rfind(b"<") if len(block) > 1 else 0
            rest, block = block[cut:], block[:cut]
            if len(rest) > _BLOCK:
                rest = b""
            errors += len(_ERROR.findall(block))
            blank += sum(b't="str"' not in cell for cell in _NO_VALUE.findall(block))
            for column, row in _CELL.findall(block):
                cells += 1
                columns.add(column)
                number = int(row)
                low, high = min(low, number), max(high, number)
    if not cells:
        return SheetFacts(0, 0, errors, blank)
    places = [_place(column) for column in columns]
    area = (high - low + 1) * (max(places) - min(places) + 1)
    return SheetFacts(cells, area, errors, blank)


def _place(column: bytes) -> int:
    place = 0
    for letter in column:
        place = place * 26 + letter - 64
    return place
