"""Only one reading query over known tables gets through.

First of three walls (the sealed connection and the limits are the others); failing
closed. What runs afterwards is ``Admitted.sql``, never the text that came in.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.errors import Refused, UnknownName
from dbrag.execution import parts
from dbrag.execution.calls import check_functions, check_words
from dbrag.execution.compound import without_parentheses
from dbrag.execution.dialects import Rules, rules_of
from dbrag.execution.names import Names
from dbrag.execution.schema import schemas_of, types_of
from dbrag.execution.tokens import (
    joined_strings,
    one_line,
    parenthesised_parts,
    render,
    render_strictly,
    tokenize,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlglot.tokenizer_core import Token

    from dbrag.types import Table, TableRef

MAX_CHARACTERS = 100_000

# Without any of these a statement has no comments and no strings on several lines.
_PLAIN = frozenset("-/#$\\\n")

# What sqlglot cannot parse is refused, which says enough.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


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
    functions: frozenset[str] = frozenset(),
) -> Admitted:
    """Check a statement and write it anew.

    Names are matched without letter case and written as they really are, tables with
    their schema; ``source.table``, ``"schema.table"`` quoted as one name and text in
    double quotes are put right. Columns in ``Table.redacted`` do not exist.

    Args:
        sql: what came from a model or a user; a semicolon at the end is fine.
        dialect: sqlglot's name of the engine's dialect.
        tables: what the statement may read.
        ctes: names it may read beside tables (earlier steps) → their columns, None if
            not known.
        functions: the user's own functions that only compute, folded, with or without
            their schema.

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
        return _admit(sql, rules_of(dialect), tables, ctes or {}, functions)
    except RecursionError as error:
        raise Refused("the statement is nested too deeply", "write it in steps") from error


def _admit(
    sql: str,
    rules: Rules,
    tables: Sequence[Table],
    ctes: Mapping[str, Sequence[str] | None],
    functions: frozenset[str],
) -> Admitted:
    dialect = rules.name
    if rules.own_words and ("--" in sql or "/*" in sql):
        # First without comments: sqlglot does not see ORDER BY in ORDER /* … */ BY.
        sql = render(sql, tokenize(sql, dialect), {})
    elif not rules.own_words and not (sql.isascii() and _PLAIN.isdisjoint(sql)):
        tokens = tokenize(sql, dialect)
        joined = joined_strings(sql, tokens, rules) if dialect == "postgres" else {}
        sql = render_strictly(sql, tokens, joined, rules)
    tokens, tree = _parse(sql, dialect)
    flat = without_parentheses(tree) if rules.own_words and parenthesised_parts(tokens) else None
    if flat is not None:
        # SQLite takes no (SELECT …) UNION (SELECT …): there is no own wording to keep.
        sql = _rewritten(flat, dialect)
        tokens, tree = _parse(sql, dialect)
    judge = partial(_judge, rules=rules, tables=tables, ctes=ctes, functions=functions)
    names = judge(tokens, tree)
    edits = _with_dots(tokens, names.edits)
    edits |= _lambdas(tokens, names.arrows)
    if rules.own_words:
        written = render(sql, tokens, edits)
    else:
        written = render_strictly(sql, tokens, edits, rules)
    if edits:
        tokens, tree = _parse(written, dialect)
        # What runs has to stand the same test as what came in.
        judge(tokens, tree)
    if dialect == "duckdb":
        _check_as_duckdb(written)
    return Admitted(
        written,
        tuple(names.used),
        tree,
        tree.args.get("order") is not None,
    )


def _rewritten(tree: exp.Expr, dialect: str) -> str:
    try:
        return str(tree.sql(dialect, comments=False))
    except RecursionError:
        raise
    except Exception as error:
        raise Refused(
            "the statement cannot be written anew", "leave out the parentheses"
        ) from error


def _judge(
    tokens: Sequence[Token],
    tree: exp.Expr,
    rules: Rules,
    tables: Sequence[Table],
    ctes: Mapping[str, Sequence[str] | None],
    functions: frozenset[str],
) -> Names:
    """Look at every part, function, name and word of a statement.

    Raises:
        Refused, UnknownName: it is not admitted.
    """
    parts.check(tree, rules.name)
    check_functions(tokens, tree, rules, functions)
    words = {t.start: o.text.lower() for o, t in pairwise(tokens)} if rules.fields else {}
    lambdas = frozenset(start for start, word in words.items() if word == "lambda")
    names = _names(tree, rules, tables, ctes, (functions, lambdas))
    for cte in names.recursive:
        _check_recursion(cte, tree)
    if not rules.own_words:
        check_words(tokens, tree, rules, functions, types_of(tables))
    return names


def _check_as_duckdb(sql: str) -> None:
    """DuckDB's own parser must also see exactly one SELECT.

    Raises:
        Refused: it does not.
    """
    from dbrag.sources.duck.parser import parse_select

    parse_select(sql)


def _parse(sql: str, dialect: str) -> tuple[list[Token], exp.Expr]:
    tokens = tokenize(sql, dialect)
    try:
        trees = sqlglot.Dialect.get_or_raise(dialect).parser().parse(tokens, sql)
    except SqlglotError as error:
        raise Refused(
            f"the statement cannot be parsed: {one_line(error)}",
            "check its syntax; names that are keywords need double quotes",
        ) from error
    except RecursionError:
        raise
    except Exception as error:  # on nonsense sqlglot also fails by accident
        raise Refused("the statement cannot be parsed", "check its syntax") from error
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1:
        raise Refused(f"{len(found)} statements", "write exactly one SELECT")
    return tokens, found[0]


def _names(
    tree: exp.Expr,
    rules: Rules,
    tables: Sequence[Table],
    ctes: Mapping[str, Sequence[str] | None],
    more: tuple[frozenset[str], frozenset[int]],
) -> Names:
    """Every name found in the tables of one source.

    Raises:
        Refused: tables of several sources are read.
        UnknownName: a name is not there.
    """
    tried = []
    for schema in schemas_of(tables):
        names = Names(schema, rules, ctes, *more)
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
        if unknown.several:
            message = f"several tables are called {unknown.name!r}"
        if unknown.suggestions:
            message += f" (did you mean {' or '.join(unknown.suggestions)}?)"
        messages.append(message)
        suggestions += unknown.suggestions
        if unknown.hint:
            hints.append(unknown.hint)
    return UnknownName(
        "; ".join(dict.fromkeys(messages)),
        "; ".join(dict.fromkeys(hints)),
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


def _lambdas(tokens: Sequence[Token], arrows: Mapping[int, int]) -> dict[int, str | None]:
    """``(x, y) -> …`` as ``lambda x, y: …``: DuckDB no longer takes the arrow."""
    edits: dict[int, str | None] = {}
    for i, token in enumerate(tokens):
        if token.start not in arrows:
            continue
        edits[token.start] = f"lambda {token.text}"
        if i and tokens[i - 1].text == "(" and token.start != arrows[token.start]:
            edits[tokens[i - 1].start] = None
        place = i
        while tokens[place].start != arrows[token.start]:
            place += 1
        for following in tokens[place + 1 :]:
            edits[following.start] = ":" if following.text == "->" else None
            if following.text == "->":
                break
    return edits
