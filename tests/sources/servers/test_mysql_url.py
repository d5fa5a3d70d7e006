"""URLs, ``~/.my.cnf`` and errors of MySQL and MariaDB; no server is needed."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from dbrag.errors import (
    DbragError,
    ExecutionError,
    LimitReached,
    SourceBusy,
    SourceError,
    SourceNotFound,
    SourceUnreadable,
    UnknownName,
    UsageError,
)
from dbrag.sources.servers import mysql_url
from dbrag.sources.servers.mysql_binary import single
from dbrag.sources.servers.mysql_errors import translate
from dbrag.sources.servers.mysql_values import converter, day, instant, moment


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MYSQL_PWD", raising=False)
    monkeypatch.setattr(mysql_url, "_SOCKETS", ())
    return tmp_path


def my_cnf(home: Path, text: str) -> Path:
    file = home / ".my.cnf"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "scheme", ["mysql", "mariadb", "mysql+mysqldb", "mariadb+mariadbconnector"]
)
def test_every_scheme_means_pymysql(scheme: str) -> None:
    url = mysql_url.complete(make_url(f"{scheme}://u@h/db"))
    assert url.drivername == "mysql+pymysql"


def test_what_is_fixed() -> None:
    found = mysql_url.arguments(make_url("mysql://u:pä@h/db?charset=latin1"))
    assert found["charset"] == "utf8mb4"
    assert found["local_infile"] is False
    assert found["client_flag"] == 0
    assert found["init_command"] is None
    assert found["password"] == "pä".encode()


@pytest.mark.parametrize(
    "query",
    [
        "local_infile=1",
        "init_command=SET%20sql_mode%3D''",
        "client_flag=65536",
        "read_default_file=/etc/passwd",
        "nonsense=1",
        "ssl_disabled=perhaps",
        "connect_timeout=soon",
        "connect_timeout=0",
    ],
)
def test_other_parameters_are_refused(query: str) -> None:
    with pytest.raises(UsageError, match=query.partition("=")[0]):
        mysql_url.complete(make_url(f"mysql://u@h/db?{query}"))


def test_encryption_and_sockets() -> None:
    url = mysql_url.complete(
        make_url("mysql://u@/db?unix_socket=/s&ssl_ca=/ca.pem&ssl_verify_identity=false")
    )
    found = mysql_url.arguments(url)
    assert found["unix_socket"] == "/s"
    assert found["ssl_ca"] == "/ca.pem"
    assert found["ssl_verify_cert"] is True
    assert found["ssl_verify_identity"] is False
    assert "ssl_verify_cert" not in mysql_url.arguments(make_url("mysql://u@h/db"))


def test_the_options_file_fills_in_what_the_url_lacks(home: Path) -> None:
    my_cnf(
        home,
        "[mysqld]\npassword=wrong\n!include /nowhere\n[client]\n# comment\nuser = eve\n"
        'password = "p#\'=w"\nhost=db.example\nport=3307\nssl_ca=/ca\nskip-something\n'
        "[mysql]\npassword=wrong\n",
    )
    url = mysql_url.complete(make_url("mysql:///shop"))
    assert (url.username, url.host, url.port, url.database) == ("eve", "db.example", 3307, "shop")
    assert url.password is None  # not in the URL, which is shown
    found = mysql_url.arguments(url)
    assert found["password"] == b"p#'=w"
    assert found["ssl_ca"] == "/ca"


def test_a_password_goes_to_nobody_else(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    my_cnf(home, "[client]\nuser=eve\npassword=hers\n")
    assert mysql_url.own_password("eve") == "hers"
    assert mysql_url.own_password("bob") is None
    monkeypatch.setenv("MYSQL_PWD", "from env")
    assert mysql_url.own_password("bob") == "from env"
    given_one = mysql_url.arguments(make_url("mysql://eve:given@h/db"))
    assert given_one["password"] == b"given"


def test_a_socket_of_the_options_file(home: Path) -> None:
    my_cnf(home, "[client]\nsocket=/run/my.sock\n")
    url = mysql_url.complete(make_url("mysql:///db"))
    assert mysql_url.arguments(url)["unix_socket"] == "/run/my.sock"
    named = mysql_url.complete(make_url("mysql://elsewhere/db"))
    assert "unix_socket" not in mysql_url.arguments(named)


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_a_file_that_everybody_may_write_is_not_used(home: Path) -> None:
    my_cnf(home, "[client]\npassword=x\n").chmod(0o666)
    assert mysql_url.options() == {}


@given(st.text(max_size=300))
def test_any_options_file_is_read(text: str) -> None:
    found = mysql_url._section(text.splitlines())
    assert all(isinstance(value, str) for value in found.values())


@pytest.mark.parametrize(
    ("number", "text", "kind"),
    [
        (2003, "Can't connect to MySQL server on 'h' ([Errno 111] refused)", SourceNotFound),
        (1045, "Access denied for user 'u'@'h' (using password: YES)", SourceUnreadable),
        (1049, "Unknown database 'x'", SourceNotFound),
        (1040, "Too many connections", SourceBusy),
        (1203, "more than max_user_connections", SourceBusy),
        (2006, "MySQL server has gone away", SourceError),
        (2013, "Lost connection", SourceError),
        (1927, "Connection was killed", SourceError),
        (0, "", SourceError),
        (1969, "max_statement_time exceeded", LimitReached),
        (3024, "maximum statement execution time exceeded", LimitReached),
        (1317, "Query execution was interrupted", LimitReached),
        (1205, "Lock wait timeout exceeded", SourceBusy),
        (1114, "The table is full", LimitReached),
        (1054, "Unknown column 'x' in 'SELECT'", UnknownName),
        (1146, "Table 'd.x' doesn't exist", UnknownName),
        (1142, "SELECT command denied", ExecutionError),
        (1792, "Cannot execute statement in a READ ONLY transaction", ExecutionError),
        (1064, "syntax", ExecutionError),
    ],
)
def test_errors_become_ours(number: int, text: str, kind: type[DbragError]) -> None:
    from pymysql.err import OperationalError

    ours = translate(OperationalError(number, text), "mysql://u@h/db")
    assert type(ours) is kind
    assert ours.message
    if kind is not ExecutionError:
        assert ours.hint


def test_a_missing_package_is_named() -> None:
    error = RuntimeError("'cryptography' package is required for sha256_password or …")
    assert "pip install cryptography" in translate(error, "mysql://u@h/db").hint


@given(st.integers(-5, 70_000), st.text(max_size=80))
def test_any_error_becomes_ours(number: int, text: str) -> None:
    assert isinstance(translate(Exception(number, text), "mysql://h"), DbragError)
    assert isinstance(translate(ValueError(text), "mysql://h"), DbragError)


@given(st.binary(max_size=30))
def test_any_bytes_of_a_date_or_text_are_read(raw: bytes) -> None:
    for read in (day, moment, instant, converter(11, 63), converter(253, 45), converter(16, 63)):
        read(raw)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_of_four_bytes_is_the_shortest_that_is_the_same(value: float) -> None:
    raw = struct.pack("<f", value)
    short = single(raw)
    assert struct.pack("<f", short) == raw
    assert len(repr(short)) <= len(repr(value))


@given(st.datetimes())
def test_every_moment_is_exact(value: Any) -> None:
    text = value.strftime("%m-%d %H:%M:%S") + f".{value.microsecond:06}"
    assert moment(f"{value.year:04}-{text}".encode()) == value
    assert day(f"{value.year:04}-{text}"[:10].encode()) == value.date()
