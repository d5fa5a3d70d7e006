"""What tests of MySQL and MariaDB share: opening, asking, looking at the server."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.engine import make_url

from dbrag.sources.servers.mysql import MySqlEngine
from dbrag.sources.servers.source import ServerSource
from tests.servers import TestDatabase

DIGITS = "WITH d AS (SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4)"
ENDLESS = f"{DIGITS} SELECT COUNT(*) FROM " + ", ".join(f"d AS d{i}" for i in range(20))


def open_source(database: TestDatabase, **more: Any) -> ServerSource:
    return ServerSource("my", database.parsed, database.url, MySqlEngine(), **more)


def ask(source: ServerSource, sql: str, timeout_s: float | None = None) -> list[tuple[Any, ...]]:
    with source.session(timeout_s) as session:
        session.execute(sql)
        return session.fetch(1000)


def one(source: ServerSource, sql: str) -> Any:
    ((value,),) = ask(source, sql)
    return value


def is_mariadb(database: TestDatabase) -> bool:
    return "mariadb" in str(database.run("SELECT VERSION()")[0][0]).lower()


def running(database: TestDatabase, part: str) -> int:
    """Statements on the server that contain ``part``."""
    rows = database.run("SHOW FULL PROCESSLIST")
    return sum(part in str(row[7]) and "PROCESSLIST" not in str(row[7]) for row in rows)


def wait_until(done: Any, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def source_of(database: TestDatabase, *schemas: str, url: str = "") -> ServerSource:
    parsed = make_url(url or database.url)
    return ServerSource("my", parsed, "here", MySqlEngine(), schemas)


@contextmanager
def user(database: TestDatabase, *grants: str) -> Iterator[str]:
    """A user with a password and these rights; gives the URL."""
    name = f"dbrag_{secrets.token_hex(4)}"
    database.run(f"CREATE USER {name}@'%' IDENTIFIED BY 's3cret'")
    try:
        for grant in grants:
            database.run(f"{grant} TO {name}@'%'")
        yield database.url_as(name, "s3cret")
    finally:
        database.run(f"DROP USER {name}@'%'")
