from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from dbrag.sources import open_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dbrag.sources import Source

MakeDb = "Callable[..., Path]"


@pytest.fixture
def make_db(tmp_path: Path) -> Callable[..., Path]:
    """Write a SQLite file below ``tmp_path`` from a script."""

    def make(
        name: str = "shop.db", script: str = "CREATE TABLE t (a); INSERT INTO t VALUES (1)"
    ) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
            connection.commit()
        return path

    return make


def opened(path: object) -> Source:
    return open_sources([str(path)])[0][0]


def rows_of(source: Source, sql: str) -> list[tuple[object, ...]]:
    with source.session() as session:
        session.execute(sql)
        return session.fetch(1000)


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder with the hash of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def untouched(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Call it when the files are there: at the end of the test they must be the same."""
    before: dict[str, str] = {}

    def start() -> None:
        before.update(contents(tmp_path))
        assert before

    yield start
    assert contents(tmp_path) == before
