"""Reading a file beside an engine's session: descriptors stay open as long as the session."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from dbrag.sources import sqlite
from dbrag.sources.filelocks import plain_read, session_on

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    path.write_bytes(b"content")
    (tmp_path / "link.db").symlink_to(path)
    return path


def test_without_a_session_it_is_closed_at_once(file: Path) -> None:
    with plain_read(str(file)) as opened:
        assert opened.read() == b"content"
    assert opened.closed


@pytest.mark.parametrize("names", [("a.db", "link.db"), ("link.db", "a.db"), ("a.db", "a.db")])
def test_with_a_session_it_is_closed_when_that_ends(file: Path, names: tuple[str, str]) -> None:
    read, used = (str(file.with_name(name)) for name in names)
    with session_on(used):
        with plain_read(read) as opened:
            pass
        with session_on(read):
            pass
        assert not opened.closed
    assert opened.closed


def test_a_session_that_begins_while_it_is_read(file: Path) -> None:
    with plain_read(str(file.with_name("link.db"))) as opened:
        session = session_on(str(file))
        session.__enter__()
    assert not opened.closed
    session.__exit__(None, None, None)
    assert opened.closed


def test_a_session_on_another_file_does_not_count(file: Path) -> None:
    other = file.with_name("b.db")
    other.touch()
    with session_on(str(other)):
        with plain_read(str(file)) as opened:
            pass
        assert opened.closed


def test_the_log_of_a_linked_database_counts(tmp_path: Path) -> None:
    path = tmp_path / "real" / "a.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as writer:
        writer.executescript(
            "PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)"
        )
        (tmp_path / "link.db").symlink_to(path)
        (tmp_path / "folder").symlink_to(path.parent)
        names = [str(path), str(tmp_path / "link.db"), str(tmp_path / "folder" / "a.db")]
        before = [sqlite.stamp(name) for name in names]
        assert len(set(before)) == 1
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        after = [sqlite.stamp(name) for name in names]
        assert len(set(after)) == 1
        assert after[0] != before[0]
