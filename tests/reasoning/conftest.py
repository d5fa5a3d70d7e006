"""Small databases for tests of reasoning."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb


def written(folder: Path, engine: str, script: str) -> Path:
    """A new database file of an engine ("sqlite", "duckdb"), made by a script."""
    path = folder / f"made.{engine}"
    if engine == "sqlite":
        with closing(sqlite3.connect(path)) as lite:
            lite.executescript(script)
    else:
        with closing(duckdb.connect(str(path))) as duck:
            duck.execute(script)
    return path
