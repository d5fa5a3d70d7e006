"""Real database servers for tests: a fresh database each, dropped afterwards.

``DBRAG_TEST_POSTGRES`` and ``DBRAG_TEST_MYSQL`` name the servers. Where one cannot be
reached its tests are skipped; in CI they fail.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import URL

# Read before any test hides the environment.
POSTGRES = os.environ.get("DBRAG_TEST_POSTGRES") or "postgresql://root@127.0.0.1:5432/postgres"
MYSQL = os.environ.get("DBRAG_TEST_MYSQL") or "mysql://root@127.0.0.1:3306/test"


@dataclass(frozen=True)
class TestDatabase:
    """A database of its own on a real server."""

    __test__ = False

    url: str
    """With everything needed to open it."""

    @property
    def parsed(self) -> URL:
        from sqlalchemy.engine import make_url

        return make_url(self.url)

    @property
    def name(self) -> str:
        return str(self.parsed.database)

    def url_as(self, user: str, password: str | None = None) -> str:
        """The URL for another user."""
        from dbrag.sources.servers.url import with_password

        url = with_password(self.parsed.set(username=user), password)
        return url.render_as_string(hide_password=False)

    @contextmanager
    def connect(self) -> Iterator[Any]:
        """A driver connection that may write, each statement committed by itself."""
        connection = open_connection(self.url)
        try:
            yield connection
        finally:
            connection.close()

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the owner; the rows of the last one, if it has any."""
        rows: list[tuple[Any, ...]] = []
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall()) if cursor.description else []
        return rows


def open_connection(url: str) -> Any:
    """A driver connection that may write; its errors are the driver's own."""
    from sqlalchemy.engine import make_url

    parsed = make_url(url)
    if parsed.get_backend_name() == "postgresql":
        import psycopg

        arguments = parsed.translate_connect_args(username="user", database="dbname")
        return psycopg.connect(**{**parsed.query, **arguments}, autocommit=True, connect_timeout=5)
    import pymysql

    return pymysql.connect(
        host=parsed.host or "127.0.0.1",
        port=parsed.port or 3306,
        user=parsed.username or "root",
        password=parsed.password or "",
        database=parsed.database,
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=5,
    )


@contextmanager
def fresh_database(server: str, topic: str = "test") -> Iterator[TestDatabase]:
    """A new database on ``server``, named after ``topic``; skips where it cannot be reached."""
    from sqlalchemy.engine import make_url

    url = make_url(server)
    name = f"dbrag_{topic}_{secrets.token_hex(4)}"
    quote = '"' if url.get_backend_name() == "postgresql" else "`"
    try:
        connection = open_connection(server)
    except Exception as error:
        message = f"no server at {url.render_as_string(hide_password=True)}: {error}"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(message)
        pytest.skip(message)
    connection.close()
    _run(server, f"CREATE DATABASE {quote}{name}{quote}")
    try:
        yield TestDatabase(url.set(database=name).render_as_string(hide_password=False))
    finally:
        if quote == "`":
            _kill_all(server, name)
        force = " WITH (FORCE)" if quote == '"' else ""
        _run(server, f"DROP DATABASE IF EXISTS {quote}{name}{quote}{force}")


def _kill_all(server: str, name: str) -> None:
    """End what still runs in a MySQL database: it would go on without it."""
    connection = open_connection(server)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE db = %s", (name,))
            for (number,) in cursor.fetchall():
                with suppress(Exception):  # gone meanwhile
                    cursor.execute(f"KILL {number}")
    finally:
        connection.close()


def _run(server: str, statement: str) -> None:
    connection = open_connection(server)
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    finally:
        connection.close()


@pytest.fixture(scope="module")
def postgres() -> Iterator[TestDatabase]:
    """An empty PostgreSQL database for the tests of one module."""
    with fresh_database(POSTGRES) as database:
        yield database


@pytest.fixture(scope="module")
def mysql() -> Iterator[TestDatabase]:
    """An empty MySQL or MariaDB database for the tests of one module."""
    with fresh_database(MYSQL) as database:
        yield database


class PrivatePostgres:
    """A PostgreSQL server of a test's own, with passwords, that it may stop and kill."""

    PASSWORD = "pläin s3cret/@:%"

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self._data = folder / "data"
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        secret = folder / "password"
        secret.write_text(self.PASSWORD, encoding="utf-8")
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
            shutil.chown(secret, "postgres")
        self._call(
            "initdb", "-D", self._data, "-U", "boss", "-A", "scram-sha-256",
            f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nfsync = off\n"
                f"unix_socket_directories = '{folder}'\nmax_connections = 12\n"
            )

    @property
    def database(self) -> TestDatabase:
        """Its database ``postgres``, as its owner."""
        from sqlalchemy import URL

        url = URL.create("postgresql", "boss", self.PASSWORD, "127.0.0.1", self.port, "postgres")
        return TestDatabase(url.render_as_string(hide_password=False))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._call("pg_ctl", "-D", self._data, "-w", "-l", self._folder / "log", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; "immediate" is a crash."""
        self._call("pg_ctl", "-D", self._data, "-w", "-m", mode, "stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """All its processes stand still: it takes connections and answers nothing."""
        head = int((self._data / "postmaster.pid").read_text().split()[0])
        listed = subprocess.run(
            ["ps", "--ppid", str(head), "-o", "pid="], capture_output=True, text=True, check=True
        )
        processes = [head, *map(int, listed.stdout.split())]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def _call(self, program: str, *arguments: object) -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(
            command, check=True, cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, timeout=60,
        )  # fmt: skip


@pytest.fixture(scope="module")
def private_postgres() -> Iterator[PrivatePostgres]:
    """A running server of the module's own; skipped where PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    if not found:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail("PostgreSQL is not installed")
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(prefix="dbrag_pg_", ignore_cleanup_errors=True) as folder:
        server = PrivatePostgres(found[-1], Path(folder))
        server.start()
        try:
            yield server
        finally:
            with suppress(subprocess.CalledProcessError):
                server.stop()
