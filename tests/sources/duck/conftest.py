from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from dbrag.options import OpenOptions
from dbrag.sources.duck.database import DuckDatabase
from dbrag.sources.duck.files import FilesSource
from dbrag.sources.files.table import FileTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from dbrag.sources.base import Session, Source

OPTIONS = OpenOptions(memory_mb=256, threads=2)


@pytest.fixture
def opened() -> Iterator[Callable[[Source], Source]]:
    """Closes at the end what it was given."""
    sources: list[Source] = []

    def keep(source: Source) -> Source:
        sources.append(source)
        return source

    yield keep
    for source in sources:
        source.close()


@pytest.fixture
def make_duckdb(tmp_path: Path) -> Callable[..., Path]:
    """Write a DuckDB file below ``tmp_path`` from a script."""

    def make(name: str = "shop.duckdb", script: str = "CREATE TABLE t AS SELECT 1 AS a") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with duckdb.connect(str(path)) as connection:
            connection.execute(script)
        return path

    return make


@pytest.fixture
def database(
    make_duckdb: Callable[..., Path], opened: Callable[..., Any]
) -> Callable[..., DuckDatabase]:
    """A source over a new DuckDB file."""

    def make(script: str, name: str = "shop.duckdb", **options: Any) -> DuckDatabase:
        path = str(make_duckdb(name, script))
        settings = OpenOptions(**{"memory_mb": 256, "threads": 2, **options})
        return opened(DuckDatabase("shop", path, path, settings))

    return make


@pytest.fixture
def files(tmp_path: Path, opened: Callable[..., Any]) -> Callable[..., FilesSource]:
    """A source over new Parquet files: table name → an Arrow table, or one per path."""

    def make(tables: Mapping[str, Any], **options: Any) -> FilesSource:
        found = [file_table(tmp_path, name, content) for name, content in tables.items()]
        settings = OpenOptions(**{"memory_mb": 256, "threads": 2, **options})
        return opened(FilesSource("files", found, str(tmp_path), str(tmp_path), settings))

    return make


def file_table(folder: Path, name: str, content: pa.Table | Mapping[str, pa.Table]) -> FileTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(content, pa.Table):
        path = folder / f"{len(list(folder.iterdir()))}.parquet"
        pq.write_table(content, path)
        return FileTable(name, str(path), (str(path),))
    paths = []
    for place, part in content.items():
        path = folder / name / place
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, path)
        paths.append(str(path))
    partitioned = any("=" in place for place in content)
    return FileTable(name, str(folder / name), tuple(paths), partitioned=partitioned)


def rows(source: Source, sql: str) -> list[tuple[Any, ...]]:
    """All rows of a statement."""
    with source.session() as session:
        session.execute(sql)
        found = []
        while batch := session.fetch(100):
            found += batch
        return found


def drain(session: Session, sql: str | None = None) -> None:
    """Run a statement, or what is left of the one that runs, to its end."""
    if sql is not None:
        session.execute(sql)
    while session.fetch(10_000):
        pass
