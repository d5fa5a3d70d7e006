"""Indexing a real PostgreSQL: what changed, what was killed, who asks meanwhile."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.index.build import build_index
from dbrag.index.manifest import read_manifest, stale_sources
from dbrag.index.store import open_index
from dbrag.models.testing import HashEmbedder
from dbrag.settings import Settings
from dbrag.sources import open_sources
from tests.index.conftest import dump
from tests.servers import POSTGRES, fresh_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dbrag.types import SourceReport
    from tests.servers import TestDatabase

TABLES = 12
COUNTERS_S = 15.0
"""Seconds after which a PostgreSQL session has certainly written its counters."""


@pytest.fixture
def database() -> Iterator[TestDatabase]:
    with fresh_database(POSTGRES, "index") as database:
        for i in range(TABLES):
            database.run(
                f"CREATE SCHEMA s{i}; CREATE TABLE s{i}.t{i:02} (id int PRIMARY KEY, word text);"
                f"INSERT INTO s{i}.t{i:02} VALUES (1, 'Kabul {i}'), (2, 'panda {i}'), (3, 'Bob')"
            )
        yield database


class Server:
    """One open source and its index."""

    def __init__(self, database: TestDatabase, directory: Path) -> None:
        self.directory = directory
        (self.source,), _ = open_sources([database.url])

    def index(self, directory: Path | None = None, progress: Any = None) -> SourceReport:
        report = build_index(
            directory or self.directory,
            [self.source],
            embedder=HashEmbedder(),
            settings=Settings(),
            progress=progress,
        )
        return report.sources[0]

    def stale(self) -> bool:
        return bool(stale_sources(read_manifest(self.directory), [self.source]))

    def wait_until_stale(self) -> None:
        """A session's counters reach the server's statistics a little later."""
        until = time.monotonic() + COUNTERS_S
        while not self.stale() and time.monotonic() < until:
            time.sleep(0.2)
        assert self.stale()


@pytest.fixture
def server(database: TestDatabase, tmp_path: Path) -> Iterator[Server]:
    opened = Server(database, tmp_path / "index")
    yield opened
    opened.source.close()


def test_only_changed_tables_are_read(
    server: Server, database: TestDatabase, tmp_path: Path
) -> None:
    first = server.index()
    assert (first.tables, first.tables_read) == (TABLES, TABLES)
    assert not server.stale()
    database.run(
        "UPDATE s3.t03 SET word = 'red panda' WHERE id = 1; DROP TABLE s5.t05;"
        "CREATE TABLE s5.fresh (city text); INSERT INTO s5.fresh VALUES ('Kabul')"
    )
    server.wait_until_stale()
    report = server.index()
    assert (report.tables, report.tables_read) == (TABLES, 2)
    assert report.reason == f"2 of {TABLES} tables read"
    server.index(tmp_path / "fresh")
    with open_index(server.directory) as grown, open_index(tmp_path / "fresh") as new:
        assert [replace(t, estimate=None) for t in grown.catalog.tables] == [
            replace(t, estimate=None) for t in new.catalog.tables
        ]
        assert dump(grown) == dump(new)


def test_connections_killed_between_tables_are_reopened(
    server: Server, database: TestDatabase
) -> None:
    def kill_all(progress: Any) -> None:
        if progress.tables and progress.tables[0] == 2:
            database.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    report = server.index(progress=kill_all)
    assert (report.status, report.tables_read) == ("built", TABLES)


def test_a_connection_killed_while_reading(server: Server, database: TestDatabase) -> None:
    server.index()
    with open_index(server.directory) as index:
        before = dump(index)
    database.run("CREATE VIEW s0.nap AS SELECT pg_sleep(30)::text AS nap")
    killed = threading.Event()

    def kill() -> None:
        until = time.monotonic() + 20
        while not killed.is_set() and time.monotonic() < until:
            (ended,) = database.run(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE"
                " query LIKE '%nap%' AND state = 'active' AND wait_event = 'PgSleep'"
            )
            if ended[0]:
                killed.set()
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    report = server.index()
    killer.join()
    assert killed.is_set()
    assert report.status == "skipped"
    assert "was lost" in report.reason
    assert report.reason.endswith("what was indexed before stays")
    with open_index(server.directory) as index:
        assert dump(index) == before
    assert server.stale()  # the next question tries again by itself
    database.run("DROP VIEW s0.nap; CREATE TABLE s0.fresh AS SELECT 'Kabul' AS city")
    report = server.index()
    assert (report.status, report.tables, report.tables_read) == ("built", TABLES + 1, 1)


def test_others_ask_while_one_indexes(server: Server, database: TestDatabase) -> None:
    server.index()
    database.run("UPDATE s3.t03 SET word = 'red panda' WHERE id = 1")
    server.wait_until_stale()
    stop = threading.Event()
    seen: list[int] = []
    faults: list[Exception] = []

    def ask() -> None:
        while not stop.is_set():
            try:
                with open_index(server.directory) as index:
                    seen.append(len(index.rows.search("panda", 50)))
            except Exception as error:
                faults.append(error)

    readers = [threading.Thread(target=ask) for _ in range(3)]
    for reader in readers:
        reader.start()
    report = server.index()
    time.sleep(0.2)
    stop.set()
    for reader in readers:
        reader.join()
    assert report.tables_read == 1
    assert not faults
    assert set(seen) <= {TABLES, TABLES + 1}
    assert seen[-1] == TABLES + 1
