"""What DuckDB's own parser sees in a statement: nothing is bound, looked up or run.

DuckDB's grammar is larger than any other parser's (``FROM t``, ``'file.csv'`` as a
table, ``DESCRIBE`` inside a FROM, ``INSERT … RETURNING`` inside a WITH). What is about
to run in DuckDB is therefore also read the way DuckDB will read it.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbrag.errors import Refused
from dbrag.sources.duck.growth import check_growth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection

_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLES = frozenset(
    {
        "BASE_TABLE",
        "SUBQUERY",
        "JOIN",
        "TABLE_FUNCTION",
        "EXPRESSION_LIST",
        "COLUMN_DATA",
        "EMPTY",
        "EMPTY_FROM",
        "PIVOT",
    }
)
_MODIFIERS = frozenset(
    {
        "ORDER_MODIFIER",
        "LIMIT_MODIFIER",
        "LIMIT_PERCENT_MODIFIER",
        "DISTINCT_MODIFIER",
        "ORDER_DEFAULT",
        "ASCENDING",
        "DESCENDING",
    }
)
_EXPRESSIONS = frozenset(
    {
        "BETWEEN",
        "CASE",
        "CAST",
        "COLLATE",
        "COLUMN_REF",
        "COMPARISON",
        "CONJUNCTION",
        "CONSTANT",
        "FUNCTION",
        "LAMBDA",
        "LAMBDA_REF",
        "OPERATOR",
        "POSITIONAL_REFERENCE",
        "STAR",
        "SUBQUERY",
        "TYPE",
        "WINDOW",
    }
)
_WORDS = {
    "INSERT_QUERY_NODE": "INSERT",
    "UPDATE_QUERY_NODE": "UPDATE",
    "DELETE_QUERY_NODE": "DELETE",
    "MERGE_QUERY_NODE": "MERGE",
    "SHOW_REF": "SHOW, DESCRIBE or SUMMARIZE",
    "PARAMETER": "a parameter",
    "DEFAULT": "DEFAULT",
}
_HINT = "only reading is allowed: write one SELECT (or WITH … SELECT)"


@dataclass(frozen=True, slots=True)
class ParsedSelect:
    """The names in one SELECT, folded; the tree holds only reading kinds of nodes.

    Attributes:
        functions: scalar, aggregate and window functions; operators (``+``) left out.
        table_functions: functions that stand in a FROM.
        tables: (…, schema, name) of every table, as written and not folded; WITH names
            and, without a guard, file names too.
        columns: column names; DuckDB takes ``current_user`` for a column that may
            become a function.
        ctes: names defined by WITH.
        recursive: True when a WITH refers to itself.
    """

    functions: frozenset[str]
    table_functions: frozenset[str]
    tables: tuple[tuple[str, ...], ...]
    columns: frozenset[str]
    ctes: frozenset[str]
    recursive: bool


def parse_select(sql: str) -> ParsedSelect:
    """Read exactly one SELECT as DuckDB does.

    Raises:
        Refused: no or several statements, another kind than SELECT (also inside it),
            a parameter, an unknown kind of node, a huge constant, or no SQL at all.
    """
    import duckdb

    engine = _connection()
    try:
        with engine as connection:
            statements = connection.extract_statements(sql)
            if len(statements) != 1:
                raise Refused(
                    "more than one statement" if statements else "the statement is empty",
                    "write exactly one SELECT",
                )
            kind = statements[0].type.name
            if kind != "SELECT":
                raise Refused(f"a statement of kind {kind} is no plain query", _HINT)
            (text,) = connection.execute(
                "SELECT json_serialize_sql(?::VARCHAR, skip_null := true, skip_empty := true)",
                [sql],
            ).fetchall()[0]
    # TypeError: half a character. ValueError: a kind that only the engine knows (CONNECT).
    except (duckdb.Error, TypeError, ValueError) as error:
        raise Refused(f"the statement cannot be read: {_one_line(error)}", _HINT) from error
    try:
        tree = json.loads(text)
    except RecursionError as error:
        raise Refused("the statement is nested too deeply", "write it in steps") from error
    if tree.get("error", True) or len(tree.get("statements", ())) != 1:
        raise Refused(f"the statement cannot be read: {tree.get('error_message')}", _HINT)
    statement = tree["statements"][0]
    check_growth(statement)
    return _collect(statement)


def _collect(statement: dict[str, Any]) -> ParsedSelect:
    functions, table_functions, columns, ctes = set[str](), set[str](), set[str](), set[str]()
    tables: list[tuple[str, ...]] = []
    recursive = False
    in_from: set[int] = set()
    for node in _nodes(statement):
        _check(node)
        kind = node.get("class") or node.get("type")
        if kind in ("FUNCTION", "WINDOW") and not node.get("is_operator"):
            into = table_functions if id(node) in in_from else functions
            into.add(str(node["function_name"]).casefold())
        elif kind == "TABLE_FUNCTION":
            in_from.add(id(node["function"]))
        elif kind == "BASE_TABLE":
            tables.append(tuple(node["qualified_name"]["path"]))
        elif kind == "COLUMN_REF":
            columns.add(node["column_names"][-1].casefold())
        for entry in node.get("cte_map", {}).get("map", ()):
            ctes.add(entry["key"].casefold())
        recursive = recursive or kind == "RECURSIVE_CTE_NODE"
    return ParsedSelect(
        functions=frozenset(functions),
        table_functions=frozenset(table_functions),
        tables=tuple(tables),
        columns=frozenset(columns),
        ctes=frozenset(ctes),
        recursive=recursive,
    )


def _check(node: dict[str, Any]) -> None:
    """Refuse what is not known to read only; a node of a later version is not known."""
    kind = node.get("class")
    if kind is not None:
        allowed = _EXPRESSIONS
    else:
        kind = node.get("type")
        allowed = _QUERIES | _TABLES | _MODIFIERS
    if isinstance(kind, str) and kind not in allowed:
        raise Refused(f"{_WORDS.get(kind, kind)} is not allowed in a query", _HINT)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of the tree, each before those inside it."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def _one_line(error: Exception) -> str:
    """DuckDB's message without its excerpt of the statement."""
    if isinstance(error, TypeError):
        return "it is no text"
    first = str(error).partition("\n\n")[0]
    return " ".join(first.split()).removeprefix("Parser Error: ")[:200]


_lock = threading.Lock()
_parser: DuckDBPyConnection | None = None


def _connection() -> DuckDBPyConnection:
    """A cursor of this process's one empty engine, which only parses."""
    global _parser
    from dbrag.sources.duck.engine import open_engine

    with _lock:
        if _parser is None:
            _parser = open_engine(memory_mb=128, threads=1)
        return _parser.cursor()
