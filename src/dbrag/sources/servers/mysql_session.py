"""Sessions on MySQL and MariaDB: settings, snapshots, streaming results, cancelling.

The settings are pinned whatever the server's defaults are. ``sql_mode`` is a matter of
safety: a statement must mean to the server what it meant to the guard, which reads
``"…"`` as text, ```…``` as a name and ``\\`` as an escape.
"""

from __future__ import annotations

import logging
import re
import selectors
import socket
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from dbrag.errors import LimitReached, SourceError
from dbrag.sources.servers import mysql_binary, mysql_errors
from dbrag.sources.servers.mysql_values import converter

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.getLogger(__name__)

CONNECT_S = 10
"""Seconds to wait for a connection."""
LOCK_S = 10
"""Seconds to wait for somebody who changes a table's definition."""

_SQL_MODE = "IGNORE_SPACE,NO_UNSIGNED_SUBTRACTION,NO_ENGINE_SUBSTITUTION"
"""Not ANSI_QUOTES, PIPES_AS_CONCAT, NO_BACKSLASH_ESCAPES: as sqlglot reads MySQL.
IGNORE_SPACE: ``count (x)`` is the built-in function, never a stored one of that name.
NO_UNSIGNED_SUBTRACTION: the difference of two unsigned numbers may be negative."""

_SETTINGS = (
    # Nothing is cut without a word.
    ("group_concat_max_len", "1073741824"),
    ("sql_select_limit", "18446744073709551615"),
    ("sql_safe_updates", "0"),
    ("sql_big_selects", "1"),
    ("max_error_count", "1024"),
    # 1/3 is 0.3333 otherwise, and 1/30000 is 0.0000.
    ("div_precision_increment", "12"),
    # Same meaning everywhere.
    ("sql_auto_is_null", "0"),
    ("default_week_format", "0"),
    ("lc_time_names", "'en_US'"),
    ("time_zone", "'+00:00'"),
    # A reader may pause; a writer of the schema may not hold us for ever.
    ("net_write_timeout", "600"),
    ("lock_wait_timeout", str(LOCK_S)),
)
_MARIADB_SETTINGS = (
    # A recursion is cut after 1,000 steps otherwise, with no more than a warning.
    ("max_recursive_iterations", "4294967295"),
)
_MYSQL_SETTINGS = (
    ("cte_max_recursion_depth", "4294967295"),
    # Otherwise times and counts of tables may be a day old.
    ("information_schema_stats_expiry", "0"),
)

_DRAIN_ROWS = 1000
_DRAIN_S = 0.05
_STOP_S = 5.0
_KILL_EVERY_S = 0.25
_UNKNOWN_VARIABLE = 1193
_CUT = frozenset({1260, 1301})
"""Warnings: GROUP_CONCAT was cut; a text over max_allowed_packet became NULL."""
_MAY_BE_CUT = re.compile(r"group_concat|json_arrayagg|json_objectagg", re.IGNORECASE)
_MAX_WARNINGS = 1024


def is_mariadb(raw: Any) -> bool:
    """True on MariaDB, False on MySQL, which differ in some settings."""
    return "mariadb" in str(raw.server_version).lower()


def prepare(raw: Any) -> None:
    """Pin every setting that results or safety depend on, and allow reading only."""
    mode = _SQL_MODE
    settings = list(_SETTINGS)
    if is_mariadb(raw):
        settings += list(_MARIADB_SETTINGS)
    else:
        # MySQL knows which columns depend on the grouped ones; MariaDB would refuse
        # honest queries.
        mode += ",ONLY_FULL_GROUP_BY"
        settings += list(_MYSQL_SETTINGS)
    _run(raw, f"SET SESSION sql_mode = '{mode}'")
    _run(raw, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    try:
        _run(raw, "SET " + ", ".join(f"SESSION {name} = {value}" for name, value in settings))
    except Exception as error:
        if _number(error) != _UNKNOWN_VARIABLE:
            raise
        _set_one_by_one(raw, settings)
    raw._dbrag_server = _identity(raw)
    # The time of a statement is limited by the server, and by whoever waits for it.
    raw._read_timeout = None


def _set_one_by_one(raw: Any, settings: Sequence[tuple[str, str]]) -> None:
    """For servers that speak the protocol but lack some settings."""
    for name, value in settings:
        try:
            _run(raw, f"SET SESSION {name} = {value}")
        except Exception as error:
            if _number(error) != _UNKNOWN_VARIABLE:
                raise
            log.info("this server has no setting %s", name)


def begin(raw: Any, timeout_s: float | None) -> None:
    """Start a read-only transaction of one snapshot.

    Args:
        timeout_s: the server stops a statement after that time, or earlier where its
            administrator says so.
    """
    limits = [("max_statement_time", 1.0), ("max_execution_time", 1000.0)]
    # A proxy may call itself something else than the server is: then the other one.
    for name, unit in limits if is_mariadb(raw) else reversed(limits):
        value = "DEFAULT"
        if timeout_s is not None:
            limit = f"{max(timeout_s, 0.001):.3f}" if unit == 1 else max(1, round(timeout_s * unit))
            value = f"LEAST(IF(@@GLOBAL.{name} > 0, @@GLOBAL.{name}, {limit}), {limit})"
        try:
            _run(raw, f"SET SESSION {name} = {value}")
            break
        except Exception as error:
            if _number(error) != _UNKNOWN_VARIABLE:
                raise
            log.info("this server has no setting %s", name)
    _run(raw, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")


def end(raw: Any) -> None:
    """Roll back.

    Raises:
        pymysql.Error: the connection is closed, perhaps by a cursor that was not read out.
    """
    raw.rollback()


def cursor(raw: Any) -> Any:
    """A cursor that reads rows as they are fetched and closes without reading the rest."""
    return _streaming()(raw)


@cache
def _streaming() -> Any:
    from pymysql.cursors import SSCursor

    class Streaming(SSCursor):  # type: ignore[misc]
        """Rows as they come, as exact values."""

        connection: Any
        _sql = ""
        _statement: int | None = None

        def _query(self, q: Any) -> Any:
            try:
                return self._run(q)
            except Exception as error:
                raise mysql_errors.of_statement(error) from error

        def _run(self, q: Any) -> Any:
            self._sql = q if isinstance(q, str) else q.decode("utf-8", "replace")
            self._statement = mysql_binary.prepare(self.connection, self._sql.encode())
            if self._statement is not None:
                self._clear_result()
                mysql_binary.execute(self.connection, self._statement)
                self._do_get_result()
                return self.rowcount
            done = super()._query(q)
            result = self._result
            if result is not None and result.unbuffered_active:
                result.converters = [
                    (None, converter(field.type_code, field.charsetnr)) for field in result.fields
                ]
                if any(field.type_code == mysql_binary.FLOAT for field in result.fields):
                    log.warning("this server prepares no statement: FLOAT has six digits only")
            return done

        def read_next(self) -> Any:
            active = self._result.unbuffered_active
            row = super().read_next()
            if row is None and active and self._result.warning_count:
                _check_whole(self.connection, self._sql)
            return row

        def close(self) -> None:
            connection, self.connection = self.connection, None
            if connection is None:
                return
            if self._result is not None:
                _finish(connection, self._result)
            if self._statement is not None:
                mysql_binary.close(connection, self._statement)

        def __del__(self) -> None:
            with suppress(Exception):
                self.close()

    return Streaming


def cancel(raw: Any) -> None:
    """Stop the running statement; where the server takes no order, hang up."""
    now = time.monotonic()
    if not raw.open or now - getattr(raw, "_dbrag_killed", 0.0) < _KILL_EVERY_S:
        return
    raw._dbrag_killed = now
    try:
        kill_query(raw)
    except Exception as error:
        if _number(error) == 1094:  # no such thread: it is gone
            return
        log.info("KILL QUERY failed (%s): closing the connection", type(error).__name__)
        hang_up(raw)


def kill_query(raw: Any) -> None:
    """``KILL QUERY`` over a second connection of the same user.

    Raises:
        pymysql.Error: it cannot be opened, or may not do so.
        SourceError: it leads to another server (behind a load balancer), where the same
            number is somebody else's.
    """
    import pymysql

    second = pymysql.connect(
        host=raw.host,
        port=raw.port,
        user=raw.user,
        password=raw.password,
        unix_socket=raw.unix_socket,
        ssl=raw.ctx if raw.ssl and raw._ssl_required else None,
        ssl_disabled=not raw.ssl,
        server_public_key=raw.server_public_key,
        bind_address=raw.bind_address,
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=3,
        read_timeout=3,
        write_timeout=3,
    )
    try:
        if _identity(second) != getattr(raw, "_dbrag_server", None):
            raise SourceError(
                "a second connection leads to another server",
                "name one server in the URL, no balancer",
            )
        _run(second, f"KILL QUERY {int(raw.thread_id())}")
    finally:
        second.close()


def _identity(raw: Any) -> tuple[Any, ...]:
    """What tells one server from another."""
    with raw.cursor() as cursor:
        cursor.execute("SELECT @@hostname, @@port, @@server_id")
        return tuple(cursor.fetchone())


def hang_up(raw: Any) -> None:
    """Close the socket under a waiting reader, which then fails at once."""
    sock = raw._sock
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _finish(raw: Any, result: Any) -> None:
    """End an unbuffered result: read a short rest, else have the server stop it.

    PyMySQL by itself would read all that is left, be it millions of rows.
    """
    if not result.unbuffered_active:
        return
    try:
        if raw.open and not _read_out(raw, result, _DRAIN_ROWS, _DRAIN_S):
            kill_query(raw)
            _read_out(raw, result, None, _STOP_S)
    except Exception as error:
        log.info("a result could not be ended: %s", type(error).__name__)
    if result.unbuffered_active:
        _ended(result)
        raw._force_close()


def _read_out(raw: Any, result: Any, rows: int | None, seconds: float) -> bool:
    """True if the result ended within so many rows and so much time."""
    until = time.monotonic() + seconds
    while rows is None or rows > 0:
        rows = None if rows is None else rows - 1
        left = until - time.monotonic()
        if left <= 0 or not _arrived(raw, left):
            return False
        try:
            if result._check_packet_is_eof(raw._read_packet()):
                _ended(result)
        except Exception:
            if not raw.open:
                raise
            _ended(result)  # a statement that failed or was stopped has ended, too
        if not result.unbuffered_active:
            return True
    return False


def _arrived(raw: Any, seconds: float) -> bool:
    """True once there is something to read; a read that timed out would cost the connection."""
    sock = raw._sock
    sock.settimeout(0)
    try:
        if raw._rfile.peek(1):
            return True
    except OSError:
        log.debug("encrypted: what has arrived cannot be seen")
    finally:
        sock.settimeout(raw._read_timeout)
    if getattr(sock, "pending", int)():
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(seconds))


def _ended(result: Any) -> None:
    result.unbuffered_active = False
    result.connection = None


def _check_whole(raw: Any, sql: str) -> None:
    """Refuse a result in which the server cut a value.

    Raises:
        LimitReached: it did, or nobody knows.
    """
    warnings = raw.show_warnings()
    for _, number, text in warnings:
        if int(number) in _CUT:
            raise LimitReached(
                f"the server cut a value: {text}",
                "aggregate less into one text, or raise the server's max_allowed_packet",
            )
    if len(warnings) >= _MAX_WARNINGS and _MAY_BE_CUT.search(sql):
        raise LimitReached(
            "the server gave more warnings than it keeps: it may have cut a long text",
            "compare values of the same type, or leave GROUP_CONCAT out",
        )


def _run(raw: Any, sql: str) -> None:
    """A statement without a result."""
    raw.query(sql)


def _number(error: BaseException) -> int:
    """The server's or the driver's error number, 0 where there is none."""
    number = error.args[0] if error.args else 0
    return number if isinstance(number, int) else 0
