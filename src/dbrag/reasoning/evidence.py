"""What an answer says about itself: its text, and the warnings a reader needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal

import sqlglot
from sqlglot import exp

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.joins import JoinGraph
from dbrag.reasoning.attempt import Attempt
from dbrag.reasoning.select import Selection
from dbrag.types import AnswerWarning, Execution, Program, Table, TableRef
from dbrag.values import text_value

MAX_TEXT_CHARS = 300

MAX_ODD = 5
"""Oddities of one table that a warning repeats."""


def answer_text(execution: Execution, doubts: str = "") -> str:
    """The result in a sentence, made from its cells only, and the doubts of an unsure one."""
    text = _cut(_result_text(execution))
    return f"{text} ({doubts})" if doubts else text


def _result_text(execution: Execution) -> str:
    rows, columns = execution.rows, execution.columns
    if not rows:
        return "No row matches."
    if len(rows) == 1:
        cells = [_shown(value) for value in rows[0]]
        if len(cells) == 1:
            return cells[0]
        pairs = zip(columns, cells, strict=True)
        return ", ".join(f"{column.name}: {cell}" for column, cell in pairs)
    if len(columns) == 1 and len(rows) <= 10:
        return ", ".join(_shown(row[0]) for row in rows)
    return f"{len(rows):,} rows."


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,}"
    if isinstance(value, Decimal):
        return f"{value:,f}" if value.is_finite() and abs(value.adjusted()) < 100 else str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_value(value)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1] + "…"


def remote_warning(model: str) -> AnswerWarning:
    """That data left this machine, for ``provider:name``."""
    return AnswerWarning(
        "remote_model",
        f"the question, the schema with comments and notes, and sample values were sent to {model}",
    )


def learned_sent_warning(model: str) -> AnswerWarning:
    """That learned pairs left this machine, for ``provider:name``."""
    return AnswerWarning(
        "remote_model", f"similar learned questions with their SQL were sent to {model}, too"
    )


def warnings_of(
    catalog: Catalog, joins: JoinGraph, selection: Selection, winner: Attempt, split: bool
) -> tuple[AnswerWarning, ...]:
    """Everything about the winning program that its reader has to know."""
    found: list[AnswerWarning] = []
    used = winner.program.tables if winner.program else ()
    found += odd_warnings(catalog.by_ref[ref] for ref in used if ref in catalog.by_ref)
    found += _sampled(catalog, used)
    if winner.program is not None:
        found += inferred_joins(winner.program, joins)
    if selection.rivals:
        names = ", ".join(str(ref) for ref in selection.rivals)
        found.append(
            AnswerWarning(
                "close_source",
                f"tables of other sources fit nearly as well: {names}; "
                f"this answer uses {selection.source} (choose with --tables or -s)",
            )
        )
    if winner.changes:
        found.append(AnswerWarning("mended", "; ".join(winner.changes)))
    if split:
        found.append(
            AnswerWarning(
                "votes_split",
                "another program gave a different result as often: see the other reading",
            )
        )
    if winner.execution is not None and not winner.execution.rows:
        found.append(AnswerWarning("empty_result", "the program ran and found no row"))
    found += _duplicate_names(winner.execution)
    if winner.execution is not None and len(_result_text(winner.execution)) > MAX_TEXT_CHARS:
        found.append(
            AnswerWarning(
                "text_cut",
                f"the text shows the first {MAX_TEXT_CHARS} characters; the rows hold everything",
            )
        )
    return tuple(found)


def odd_warnings(tables: Iterable[Table]) -> tuple[AnswerWarning, ...]:
    """What was lost or doubtful when the files of these tables were read."""
    return tuple(
        AnswerWarning("file_read", f"{table.ref}: {_first(table.odd)}")
        for table in tables
        if table.odd
    )


def _first(texts: Sequence[str]) -> str:
    more = len(texts) - MAX_ODD
    last = [f"and {more:,} more (dbrag status --json)"] if more > 0 else []
    return "; ".join([*texts[:MAX_ODD], *last])


def _sampled(catalog: Catalog, used: Sequence[TableRef]) -> Iterable[AnswerWarning]:
    for ref in used:
        table = catalog.by_ref.get(ref)
        if table is not None and table.sampled:
            of = f" of {table.row_count:,}" if table.row_count is not None else ""
            yield AnswerWarning(
                "sampled_index",
                f"{ref}: the index saw {table.rows_read:,}{of} rows, so a value may not have "
                "been recognised; the result itself is computed from all rows",
            )


def inferred_joins(program: Program, joins: JoinGraph) -> Iterable[AnswerWarning]:
    """The inferred edges that a program joins over.

    An edge counts as used where its two tables are, and two columns of its names are equated:
    by ``=``, ``USING`` or ``NATURAL``, or by ``IN`` with a subquery.
    """
    tables = sorted(set(program.tables), key=str)
    edges = [
        edge
        for i, a in enumerate(tables)
        for b in tables[i:]
        for edge in joins.between(a, b)
        if not edge.declared
    ]
    names = {name.casefold() for edge in edges for name in edge.left_columns}
    equated = _equated(program, names) if edges else set()
    for edge in edges:
        pairs = zip(edge.left_columns, edge.right_columns, strict=True)
        if all(frozenset((a.casefold(), b.casefold())) in equated for a, b in pairs):
            yield AnswerWarning(
                "inferred_join",
                f"joined by {edge}: not declared, inferred with {edge.percent} "
                f"confidence ({edge.evidence})",
            )


def _equated(program: Program, named: Collection[str]) -> set[frozenset[str | None]]:
    """Folded names of columns that a statement equates.

    Args:
        named: columns that a natural join would equate with others of the same name.
    """
    tree = sqlglot.parse_one(program.sql, dialect=program.dialect)
    compared = [(equal.left, equal.right) for equal in tree.find_all(exp.EQ, exp.NullSafeEQ)]
    compared += [
        (one.this, one.args["query"]) for one in tree.find_all(exp.In) if one.args.get("query")
    ]
    found = {
        frozenset(names)
        for one, other in compared
        if None not in (names := {_column_name(one), _column_name(other)})
    }
    joins = list(tree.find_all(exp.Join))
    for join in joins:
        found |= {frozenset((name.name.casefold(),)) for name in join.args.get("using") or ()}
    if any(join.method == "NATURAL" for join in joins):
        found |= {frozenset((name,)) for name in named}
    return found


def _column_name(side: exp.Expr) -> str | None:
    """The folded name of a column, or of the one column that a subquery gives."""
    side = side.unnest()
    if isinstance(side, exp.Query) and len(side.selects) == 1:
        side = side.selects[0].unalias()
    return side.name.casefold() if isinstance(side, exp.Column) else None


def _duplicate_names(execution: Execution | None) -> Iterable[AnswerWarning]:
    names = [column.name for column in execution.columns] if execution else []
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        yield AnswerWarning("duplicate_columns", f"columns share a name: {', '.join(twice)}")
