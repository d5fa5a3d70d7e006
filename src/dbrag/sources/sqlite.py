"""Everything that is special about SQLite files: opening, sealing, marks, errors.

Nothing is ever written: not to the database, and not beside it. Three walls:
the file is opened ``mode=ro``, ``query_only`` is on, and an authorizer refuses
everything but reading.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dbrag.errors import (
    DbragError,
    ExecutionError,
    LimitReached,
    SourceBusy,
    SourceError,
    SourceUnreadable,
    UnknownName,
)
from dbrag.sources.filelocks import plain_read
from dbrag.sources.filestate import change_mark, digest_of, file_error
from dbrag.sources.statements import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

MAGIC = b"SQLite format 3\x00"
EXTENSIONS = (".sqlite", ".db", ".sqlite3")
BUSY_S = 2.0
"""Seconds to wait for another program's lock."""
MAX_CELL_BYTES = 256 * 2**20
"""Longest value SQLite may build or read for us: a bound on memory inside the engine."""

_HEADER_BYTES = 100
# What SQLAlchemy, full-text tables (data_version) and this package ask.
_PRAGMAS = frozenset(
    {
        "data_version",
        "foreign_key_list",
        "index_info",
        "index_list",
        "read_uncommitted",
        "table_info",
        "table_list",
        "table_xinfo",
    }
)
_FORBIDDEN_FUNCTIONS = frozenset(
    {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "sqlite_log"}
)


def is_sqlite(path: str) -> bool:
    """True when the file starts with SQLite's 16 bytes.

    Raises:
        OSError: it cannot be read.
    """
    with plain_read(path) as file:
        return file.read(len(MAGIC)) == MAGIC


def stamp(path: str) -> str:
    """Size, times, inode and header of the file and of its write-ahead log, as one text.

    The header holds SQLite's change counter, which tells two writes within one tick
    of the file system's clock apart.

    Raises:
        SourceNotFound, SourceUnreadable: the file is gone, or may not be read.
    """
    try:
        status = os.stat(path)
        with plain_read(path) as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise file_error(path, error) from error
    parts = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, header.hex()]
    log_status = _wal_status(path)
    if log_status is not None:
        parts += [log_status.st_size, log_status.st_mtime_ns]
    return "-".join(map(str, parts))


def fingerprint(path: str) -> str:
    """BLAKE2b of the bytes of the file and of its write-ahead log.

    Raises:
        SourceNotFound, SourceUnreadable: the file is gone, or may not be read.
    """
    real = os.path.realpath(path)
    return digest_of([real] if _wal_status(path) is None else [real, real + "-wal"])


def _wal_status(path: str) -> os.stat_result | None:
    """The write-ahead log; None where there is none, or an empty one, which says nothing.

    It lies beside the file itself, not beside a link to it.
    """
    try:
        status = os.stat((os.path.realpath(path) if os.path.islink(path) else path) + "-wal")
    except OSError:
        return None
    return status if status.st_size else None


def check_unchanged(path: str, mark: tuple[int, ...] | None) -> None:
    """A file read without locks (``mark`` is not None) must not have changed meanwhile.

    Raises:
        SourceBusy: it has.
    """
    if mark is not None and change_mark(path) != mark:
        raise SourceBusy(f"database {path!r} was changed while it was read", "run it again")


def connect(path: str) -> tuple[sqlite3.Connection, str]:
    """A connection that can only read, and its mode: "plain", "wal" or "immutable".

    Raises:
        SourceError: it cannot be opened, or is locked.
    """
    for attempt in range(3):
        mode, options = _open_mode(path)
        uri = f"file://{quote(os.fsencode(path))}?{options}"
        try:
            connection = sqlite3.connect(
                uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                _configure(connection)
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            # A writer that ends removes its log between our look and our opening.
            gone = mode == "wal" and error_code(error) == sqlite3.SQLITE_CANTOPEN
            if gone and attempt < 2:
                continue
            raise translate(error, path) from error
        return connection, mode
    raise SourceBusy(f"database {path!r} keeps changing its journal", "try again in a moment")


def _open_mode(path: str) -> tuple[str, str]:
    """How to open the file without creating one: (mode, URI options).

    A write-ahead-log database needs an index file (``-shm``), which SQLite would
    create beside the database, even for a reader; on read-only media it cannot and
    gives up. Where no log is waiting, the main file is complete: ``immutable=1``
    reads it alone (no locks: sessions check afterwards that it did not change).
    Where both files exist, ``readonly_shm=1`` uses them as they are.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise SourceUnreadable(f"{path!r} is not a file", "name a database file")
        with plain_read(path) as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise file_error(path, error) from error
    if len(header) < _HEADER_BYTES or 2 not in header[18:20]:
        return "plain", "mode=ro"
    real = os.path.realpath(path)
    if os.path.exists(real + "-shm") and os.path.exists(real + "-wal"):
        return "wal", "mode=ro&readonly_shm=1"
    if _wal_status(path) is None:
        return "immutable", "mode=ro&immutable=1"
    raise SourceError(
        f"database {path!r} has changes in {real + '-wal'!r} but no '-shm' file to read them by",
        "another program holds it, or it was copied without that file; to fold the changes in: "
        f"sqlite3 {path!r} 'PRAGMA wal_checkpoint(TRUNCATE)'",
    )


def _configure(connection: sqlite3.Connection) -> None:
    # errors="replace" without a Python function per cell: str(bytes, encoding=…, errors=…)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    # Not trusted_schema=OFF: it forbids json_extract in views and generated columns, and
    # what it is for (dangerous functions in a schema) the authorizer refuses.
    for pragma in ("query_only=ON", "cell_size_check=ON"):
        connection.execute(f"PRAGMA {pragma}")
    # Reading the schema shows now whether it is a database, whole, and not locked.
    virtual = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0"
    ).fetchall()
    # Virtual tables declare themselves, and R-trees prepare their (never run) writing
    # statements, when first touched. The authorizer would refuse: touch them before it is set.
    touches = [f"PRAGMA table_info({quoted(name)})" for (name,) in virtual]
    touches += ["SELECT 1 FROM json_each('[]')", "SELECT 1 FROM json_tree('[]')"]
    for touch in touches:
        try:
            connection.execute(touch).fetchall()
        except sqlite3.OperationalError as error:
            log.debug("%s: %s", touch, error)


def seal(connection: sqlite3.Connection) -> None:
    """Let the connection do nothing but read.

    Also takes away the ``regexp`` function that SQLAlchemy adds: a pattern that
    backtracks for ever runs inside Python, where no time limit reaches it.
    """
    connection.create_function("regexp", 2, None)
    connection.set_authorizer(_authorize)


def _authorize(
    action: int, first: str | None, second: str | None, database: str | None, inner: str | None
) -> int:
    match action:
        case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_READ | sqlite3.SQLITE_RECURSIVE:
            return sqlite3.SQLITE_OK
        case sqlite3.SQLITE_FUNCTION if (second or "").lower() not in _FORBIDDEN_FUNCTIONS:
            return sqlite3.SQLITE_OK
        case sqlite3.SQLITE_PRAGMA if (first or "").lower() in _PRAGMAS:
            # These two without argument only tell a value.
            if (first or "").lower() not in ("data_version", "read_uncommitted") or not second:
                return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def columns_of(
    execute: Callable[[str], Sequence[Any]], table: str
) -> list[tuple[str, str, bool, bool]]:
    """(name, declared type as written, nullable, hidden) of each column, in order.

    SQLAlchemy upper-cases the type and leaves the hidden columns of virtual tables out,
    which ``MATCH`` and ``ORDER BY rank`` of a full-text table name.
    """
    rows = execute(f"PRAGMA main.table_xinfo({quoted(table)})")
    keys = [row[2].upper() for row in rows if row[5]]
    row_id = keys == ["INTEGER"]
    return [(row[1], row[2], not (row[3] or (row_id and row[5])), row[6] == 1) for row in rows]


def shadow_tables(execute: Callable[[str], Sequence[Any]]) -> frozenset[str]:
    """The tables in which virtual tables (full text, R-tree) keep their data."""
    if sqlite3.sqlite_version_info < (3, 37):
        return frozenset()
    rows = execute("PRAGMA main.table_list")
    return frozenset(row[1] for row in rows if row[2] == "shadow")


def error_code(error: BaseException) -> int:
    """SQLite's primary result code, 0 where there is none."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_statement_error(error: BaseException | None) -> bool:
    """True when one statement failed (a broken view, a missing module), not the database."""
    return error is not None and error_code(error) in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_AUTH)


def translate(error: BaseException, path: str) -> DbragError:
    """An error of the ``sqlite3`` module as one of ours."""
    code, text = error_code(error), " ".join(str(error).split())
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return SourceBusy(
                f"database {path!r} is locked by another program",
                "close that program, or wait for it, and try again",
            )
        case sqlite3.SQLITE_NOTADB:
            return SourceUnreadable(
                f"{path!r} is not a SQLite database, or is encrypted",
                "name a SQLite file, or a folder of them",
            )
        case sqlite3.SQLITE_CORRUPT:
            return SourceUnreadable(
                f"database {path!r} is malformed: {text}",
                f"check it: sqlite3 {path!r} 'PRAGMA integrity_check'",
            )
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return SourceUnreadable(f"cannot open {path!r}: {text}", "check its permissions")
        case sqlite3.SQLITE_READONLY if os.path.exists(os.path.realpath(path) + "-journal"):
            return SourceError(
                f"database {path!r} has an unfinished change in its '-journal' file",
                f"it must be undone by a writer once: sqlite3 {path!r} 'PRAGMA user_version'",
            )
        case sqlite3.SQLITE_IOERR:
            return SourceError(f"cannot read {path!r}: {text}", "check the disk")
        case sqlite3.SQLITE_TOOBIG | sqlite3.SQLITE_NOMEM:
            limit = MAX_CELL_BYTES // 2**20
            return LimitReached(f"a value is larger than {limit} MB", "cut it: substr(…, 1, 1000)")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_AUTH:
            return ExecutionError(f"only reading is allowed: {text}", "write SELECT")
    for start in ("no such column: ", "no such table: "):
        if text.startswith(start):
            return UnknownName(text, names=(text.removeprefix(start),))
    return ExecutionError(text or type(error).__name__)
