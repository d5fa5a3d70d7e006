"""A MariaDB server of the tests' own: crashes, restarts, encryption, sockets, odd defaults."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from dbrag.errors import SourceError, SourceNotFound
from dbrag.sources.servers import mysql_marks
from dbrag.sources.servers import source as server_source
from dbrag.sources.servers.mysql import MySqlEngine
from dbrag.sources.servers.source import ServerSource
from tests.servers import TestDatabase

# Everything that dbrag must not depend on, the other way round.
DEFAULTS = (
    "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,ONLY_FULL_GROUP_BY",
    "--lower-case-table-names=1",
    "--character-set-server=latin1",
    "--default-time-zone=+05:00",
    "--group-concat-max-len=4",
    "--lc-time-names=de_DE",
    "--transaction-isolation=READ-UNCOMMITTED",
    "--innodb-buffer-pool-size=16M",
)


class Server:
    """The server; its folder holds its data, socket and certificate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self.call(
            "mariadb-install-db", "--no-defaults", f"--datadir={folder / 'data'}", *self._user(),
            "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
        )  # fmt: skip
        if shutil.which("openssl"):
            self.call(
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-subj", "/CN=x",
                "-addext", "subjectAltName=IP:127.0.0.1",
            )  # fmt: skip

    def _user(self) -> list[str]:
        return ["--user=root"] if os.getuid() == 0 else []

    def call(self, *command: object) -> None:
        subprocess.run(
            list(map(str, command)), check=True, timeout=120, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self) -> None:
        """Start it and wait until it answers."""
        program = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        encrypted = [
            f"--ssl-cert={self.folder / 'cert.pem'}",
            f"--ssl-key={self.folder / 'key.pem'}",
        ]
        self._process = subprocess.Popen(
            [
                program, "--no-defaults", *self._user(), f"--datadir={self.folder / 'data'}",
                f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.socket}",
                *(encrypted if (self.folder / "cert.pem").exists() else []), *DEFAULTS,
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 60
        while True:
            try:
                self.owner("mysql").run("SELECT 1")
                return
            except Exception:
                assert time.monotonic() < until, "the server does not start"
                time.sleep(0.1)

    def kill(self) -> None:
        """As a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It stands still: it takes connections and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    @property
    def socket(self) -> Path:
        return self.folder / "s"

    def owner(self, name: str = "shop") -> TestDatabase:
        return TestDatabase(f"mysql://root@127.0.0.1:{self.port}/{name}")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if shutil.which("mariadb-install-db") is None:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail("MariaDB is not installed")
        pytest.skip("MariaDB is not installed")
    with tempfile.TemporaryDirectory(prefix="dbrag_my_", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder))
        try:
            server.start()
            server.owner("mysql").run("CREATE DATABASE shop CHARACTER SET utf8mb4")
            yield server
        finally:
            server.kill()


def source_of(url: str) -> ServerSource:
    return ServerSource("my", make_url(url), "here", MySqlEngine())


def ask(source: ServerSource, sql: str) -> list[tuple[Any, ...]]:
    with source.session() as session:
        session.execute(sql)
        return session.fetch(100)


def test_the_servers_defaults_do_not_matter(server: Server) -> None:
    server.owner().run(
        "CREATE TABLE `Orders` (`Id` int PRIMARY KEY, s varchar(9), t timestamp)",
        "INSERT INTO Orders VALUES (1, 'ä', '2020-01-01 05:00:00'), (2, 'b', NULL)",
    )
    source = source_of(server.owner().url)
    (table,) = source.reflect()
    assert table.ref.name == "orders"
    with source.scan(table, 5) as rows:
        assert [row[:2] for row in rows] == [(1, "ä"), (2, "b")]
    expected = "2020-01-01 00:00:00"
    assert ask(source, "SELECT CAST(t AS CHAR) FROM orders WHERE Id = 1") == [(expected,)]
    assert ask(source, 'SELECT "a", \'\\\'\', MONTHNAME("2020-05-01")') == [("a", "'", "May")]
    assert ask(source, "SELECT GROUP_CONCAT(s, '-----') FROM orders") == [("ä-----,b-----",)]
    assert ask(source, "SELECT s, COUNT(*) FROM orders GROUP BY Id ORDER BY Id") == [
        ("ä", 1),
        ("b", 1),
    ]
    source.close()


def test_encryption(server: Server) -> None:
    certificate = server.folder / "cert.pem"
    if not certificate.exists():
        pytest.skip("openssl is not installed")
    url = server.owner().url
    cipher = "SHOW SESSION STATUS LIKE 'Ssl_cipher'"
    for parameters, encrypted in (
        ("", True),
        (f"?ssl_ca={certificate}&ssl_verify_identity=true", True),
        ("?ssl_disabled=true", False),
    ):
        source = source_of(url + parameters)
        ((_, value),) = ask(source, cipher)
        assert bool(value) is encrypted
        with source.session() as session:  # an unfinished result on an encrypted connection
            session.execute("SELECT REPEAT('x', 100) FROM seq_1_to_10000000")
            assert len(session.fetch(5)) == 5
        assert ask(source, "SELECT 1") == [(1,)]
        source.close()
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other.pem"
        server.call(
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout",
            Path(folder) / "k", "-out", other, "-subj", "/CN=y",
        )  # fmt: skip
        with pytest.raises(SourceError, match="certificate"):
            source_of(f"{url}?ssl_ca={other}").reflect()


def test_a_socket(server: Server) -> None:
    source = source_of(f"mysql://root@/shop?unix_socket={server.socket}")
    assert ask(source, "SELECT DATABASE()") == [("shop",)]
    source.close()


def test_a_server_that_stands_still(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_source, "ANSWER_S", 1.0)
    source = source_of(f"{server.owner().url}?connect_timeout=1")
    started = time.monotonic()
    with server.frozen(), pytest.raises(SourceError, match="lost"):
        ask(source, "SELECT 1")  # a new connection
    assert ask(source, "SELECT 1") == [(1,)]
    with server.frozen(), pytest.raises(SourceError, match="lost"):
        ask(source, "SELECT 1")  # one that lay idle
    assert ask(source, "SELECT 1") == [(1,)]
    with ExitStack() as stack, source.session(5) as session:
        session.execute("SELECT 1")
        stack.enter_context(server.frozen())
    assert time.monotonic() - started < 30
    # What is long in coming is waited for, all the same.
    assert ask(source, "SELECT SLEEP(2)") == [(0,)]
    source.close()


def test_a_crash_is_told_and_the_next_question_works(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.owner().run("CREATE TABLE c (i int PRIMARY KEY)", "INSERT INTO c VALUES (1), (2)")
    source = source_of(server.owner().url)
    small = source.marks()
    with monkeypatch.context() as patch:
        patch.setattr(mysql_marks, "_SMALL", ())
        large = source.marks()
    timer = threading.Timer(0.5, server.kill)
    timer.start()
    with pytest.raises(SourceError, match="lost"):
        ask(source, "SELECT COUNT(*) FROM seq_1_to_1000000 a, seq_1_to_1000000 b")
    timer.join()
    with pytest.raises(SourceNotFound, match="cannot reach"):
        ask(source, "SELECT 1")
    server.start()
    assert ask(source, "SELECT COUNT(*) FROM c") == [(2,)]
    assert source.marks() == small  # sums of rows outlive the server
    monkeypatch.setattr(mysql_marks, "_SMALL", ())
    again = source.marks()
    assert all(again[ref] != mark for ref, mark in large.items())  # its times do not
    assert source.marks() == again
    server.owner().run("INSERT INTO c VALUES (3)")
    assert {ref.name for ref, mark in source.marks().items() if again[ref] != mark} == {"c"}
    source.close()
