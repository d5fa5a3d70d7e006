from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dbrag.options import FileOptions, OpenOptions
from dbrag.sources.base import SkippedSource
from dbrag.sources.files import find_tables
from dbrag.sources.files.table import FileTable


@dataclass
class Read:
    """What was read of one file that holds one table."""

    table: FileTable
    columns: dict[str, str]
    rows: list[tuple[Any, ...]]

    @property
    def warned(self) -> str:
        return " | ".join(self.table.warnings)

    @property
    def guessed(self) -> str:
        return " | ".join(self.table.guessed)

    def column(self, name: str) -> list[Any]:
        return [row[list(self.columns).index(name)] for row in self.rows]


class Folder:
    """A folder of a user's files, and a cache apart from it."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "user"
        self.cache = tmp_path / "cache"
        self.path.mkdir()

    def options(self, **settings: Any) -> OpenOptions:
        files = {"*": FileOptions(**settings)} if settings else {}
        return OpenOptions(cache=self.cache, files=files)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    def find(self, name: str = "", **settings: Any) -> tuple[list[FileTable], list[SkippedSource]]:
        return find_tables(str(self.path / name), self.options(**settings))

    def read(self, name: str, content: str | bytes | None = None, **settings: Any) -> Read:
        if content is not None:
            self.write(name, content)
        tables, skipped = self.find(name, **settings)
        assert not skipped, skipped
        assert len(tables) == 1
        return load(tables[0])

    def reason(self, name: str, content: str | bytes | None = None, **settings: Any) -> str:
        """Why a file is skipped."""
        if content is not None:
            self.write(name, content)
        tables, skipped = self.find(name, **settings)
        assert not tables
        assert len(skipped) == 1
        return skipped[0].reason


def load(table: FileTable) -> Read:
    data = pq.read_table(table.parquet[0], partitioning=None)
    columns = {field.name: str(field.type) for field in data.schema}
    lists = [column.to_pylist() for column in data.columns]
    return Read(table, columns, list(zip(*lists, strict=True)))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


Reader = Callable[..., Read]
