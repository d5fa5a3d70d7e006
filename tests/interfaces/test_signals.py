"""Ctrl-C and SIGTERM end a statement on the server too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers import MYSQL, POSTGRES, TestDatabase, fresh_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDLESS = "SELECT COUNT(*) FROM n a, n b, n c, n d, n e WHERE a.i + b.i + c.i + d.i + e.i = 7"


@pytest.fixture(scope="module", params=["postgres", "mysql"])
def database(request: pytest.FixtureRequest) -> Iterator[TestDatabase]:
    with fresh_database(POSTGRES if request.param == "postgres" else MYSQL, "signals") as made:
        rows = ", ".join(f"({i})" for i in range(1000))
        made.run("CREATE TABLE n (i int)", f"INSERT INTO n VALUES {rows}")
        yield made


def running(database: TestDatabase) -> int:
    if database.url.startswith("postgres"):
        sql = (
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND state = 'active' AND pid <> pg_backend_pid()"
        )
    else:
        sql = (
            "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() "
            "AND command <> 'Sleep' AND id <> CONNECTION_ID()"
        )
    return int(database.run(sql)[0][0])


def until(condition: Any, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not (done := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return bool(done)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to another process")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_statement_on_the_server(
    database: TestDatabase, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-m", "dbrag.interfaces.cli", "sql", "--json", ENDLESS]
    process = subprocess.Popen(
        [*command, "-s", f"s={database.url}", "--index", str(tmp_path / "index")],
        stdout=subprocess.PIPE,
        env={**os.environ, "DBRAG_TIMEOUT_S": "300"},
    )
    try:
        assert until(lambda: running(database), 60), "it never ran"
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
        assert process.returncode == code
        assert json.loads(out)["error"]["code"] == "interrupted"
        assert until(lambda: not running(database), 5), "it goes on on the server"
    finally:
        process.kill()
        process.wait()
