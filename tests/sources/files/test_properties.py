from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbrag.options import FileOptions, OpenOptions
from dbrag.sources.files import find_tables

from .conftest import load

SETTINGS = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TRICKY = st.sampled_from(
    ["", '"', '""', ",", ";", "\n", "\r\n", "\r", "a\nb", "'", "\\", '\\"', " x ", "x", "007", "NA",
     "1.5", "1,5", "2024-01-01", "#", "=1", "\t", "|", "\ufeff", "\0", "true", "12:30"]
)  # fmt: skip
CELLS = st.one_of(TRICKY, TEXTS)


def read_one(name: str, content: bytes, **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        files = {"*": FileOptions(**options)}
        tables, skipped = find_tables(str(path), OpenOptions(cache=Path(folder) / "c", files=files))
        return [load(table) for table in tables], skipped


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(1, 5))
    return draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=8))


@SETTINGS
@given(
    tables(),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)
def test_texts_come_back_as_they_were_written(
    rows: list[list[str]], delimiter: str, quoting: Any, end: str, final: bool
) -> None:
    names = [f"c{i}" for i in range(len(rows[0]))]
    if quoting == csv.QUOTE_MINIMAL:
        end = "\r\n"  # the writer quotes no other line ends than its own
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerow(names)
    writer.writerows(rows)
    text = file.getvalue()
    if not final and not rows[-1][-1].endswith(("\n", "\r")):
        text = text.removesuffix(end)
    found, skipped = read_one(
        "a.csv",
        text.encode("utf-8"),
        delimiter=delimiter,
        header=1,
        encoding="utf-8",
        types=dict.fromkeys(names, "string"),
    )
    assert not skipped
    assert list(found[0].columns) == names
    got = [[cell or "" for cell in row] for row in found[0].rows]
    assert got == rows
    if quoting == csv.QUOTE_ALL:
        assert all(cell is not None for row in found[0].rows for cell in row)


@SETTINGS
@given(tables(), st.sampled_from([",", ";", "\t", "|"]))
def test_guessed_types_never_change_a_text(rows: list[list[str]], delimiter: str) -> None:
    names = [f"c{i}" for i in range(len(rows[0]))]
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    found, _ = read_one("a.csv", file.getvalue().encode(), delimiter=delimiter, header=1)
    for place, kind in enumerate(found[0].columns.values()):
        if kind == "string":
            assert [row[place] for row in found[0].rows] == [row[place] for row in rows]
        else:
            filled = [row[place].strip() for row in rows]
            for value, text in zip([row[place] for row in found[0].rows], filled, strict=True):
                assert (value is None) == (text.lower() in ("", "na")) or text in ".-?"


@SETTINGS
@given(st.binary(max_size=400), st.sampled_from(["a.csv", "a.tsv", "a.json", "a.jsonl"]))
def test_arbitrary_bytes_are_read_or_named(content: bytes, name: str) -> None:
    found, skipped = read_one(name, content)
    assert found or skipped


@SETTINGS
@given(st.lists(CELLS, max_size=30).map("".join), st.sampled_from(["a.csv", "a.txt", "a.json"]))
def test_arbitrary_text_is_read_or_named(text: str, name: str) -> None:
    found, skipped = read_one(name, text.encode("utf-8"))
    assert found or skipped


@settings(max_examples=30, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from(
        ["a.xlsx", "a.xls", "a.ods", "a.parquet", "a.feather", "a.zip", "a.csv.gz", "a.csv.zst",
         "a.csv.bz2", "a.csv.xz"]
    ),
)  # fmt: skip
def test_arbitrary_bytes_in_other_formats_are_named(content: bytes, name: str) -> None:
    found, skipped = read_one(name, content)
    assert found or skipped


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@SETTINGS
@given(JSON, st.booleans())
def test_arbitrary_json_is_read_or_named(value: Any, lines: bool) -> None:
    found, skipped = read_one("a.jsonl" if lines else "a.json", json.dumps(value).encode())
    assert found or skipped


@SETTINGS
@given(
    st.lists(st.fixed_dictionaries({"t": TEXTS, "i": st.integers(-(10**30), 10**30)}), min_size=1)
)
def test_json_values_are_exact(rows: list[dict[str, Any]]) -> None:
    found, _ = read_one("a.json", json.dumps(rows).encode(), types={"t": "string"})
    assert [int(value) for value in found[0].column("i")] == [row["i"] for row in rows]
    assert found[0].column("t") == [row["t"] for row in rows]
