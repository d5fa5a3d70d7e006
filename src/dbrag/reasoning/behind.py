"""The source rows behind a cell of an answer: a second statement over the same rows.

It has the FROM and WHERE of the program, the values of the row (of its group's keys, where
rows were grouped) as further conditions, and no more than that: so whoever reads a
number can see what it was made from. Possible for one SELECT over tables only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.errors import ExecutionError, UsageError
from dbrag.execution.guard import Admitted
from dbrag.reasoning.blocks import Block, Entry, is_star, take_apart
from dbrag.reasoning.losses import counting
from dbrag.reasoning.vote import cell_key
from dbrag.types import Answer, AnswerWarning, Execution, Program, Table

_INSTEAD = "read it with --explain, or write the statement yourself: dbrag sql"

Run = Callable[[str], tuple[Admitted, Execution]]
"""Runs a statement, guarded and limited."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The statement that ran, its rows cut at the limit, and a warning if there are more."""

    admitted: Admitted
    execution: Execution
    warnings: tuple[AnswerWarning, ...]


def trace(
    answer: Answer,
    row: int,
    column: int | str | None,
    limit: int,
    tables: Sequence[Table],
    run: Run,
) -> Trace:
    """The rows behind a row of an answer, or behind one of its cells.

    Args:
        row: position from 0.
        column: position from 0 or name; for a cell of an aggregate only the rows that it
            was made from, for the lowest and highest those that have it.
        limit: rows at most; the statement asks for one more, which tells of the others.
        tables: all tables of the answer's source.
        run: also asked for the keys of the row's group, where the program does not show them.

    Raises:
        UsageError: the answer has no such row or column, or its program is of a kind whose
            rows cannot be traced.
        ExecutionError: the values of the row are not found again.
    """
    program, execution = answer.program, answer.execution
    if program is None or execution is None:
        raise UsageError("this answer has no result", "ask again without --dry-run")
    if not 0 <= row < len(execution.rows):
        raise UsageError(
            f"there is no row {row + 1}: the answer has {len(execution.rows):,}", "choose another"
        )
    if limit < 1:
        raise UsageError(f"limit must be at least 1, not {limit!r}", "leave it out for 20")
    tracer = _Tracer(program, tables)
    place = _column_place(execution, column)
    statement, some = tracer.statement(execution.rows[row], place, limit, run)
    try:
        admitted, found = run(statement)
    except ExecutionError as error:  # an aggregate that is not known as one, for example
        raise _untraceable(f"the engine rejects their statement ({error.message})") from error
    if some and not found.rows:
        raise ExecutionError(
            "the values of this row were not found again: inexact numbers, or changed data",
            "ask again, or for a key as a column, too",
        )
    if len(found.rows) <= limit:
        return Trace(admitted, found, ())
    more = AnswerWarning("more_rows", f"there are more than these {limit:,} rows")
    return Trace(admitted, replace(found, rows=found.rows[:limit]), (more,))


def _column_place(execution: Execution, column: int | str | None) -> int | None:
    names = [one.name for one in execution.columns]
    if column is None:
        return None
    if isinstance(column, str):
        found = [i for i, name in enumerate(names) if name.casefold() == column.casefold()]
        if len(found) != 1:
            which = "several columns are" if found else "no column is"
            raise UsageError(f"{which} called {column!r}", f"columns: {', '.join(names)}")
        return found[0]
    if not 0 <= column < len(names):
        raise UsageError(
            f"there is no column {column + 1}: the answer has {len(names)}", "choose another"
        )
    return column


class _Tracer:
    """One SELECT over tables, ready to be traced.

    Raises:
        UsageError: the program is none.
    """

    def __init__(self, program: Program, tables: Sequence[Table]) -> None:
        self._dialect = program.dialect
        try:
            tree = sqlglot.parse_one(program.sql, dialect=program.dialect)
            block = take_apart(tree, [t for t in tables if t.ref in program.tables]).flat
        except (SqlglotError, RecursionError) as error:
            raise _untraceable("it is nested too deeply") from error
        if block is None:
            raise _untraceable("it is not one SELECT over tables")
        self._block = block
        self._select = block.select
        self._outputs = _outputs(block)
        self._check()
        self._aggregates = any(_aggregates(item) for item in self._outputs)
        self._keys = self._group_keys()

    def _check(self) -> None:
        parts = list(self._block.walk())
        if any(isinstance(part, exp.Window) for part in parts):
            raise _untraceable("it looks across rows (OVER)")
        if any(isinstance(part, exp.TableSample | exp.Pivot | exp.Qualify) for part in parts):
            raise _untraceable("it draws or turns rows")
        distinct = self._select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise _untraceable("it keeps one row of several (DISTINCT ON)")

    def _group_keys(self) -> list[exp.Expr] | None:
        """What the rows are grouped by; None where they are not grouped at all."""
        group = self._select.args.get("group")
        if group is None:
            having = self._select.args.get("having")
            return [] if self._aggregates or (having and _aggregates(having)) else None
        plain = all(name == "expressions" for name, value in group.args.items() if value)
        special = (exp.Rollup, exp.Cube, exp.GroupingSets)
        if not plain or any(isinstance(key, special) for key in group.expressions):
            raise _untraceable("its groups are of several kinds (ROLLUP, CUBE or ALL)")
        return [self._meant(key) for key in group.expressions]

    def _meant(self, key: exp.Expr) -> exp.Expr:
        """A position or a result column's name means what stands there."""
        if isinstance(key, exp.Literal) and key.name.isdigit():
            place = int(key.name)
            if 1 <= place <= len(self._outputs):
                return _unnamed(self._outputs[place - 1])
        if isinstance(key, exp.Column) and self._block.place(key) is None:
            return self._block.output_named(key) or key
        return key

    # ---- the statement ----------------------------------------------------------

    def statement(
        self, values: Sequence[Any], column: int | None, limit: int, run: Run
    ) -> tuple[str, bool]:
        """The SQL, and whether it must find a row."""
        if len(values) != len(self._outputs):
            raise _untraceable("its columns cannot be told from its SELECT")
        if self._keys is None:
            pairs = list(zip(map(_unnamed, self._outputs), values, strict=True))
        else:
            pairs = list(zip(self._keys, self._key_values(values, run), strict=True))
        conditions = [self._equation(key, value) for key, value in pairs if not _is_constant(key)]
        cell = self._of_cell(column, values)
        query = counting(self._block, *self._shown()).where(*conditions, *cell, copy=False)
        if order := self._order():
            query = query.order_by(*order, copy=False)
        query = query.limit(limit + 1, copy=False)
        return query.sql(self._dialect), bool(pairs) and not cell

    def _key_values(self, values: Sequence[Any], run: Run) -> list[Any]:
        """The values of the group's keys: of the row, else asked of the engine."""
        keys = self._keys or []
        texts = [_unnamed(item).sql(self._dialect) for item in self._outputs]
        places = [
            texts.index(sql) if (sql := key.sql(self._dialect)) in texts else -1 for key in keys
        ]
        if -1 not in places:
            return [values[place] for place in places]
        if self._select.args.get("distinct"):
            raise _untraceable("DISTINCT hides which group a row comes from")
        asked = self._select.copy()
        asked.set("expressions", [*asked.expressions, *(key.copy() for key in keys)])
        same = [cell_key(value) for value in values]
        width = len(values)
        found = {
            tuple(map(cell_key, row[width:])): row[width:]
            for row in run(asked.sql(self._dialect))[1].rows
            if [cell_key(value) for value in row[:width]] == same
        }
        if len(found) != 1:
            many = "several groups give" if found else "no group gives"
            raise UsageError(
                f"{many} this row, so its source rows cannot be told",
                f"ask for {', '.join(key.sql(self._dialect) for key in keys)} as a column, too",
            )
        return list(next(iter(found.values())))

    def _of_cell(self, column: int | None, values: Sequence[Any]) -> list[exp.Expr]:
        """Which of the group's rows a single aggregate was made from."""
        if column is None:
            return []
        item = _unnamed(self._outputs[column])
        inside = _aggregates(item)
        if len(inside) != 1:
            return []
        node: exp.Expr = inside[0]
        found: list[exp.Expr] = []
        if isinstance(node.parent, exp.Filter):
            found.append(node.parent.args["expression"].this.copy())
        argument = node.this
        if isinstance(argument, exp.Distinct) and len(argument.expressions) == 1:
            argument = argument.expressions[0]
        if not isinstance(argument, exp.Column) or is_star(argument):
            return found
        if isinstance(node, exp.Min | exp.Max) and item is node and values[column] is not None:
            return [*found, self._equation(argument, values[column])]
        return [*found, argument.copy().is_(exp.Null()).not_()]

    def _equation(self, key: exp.Expr, value: Any) -> exp.Expr:
        side = key.copy() if isinstance(key, exp.Column) else exp.paren(key.copy())
        if value is None:
            return side.is_(exp.Null())
        return exp.EQ(this=side, expression=_literal(value, self._dialect))

    def _shown(self) -> list[exp.Expr]:
        """All columns of one table; of several the keys and those that are used."""
        entries = self._block.entries
        used: dict[int, set[str]] = {id(entry): set() for entry in entries}
        for node in self._block.walk():
            place = self._block.place(node) if isinstance(node, exp.Column) else None
            if place is not None and id(place.entry) in used and not is_star(node):
                used[id(place.entry)].add(place.name)
        shown: list[exp.Expr] = []
        for entry in entries:
            table = entry.table
            wanted = used[id(entry)] | set(table.primary_key if table else ())
            for one in table.columns if table else ():
                if len(entries) == 1:
                    shown.append(_column(entry, one.name))
                elif one.name in wanted or not used[id(entry)]:
                    name = f"{entry.alias}.{one.name}"
                    shown.append(exp.alias_(_column(entry, one.name), name, quoted=True))
        return shown

    def _order(self) -> list[exp.Expr]:
        """The keys of the tables, so that the same rows are shown each time."""
        return [
            _column(entry, name)
            for entry in self._block.entries
            for name in (entry.table.primary_key if entry.table else ())
        ]


def _untraceable(why: str) -> UsageError:
    return UsageError(f"the rows behind this program cannot be shown: {why}", _INSTEAD)


def _outputs(block: Block) -> list[exp.Expr]:
    """The result columns, ``*`` as the columns it stands for."""
    found: list[exp.Expr] = []
    for item in block.select.expressions:
        if not is_star(item):
            found.append(item)
            continue
        star = item.this if isinstance(item, exp.Column) else item
        joined = any(entry.join is not None and not _plain(entry.join) for entry in block.entries)
        if joined or any(star.args.get(key) for key in ("except_", "replace", "rename")):
            raise _untraceable("its * does not stand for all columns")
        wanted = item.table.casefold() if isinstance(item, exp.Column) else ""
        for entry in block.entries:
            if entry.table is not None and wanted in ("", entry.alias.casefold()):
                found += [_column(entry, column.name) for column in entry.table.columns]
    return found


def _plain(join: exp.Join) -> bool:
    """Whether ``*`` shows all columns of both sides."""
    kept = join.kind.upper() in ("", "INNER", "OUTER", "CROSS", "STRAIGHT")
    return kept and not join.args.get("using") and not join.method


def _unnamed(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) and isinstance(item.this, exp.Expr) else item


def _aggregates(item: exp.Expr) -> list[exp.AggFunc]:
    """Aggregates in an expression, those of queries inside left out."""
    found: list[exp.AggFunc] = []
    stack = [item]
    while stack:
        place = stack.pop()
        if isinstance(place, exp.Query):
            continue
        if isinstance(place, exp.AggFunc):
            found.append(place)
            continue
        stack.extend(place.iter_expressions())
    return found


def _column(entry: Entry, name: str) -> exp.Column:
    return exp.column(name, table=exp.to_identifier(entry.alias, quoted=True), quoted=True)


def _is_constant(node: exp.Expr) -> bool:
    """Whether it has the same value in all rows, so that nothing is to be compared."""
    return node.find(exp.Column) is None


def _literal(value: Any, dialect: str) -> exp.Expr:
    """A value of a result as SQL.

    Raises:
        UsageError: it has no exact SQL that all engines read alike.
    """
    match value:
        case bool():
            return exp.Boolean(this=value)
        case int():
            return _number(str(value))
        case Decimal() if value.is_finite():
            return _number(format(value, "f"))
        case float() if math.isfinite(value):
            return _number(repr(value))
        case str() | UUID():
            return exp.Literal.string(str(value))
        case date() | time() if dialect == "mysql":  # its CAST drops fractions of a second
            text = value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
            return exp.Literal.string(text)
        case datetime():
            kind = "timestamptz" if value.tzinfo is not None else "timestamp"
            return exp.cast(exp.Literal.string(value.isoformat(" ")), kind)
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
        case time() if value.tzinfo is None:
            return exp.cast(exp.Literal.string(value.isoformat()), "time")
    raise UsageError(
        f"the rows cannot be looked up by a value of kind {type(value).__name__}", _INSTEAD
    )


def _number(text: str) -> exp.Expr:
    number = exp.Literal.number(text.lstrip("-"))
    return exp.Neg(this=number) if text.startswith("-") else number
