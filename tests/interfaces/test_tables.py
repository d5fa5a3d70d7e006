"""Rows as text: nothing is cut but on a terminal, and nothing odd reaches the terminal."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dbrag.interfaces.cli.tables import aligned, cell_text

ROWS = st.lists(st.tuples(st.text(), st.integers(), st.none() | st.text()), max_size=6)


def test_alignment() -> None:
    lines = aligned(("name", "n"), [("a", 1), ("李雷", 1000), (None, None)])
    assert lines == ["name     n", "----  ----", "a        1", "李雷  1000", "NULL  NULL"]


def test_decimals_and_repeated_names() -> None:
    lines = aligned(("n", "n"), [(Decimal("1.10"), "x")])
    assert lines[-1] == "1.10  x"


def test_no_rows() -> None:
    assert aligned(("a", "b"), []) == ["a  b", "-  -"]


def test_nothing_is_cut_elsewhere() -> None:
    long = "x" * 10_000
    lines = aligned(("a", "b"), [(long, 1), ("y", 2)])
    assert lines[2].startswith(long)
    assert len(lines[3]) < 100  # one long cell does not pad the others


def test_a_long_cell_is_cut_and_marked_on_a_terminal() -> None:
    lines = aligned(("a", "b"), [("x" * 100, "short")], width=40)
    assert lines[-1] == "x" * 32 + "…  short"
    wide = aligned(("a", "b"), [("李" * 100, "short")], width=40)
    assert "…" in wide[-1]
    assert cell_len(wide[-1]) <= 40


def test_a_long_cut_says_how_much_is_missing() -> None:
    lines = aligned(("a", "b"), [("x" * 10_000, 1)], width=60)
    shown, _, rest = lines[-1].partition("… ")
    assert rest.startswith(f"{10_000 - len(shown):,} more characters")
    assert cell_len(lines[-1]) <= 60
    wide = aligned(("a",), [("李\u0301" * 5_000,)], width=60)
    shown, _, rest = wide[-1].partition("… ")
    assert rest == f"{10_000 - len(shown):,} more characters"
    narrow = aligned(("a", "b"), [("x" * 10_000, "y" * 500)], width=40)
    assert narrow[-1].count("…") == 2
    assert all(cell_len(line) <= 40 for line in narrow)


def test_many_columns_become_records() -> None:
    names = [f"column {i}" for i in range(500)]
    lines = aligned(names, [tuple(range(500))], width=80)
    assert lines[0] == "-- row 1"
    assert lines[-1].split() == ["column", "499", "499"]
    assert len(lines) == 501


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        ("NULL", "'NULL'"),
        ("", ""),
        ([None, "", Decimal("1.10")], '[null, "", "1.10"]'),
        ({"a": "\x1b[2J"}, '{"a": "\\u001b[2J"}'),
        ("\x9b31m", "\\x9b31m"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\u202eevil", "\\u202eevil"),
        (b"\x00", "AA=="),
        (True, "True"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("東京都\u3000千代田区", "東京都\u3000千代田区"),
        ("ad\u200dmin", "ad\\u200dmin"),  # hidden in a plain word
        ("x\u3000", "x\\u3000"),
        ("\u200cم", "\\u200cم"),
        ("שלום\u200f", "שלום\\u200f"),
    ],
)
def test_cells(value: object, text: str) -> None:
    assert cell_text(value) == text


@given(ROWS, st.integers(20, 200))
def test_a_terminal_table_never_overflows(rows: list, width: int) -> None:
    for line in aligned(("one", "two", "three"), rows, width=width):
        assert cell_len(line) <= width
        assert "\n" not in line
        assert re.sub("[\u200c\u200d\u3000]", "", line).isprintable()


@given(ROWS)
def test_every_cell_is_there_whole(rows: list) -> None:
    lines = aligned(("one", "two", "three"), rows)
    for row, line in zip(rows, lines[2:], strict=True):
        for value in row:
            assert cell_text(value).rstrip() in line
