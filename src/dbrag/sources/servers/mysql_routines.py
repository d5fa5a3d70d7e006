"""What MySQL and MariaDB tell beside tables: stored functions, statistics of columns."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dbrag.sources.base import ColumnStatistics
from dbrag.sources.servers.mysql_reflect import SYSTEM, rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from dbrag.types import Table

log = logging.getLogger(__name__)

_NATIVE_WORDS = """
benchmark charset coercibility collation connection_id current_role current_user database
    des_decrypt des_encrypt encrypt extractvalue found_rows get_lock is_free_lock is_used_lock
    last_insert_id lastval load_file master_gtid_wait master_pos_wait name_const nextval
    release_all_locks release_lock row_count schema session_user setval sleep source_pos_wait
    statement_digest statement_digest_text sys_eval sys_exec sys_get sys_set system_user
    updatexml user uuid uuid_short validate_password_strength version
    wait_for_executed_gtid_set wait_until_sql_thread_after_gtids
"""
_NATIVE = frozenset(_NATIVE_WORDS.split())
"""Built-in functions that do more than compute. A call always means the built-in function, so
a stored one of the same name must not open the way to it."""


def functions(connection: Connection) -> frozenset[str]:
    """Stored functions that only compute, by folded name and ``schema.name``.

    Declared ``DETERMINISTIC``, not ``MODIFIES SQL DATA``, run with the rights of the
    caller (``SQL SECURITY INVOKER``), and not named as a built-in function. The plain
    name only where it is in the current database, and only if all functions of that name
    that the user may call are so.
    """
    ((current,),) = rows(connection, "SELECT DATABASE()")
    found = rows(
        connection,
        "SELECT ROUTINE_SCHEMA, ROUTINE_NAME, IS_DETERMINISTIC = 'YES'"
        " AND SQL_DATA_ACCESS IN ('NO SQL', 'CONTAINS SQL', 'READS SQL DATA')"
        " AND SECURITY_TYPE = 'INVOKER'"
        " FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = 'FUNCTION'",
    )
    native = _native(connection)
    names, others = set(), set()
    for schema, name, computes in found:
        folded = name.casefold()
        if not computes or schema.lower() in SYSTEM or folded in native:
            others.add(folded)
            continue
        names.add(f"{schema}.{folded}".casefold())
        if schema == current:
            names.add(folded)
    return frozenset(names - others)


def _native(connection: Connection) -> frozenset[str]:
    """Names of built-in functions: all of them where the server has a list."""
    from sqlalchemy.exc import DBAPIError

    try:
        listed = rows(connection, "SELECT `FUNCTION` FROM information_schema.SQL_FUNCTIONS")
    except DBAPIError:
        return _NATIVE
    return _NATIVE | {str(name).casefold() for (name,) in listed}


def statistics(connection: Connection, table: Table) -> Mapping[str, ColumnStatistics]:
    """The distinct values of columns that come first in an index, as the index estimates."""
    if table.kind != "table" or table.ref.schema is None:
        return {}
    found = rows(
        connection,
        "SELECT COLUMN_NAME, MAX(CARDINALITY) FROM information_schema.STATISTICS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND SEQ_IN_INDEX = 1"
        # The catalog's own comparison takes `Orders` and `orders` for one table.
        " AND BINARY TABLE_SCHEMA = %s AND BINARY TABLE_NAME = %s"
        " AND SUB_PART IS NULL AND CARDINALITY IS NOT NULL AND COLUMN_NAME IS NOT NULL"
        " GROUP BY COLUMN_NAME",
        (table.ref.schema, table.ref.name) * 2,
    )
    known = {column.name for column in table.columns}
    return {name: ColumnStatistics(distinct=int(n)) for name, n in found if name in known and n > 0}
