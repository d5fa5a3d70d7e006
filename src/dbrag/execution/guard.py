"""Only one reading query over known tables gets through.

First of three walls (the sealed connection and the limits are the others); failing
closed. What runs afterwards is ``Admitted.sql``, never the text that came in.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.errors import Refused, UnknownName
from dbrag.execution.compound import without_parentheses
from dbrag.execution.functions import ALLOWED, INSTEAD, TABLE_FUNCTIONS
from dbrag.execution.names import Names
from dbrag.execution.schema import Schema, nearest
from dbrag.execution.tokens import called, one_line, parenthesised_parts, render, tokenize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlglot.tokenizer_core import Token

    from dbrag.types import Table, TableRef

MAX_CHARACTERS = 100_000

_FORBIDDEN: tuple[type[exp.Expr], ...] = (
    exp.DML,
    exp.DDL,
    exp.Into,
    exp.Lock,
    exp.Command,
    exp.Pragma,
    exp.Attach,
    exp.Detach,
    exp.Drop,
    exp.Alter,
    exp.Set,
    exp.Use,
    exp.Transaction,
    exp.Commit,
    exp.Rollback,
    exp.Merge,
    exp.Describe,
    exp.Returning,
)
_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A statement that may run.

    Attributes:
        sql: the statement to run: its own words written anew, comments gone.
        tables: the tables it really reads, in order of appearance.
        expression: its tree.
        ordered: the outermost query says in which order the rows come.
    """

    sql: str
    tables: tuple[TableRef, ...]
    expression: exp.Expr
    ordered: bool


def admit(
    sql: str,
    dialect: str,
    tables: Sequence[Table],
    *,
    ctes: Mapping[str, Sequence[str] | None] | None = None,
) -> Admitted:
    """Check a statement and write it anew.

    Names are matched without letter case; ``source.table``, ``"schema.table"`` quoted as
    one name and text in double quotes are put right.

    Args:
        sql: what came from a model or a user; a semicolon at the end is fine.
        dialect: sqlglot's name of the engine's dialect.
        tables: what the statement may read.
        ctes: names it may read beside tables (earlier steps) → their columns, None if
            not known.

    Raises:
        Refused: it is not exactly one reading query of allowed parts over one source.
        UnknownName: a table or column does not exist; with near names.
    """
    if len(sql) > MAX_CHARACTERS:
        raise Refused(
            f"the statement has {len(sql):,} characters, more than {MAX_CHARACTERS:,}",
            "write a shorter one",
        )
    if "\0" in sql or any("\ud800" <= character <= "\udfff" for character in sql):
        raise Refused("the statement holds a character that is no text", "remove it")
    try:
        return _admit(sql, dialect, tables, ctes or {})
    except RecursionError as error:
        raise Refused("the statement is nested too deeply", "write it in steps") from error


def _admit(
    sql: str, dialect: str, tables: Sequence[Table], ctes: Mapping[str, Sequence[str] | None]
) -> Admitted:
    if "--" in sql or "/*" in sql:
        # First without comments: sqlglot does not see ORDER BY in ORDER /* … */ BY.
        sql = render(sql, tokenize(sql, dialect), {})
    tokens, tree = _parse(sql, dialect)
    flat = without_parentheses(tree) if parenthesised_parts(tokens) else None
    if flat is not None:
        # No engine of ours takes (SELECT …) UNION (SELECT …): there is no own wording to keep.
        sql = flat.sql(dialect, comments=False)
        tokens, tree = _parse(sql, dialect)
    _check_parts(tree)
    _check_functions(tokens, tree, dialect)
    names = _names(tree, dialect, tables, ctes)
    for cte in names.recursive:
        _check_recursion(cte, tree)
    edits = _with_dots(tokens, names.edits)
    written = render(sql, tokens, edits)
    if edits:
        tree = _parse(written, dialect)[1]
    return Admitted(
        written,
        tuple(names.used),
        tree,
        tree.args.get("order") is not None,
    )


def _parse(sql: str, dialect: str) -> tuple[list[Token], exp.Expr]:
    tokens = tokenize(sql, dialect)
    try:
        trees = sqlglot.Dialect.get_or_raise(dialect).parser().parse(tokens, sql)
    except SqlglotError as error:
        raise Refused(
            f"the statement cannot be parsed: {one_line(error)}",
            "check its syntax; names that are keywords need double quotes",
        ) from error
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1:
        raise Refused(f"{len(found)} statements", "write exactly one SELECT")
    return tokens, found[0]


def _check_parts(tree: exp.Expr) -> None:
    """Refuse any part of the tree that does more than read."""
    if not isinstance(tree, _QUERIES):
        raise Refused(f"{tree.key.upper()} is no query", "only reading is allowed: write SELECT")
    for node in tree.walk():
        if isinstance(node, _FORBIDDEN) and not isinstance(node, _QUERIES):
            raise Refused(
                f"{node.key.upper()} is not allowed", "only reading is allowed: write SELECT"
            )
        if isinstance(node, (exp.Placeholder, exp.Parameter)):
            raise Refused(f"the parameter {node.sql()!r} has no value", "write the value itself")


def _check_functions(tokens: Sequence[Token], tree: exp.Expr, dialect: str) -> None:
    """Refuse functions outside the allow-list, saying what to write instead."""
    allowed = ALLOWED.get(dialect, frozenset()) | TABLE_FUNCTIONS.get(dialect, {}).keys()
    with_columns = frozenset(
        alias.this.meta.get("start", -1)
        for alias in tree.find_all(exp.TableAlias)
        if alias.this is not None
    )
    names = called(tokens, with_columns)
    if tree.find(exp.RegexpLike) is not None:
        names.append("REGEXP")
    for name in names:
        if name.lower() in allowed:
            continue
        instead = INSTEAD.get(dialect, {}).get(name.lower())
        near = nearest(name, sorted(allowed), 2, 0.75)
        hint = f"write {instead}" if instead else "use the engine's built-in functions"
        if not instead and near:
            hint = f"did you mean {' or '.join(near)}?"
        raise Refused(f"function {name!r} is not available in {dialect}", hint)


def _names(
    tree: exp.Expr,
    dialect: str,
    tables: Sequence[Table],
    ctes: Mapping[str, Sequence[str] | None],
) -> Names:
    """Every name found in the tables of one source.

    Raises:
        Refused: tables of several sources are read.
        UnknownName: a name is not there.
    """
    by_source: dict[str, list[Table]] = {}
    for table in tables:
        by_source.setdefault(table.ref.source, []).append(table)
    tried = []
    for own in by_source.values() or [[]]:
        names = Names(Schema(tuple(own)), dialect, ctes)
        names.walk(tree)
        if not names.unknown:
            return names
        tried.append(names)
    # None of several sources has all tables, but together they might.
    missing = [{u.name for u in names.unknown.values() if u.kind == "table"} for names in tried]
    if len(tried) > 1 and all(missing) and not set.intersection(*missing):
        raise Refused("the statement reads tables of several sources", "use those of one source")
    raise _unknown_name(min(tried, key=lambda names: len(names.unknown)))


def _unknown_name(names: Names) -> UnknownName:
    messages: list[str] = []
    suggestions: list[str] = []
    hints: list[str] = []
    for unknown in names.unknown.values():
        message = f"no such {unknown.kind}: {unknown.name!r}"
        if unknown.suggestions:
            message += f" (did you mean {' or '.join(unknown.suggestions)}?)"
        messages.append(message)
        suggestions += unknown.suggestions
        if unknown.hint:
            hints.append(unknown.hint)
    return UnknownName(
        "; ".join(dict.fromkeys(messages)),
        "; ".join(dict.fromkeys(hints)) or "see the tables and columns: dbrag search QUESTION",
        names=tuple(dict.fromkeys(u.name for u in names.unknown.values())),
        suggestions=tuple(dict.fromkeys(suggestions)),
    )


def _check_recursion(cte: exp.CTE, tree: exp.Expr) -> None:
    """Refuse recursion that nothing ends: no LIMIT, no condition, no join, no DISTINCT.

    What only might not end is left to the time limit: hierarchies are honest questions.
    """
    body = cte.this
    if body.args.get("limit") is not None or tree.args.get("limit") is not None:
        return
    for select in body.find_all(exp.Select):
        reads = any(
            table.name.casefold() == cte.alias.casefold() for table in select.find_all(exp.Table)
        )
        bounded = select.args.get("where") is not None or select.args.get("joins")
        if reads and not bounded:
            raise Refused(f"the recursion {cte.alias!r} never ends", "give it a WHERE or a LIMIT")


def _with_dots(tokens: Sequence[Token], edits: Mapping[int, str | None]) -> dict[int, str | None]:
    """``edits`` where a name that is dropped takes the dot after it along."""
    result = dict(edits)
    for token, following in pairwise(tokens):
        if token.start in edits and edits[token.start] is None:
            result[following.start] = None
    return result
