"""What a person sees in a real terminal, and what a pipe gets."""

from __future__ import annotations

import os
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.conftest import connect

pty = pytest.importorskip("pty")

RUN = "import sys; from dbrag.interfaces.cli import main; sys.exit(main(sys.argv[1:]))"
BOXES = "│┃─━┌┐└┘├┤┬┴┼╭╮╰╯═║"
LONG = "x" * 5_000


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Long values, wide ones, right-to-left ones, emoji, and what would steer a terminal."""
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, what TEXT, text TEXT)")
        rows = [
            ("long", LONG),
            ("wide", "東京都\u3000千代田区" * 20),
            ("right to left", "שלום עולם " * 30),
            ("joined", "می\u200cخواهم " * 20),
            ("emoji", "👨\u200d👩\u200d👧👍🏽🇵🇹⚠️" * 15),
            ("marks", "e\u0301" * 90),
            ("steering", "\x1b[31mred\x1b[0m\r\n\u202eevil"),
            ("none", None),
        ]
        connection.executemany("INSERT INTO odd (what, text) VALUES (?, ?)", rows)
    return path


def in_terminal(columns: int, *arguments: str | Path, **environ: str) -> tuple[list[str], int]:
    """The lines that a command writes to a terminal of that width, and its exit code."""
    import fcntl
    import termios

    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *map(str, arguments)],
        stdout=side,
        stderr=subprocess.DEVNULL,
        env={**env, "PYTHONIOENCODING": "utf-8", "TERM": "xterm-256color", **environ},
    )
    os.close(side)
    data = b""
    while True:
        try:
            piece = os.read(main, 65_536)
        except OSError:  # Linux: the other side is closed
            break
        if not piece:
            break
        data += piece
    os.close(main)
    return data.decode().replace("\r\n", "\n").split("\n"), process.wait(timeout=300)


@pytest.mark.parametrize("columns", [20, 60])
def test_a_table_fits_the_terminal(odd: Path, columns: int) -> None:
    lines, code = in_terminal(columns, "sql", "-s", odd, "SELECT * FROM odd", "-q")
    assert code == 0
    assert len(lines) > 8
    for line in lines:
        assert cell_len(line) <= columns
        assert "\x1b" not in line
        assert not set(line) & set(BOXES)
    if columns == 60:
        assert any("more characters" in line for line in lines)
        assert any("👨\u200d👩\u200d👧" in line for line in lines)
        assert any("\\x1b[31mred" in line for line in lines)


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}])
def test_there_are_no_colours_to_switch_off(odd: Path, environ: dict[str, str]) -> None:
    lines, _ = in_terminal(80, "sql", "-s", odd, "SELECT id FROM odd", **environ)
    assert "\x1b" not in "".join(lines)


def test_csv_in_a_terminal_does_not_steer_it(odd: Path) -> None:
    statement = "SELECT text FROM odd WHERE what = 'steering'"
    lines, _ = in_terminal(80, "sql", "-s", odd, statement, "--csv", "-")
    assert "\x1b" not in "".join(lines)


def test_a_pipe_gets_everything(cli, odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = cli("sql", "-s", odd, "SELECT * FROM odd", "-q").out
    lines = out.splitlines()
    assert len(lines) == 11
    assert LONG in lines[2]
    assert "…" not in out
    assert "東京都\u3000千代田区" * 20 in out
    assert "👨\u200d👩\u200d👧👍🏽🇵🇹⚠️" * 15 in out
    assert ("می\u200cخواهم " * 20).rstrip() in out  # blanks at the end of a line are not seen
    assert "\x1b" not in out
    assert "\\u202eevil" in out
    assert not set(out) & set(BOXES)


def test_other_commands_in_a_pipe_cut_nothing(cli, fake, monkeypatch: pytest.MonkeyPatch) -> None:
    from dbrag.interfaces.cli.render import status_lines, trace_lines

    monkeypatch.setenv("COLUMNS", "40")
    for command in (("search", "q"), ("status",), ("index",)):
        out = cli(*command, "-s", "a.db").out
        assert "…" not in out
        assert not set(out) & set(BOXES)
    state = {"index": "/i", "exists": True, "encoder": {"sha256": "8" * 64}, "sources": []}
    assert "8" * 64 in "\n".join(status_lines(state))
    assert LONG in "\n".join(trace_lines([{"stage": "select", "tables": {"a": [LONG]}}]))


def test_evidence_of_a_table_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rows of ``search --explain`` are measured in columns, not in characters."""
    import dbrag.interfaces.cli.render as render
    from dbrag.types import Candidate, TableRef

    monkeypatch.setattr(render, "terminal_width", lambda: 50)
    one = Candidate(TableRef("s", None, "t"), 1.0, {}, ({"text": "東京都" * 30},), (), "x")
    assert all(cell_len(line) <= 50 for line in render.candidate_lines(one))


def test_what_was_learned_fits_the_terminal(odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dbrag.interfaces.cli.render as render
    from dbrag.interfaces.cli.learn import _learned

    monkeypatch.setattr(render, "terminal_width", lambda: 50)
    with connect(odd, learned="learned.sql") as database:
        database.index()
        found = _learned(database, Path("learned.sql"), "all?", "SELECT * FROM odd")
    table = found["lines"][: found["lines"].index("")]
    assert all(cell_len(line) <= 50 for line in table)
    assert table[-1] == "5 of 8 rows"
