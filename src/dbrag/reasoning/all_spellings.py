"""A text that a column holds in several spellings is compared with all of them.

``city = 'Paris'`` misses ``'PARIS'`` and ``' Paris'``. Where the column holds them beside the
compared text, they differ in letter case, accents and outer blanks alone, and the engine takes
them for others, the comparison becomes ``city IN ('Paris', 'PARIS', ' Paris')`` before the program
runs, and the answer says so. Likely misspellings are only warned of: they are a guess.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.catalog.formats import same_value
from dbrag.reasoning.noise import MAX_ASKED, counted, is_matched
from dbrag.reasoning.repair import parse
from dbrag.reasoning.uses import Use, uses_of
from dbrag.types import AnswerWarning, Program, Table

if TYPE_CHECKING:
    from dbrag.reasoning.noise import Look

log = logging.getLogger(__name__)

MOST = 50
"""Spellings of one column beyond which a comparison stays as it was written."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Spellings of one column that a comparison was widened by."""

    column: str
    values: tuple[str, ...]
    message: str

    def is_in(self, program: Program) -> bool:
        """Whether a program compares with them."""
        tree = parse(program.sql, program.dialect)
        found = tree.find_all(exp.Literal) if tree is not None else ()
        return {*self.values} <= {one.this for one in found if one.is_string}


def with_all_spellings(
    sql: str, tables: Sequence[Table], dialect: str, look: Look
) -> tuple[str, tuple[Matched, ...]]:
    """The statement with its texts compared in all their spellings, and what was matched.

    Args:
        look: finds and counts the spellings that a column holds beside compared texts.

    Raises:
        IndexUnusable: the index is damaged.
    """
    tree = parse(sql, dialect)
    if tree is None:
        return sql, ()
    try:
        uses = uses_of(tree, tables, dialect)
    except (SqlglotError, RecursionError) as error:  # it stands as it was written
        log.info("no look at spellings: %s", error)
        return sql, ()
    matched = tuple(one for use in uses if (one := _widen(use, dialect, look)) is not None)
    return (tree.sql(dialect), matched) if matched else (sql, ())


def _widen(use: Use, dialect: str, look: Look) -> Matched | None:
    """Widen the comparisons of one column in place; None where there is nothing to match."""
    texts, cell = use.words, use.cell
    # A CASE is left as it is: beside a wider WHERE its parts no longer made up the whole.
    if not use.compared or use.handled or not 0 < len(texts) <= MAX_ASKED:
        return None
    found = look(cell.table, cell.column, texts).same
    same = {v: n for v, n in found.items() if n and not is_matched(v, use.equal, dialect)}
    if not same or len(same) > MOST:
        return None
    taken = list(
        dict.fromkeys(value for node in use.compared for value in _compare_with_all(node, same))
    )
    if not taken:
        return None
    told: dict[str, dict[str, int | None]] = {}
    for value in taken:
        literal = next(text for text in texts if same_value(text) == same_value(value))
        told.setdefault(literal, {})[value] = same[value]
    parts = [f"{counted(rows, True)}, taken for {literal!r}" for literal, rows in told.items()]
    text = f"{cell.name} also holds {'; '.join(parts)}"
    return Matched(cell.name, tuple(taken), text)


def matched_warnings(matched: Sequence[Matched], program: Program) -> list[AnswerWarning]:
    """What a program was widened by; of a column once, though several programs were widened."""
    told: dict[str, Matched] = {}
    for one in matched:
        known = told.get(one.column)
        if one.is_in(program) and (known is None or len(known.values) < len(one.values)):
            told[one.column] = one
    return [AnswerWarning("matched_spellings", one.message) for one in told.values()]


def _compare_with_all(node: exp.Expr, same: Mapping[str, int | None]) -> Iterator[str]:
    """Widen one comparison; the spellings that it now takes, too."""
    literals = [one for one in _sides(node) if isinstance(one, exp.Literal) and one.is_string]
    asked = {same_value(one.this) for one in literals}
    more = [value for value in same if same_value(value) in asked]
    if not more:
        return
    yield from more
    added = [exp.Literal.string(value) for value in more]
    if isinstance(node, exp.In):
        node.set("expressions", [*node.expressions, *added])
        return
    (cell,) = (one for one in _sides(node) if one is not literals[0])
    inside = exp.In(this=cell.copy(), expressions=[literals[0].copy(), *added])
    wider = exp.Not(this=inside) if isinstance(node, exp.NEQ) else inside
    # NOT binds more loosely than the operators that a comparison may stand between.
    is_operand = isinstance(node.parent, exp.Binary) and not isinstance(node.parent, exp.Connector)
    node.replace(exp.paren(wider) if wider is not inside and is_operand else wider)


def _sides(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.In) else [node.this, node.expression]
