"""Warnings about a program that takes noisy texts as they stand.

What a column's texts are like is told by its profile (``catalog.formats``). A program is
warned of only where it compares, sorts, groups or adds up such a column plainly: a column
inside REPLACE or the like is left to the program, inside CASE all but its comparisons with
texts, and so is any doubt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.formats import ColumnFormat, column_format, same_value, visible
from dbrag.reasoning.repair import parse
from dbrag.reasoning.uses import Use, uses_of
from dbrag.types import AnswerWarning, Column, Program, Table

log = logging.getLogger(__name__)

MAX_SHOWN = 3
"""Values that a warning repeats."""
MAX_ASKED = 20
"""Compared texts of a column that are looked up; with more, none of them is widened."""
_CASELESS = frozenset({"mysql", "tsql"})
"""Engines whose = disregards letter case and blanks at the end, as they come."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """What a column holds beside the texts that it is compared with.

    ``same``: other spellings, with their rows if they were counted. ``near``: likely
    misspellings, with the text they are for and their rows.
    """

    same: Mapping[str, int | None]
    near: Mapping[str, tuple[str, int]]


Look = Callable[[Table, Column, Sequence[str]], Spelled]


def noise_warnings(
    program: Program, catalog: Catalog, look: Look | None = None
) -> tuple[AnswerWarning, ...]:
    """What a program leaves out or mistakes because of how texts are written.

    Codes: ``mixed_spellings``, ``dates_as_text``, ``numbers_as_text``; one of a column each.

    Args:
        look: finds the spellings of compared texts; without it those of the profile count.
    """
    tables = [catalog.by_ref[ref] for ref in program.tables if ref in catalog.by_ref]
    tree = parse(program.sql, program.dialect)
    if tree is None or (look is None and not any(_is_noisy(table) for table in tables)):
        return ()
    try:
        uses = uses_of(tree, tables, program.dialect)
    except (SqlglotError, RecursionError) as error:  # the engine has run it: nothing to refuse
        log.info("no look at noise: %s", error)
        return ()
    said = {literal.this for literal in tree.find_all(exp.Literal) if literal.is_string}
    found: list[AnswerWarning] = []
    for use in uses:
        found += [*_of_values(use, program.dialect, look)] or _of_groups(use, program.dialect)
        found += _of_dates(use)
        found += _of_numbers(use, said)
    return tuple(found)


def _is_noisy(table: Table) -> bool:
    plain = ColumnFormat()
    types = {column.name: column for column in table.columns}
    return any(
        column_format(types[profile.column], profile) != plain
        for profile in table.profile
        if profile.column in types
    )


def _of_values(use: Use, dialect: str, look: Look | None) -> Iterator[AnswerWarning]:
    """Of values that a comparison misses."""
    cell = use.cell
    texts = use.words
    if not texts:
        return
    asked = {same_value(text): text for text in reversed(texts)}
    seen = visible(cell.profile)
    shown = {value: n for value, n in seen.items() if same_value(value) in asked}
    spelled = look(cell.table, cell.column, texts) if look else Spelled(shown, {})
    same = {v: n for v, n in spelled.same.items() if not is_matched(v, use.equal, dialect)}
    parts = []
    if same:
        whole = look is not None or (
            cell.profile.distinct <= len(cell.profile.frequent) and not cell.table.sampled
        )
        literal = asked[same_value(next(iter(same)))]
        parts.append(f"{counted(same, whole)}, not equal to {literal!r}")
    if spelled.near:
        rows = {value: n for value, (_, n) in spelled.near.items()}
        literal = next(iter(spelled.near.values()))[0]
        parts.append(f"{counted(rows, True)}, likely misspelt for {literal!r}")
    if parts:
        also = " also" if look is not None or any(text in seen for text in texts) else ""
        yield AnswerWarning("mixed_spellings", f"{cell.name}{also} holds {'; '.join(parts)}")


def counted(values: Mapping[str, int | None], whole: bool) -> str:
    """Values with the number of their rows; without it where one is not known exactly."""
    counts = [n for n in values.values() if n is not None]
    if not whole or len(counts) < len(values):
        return _shown(values)
    return f"{_shown(values)} ({sum(counts):,} row{'s' if sum(counts) != 1 else ''})"


def _of_groups(use: Use, dialect: str) -> Iterator[AnswerWarning]:
    """Of values that are kept apart, or do not meet."""
    cell = use.cell
    if cell.format.dates or cell.format.numbers:
        return
    groups = [group for group in cell.format.spellings if not _one(group, dialect)]
    if use.grouped and groups:
        yield AnswerWarning(
            "mixed_spellings",
            f"{cell.name} holds one value as {_shown(groups[0])}: they are counted apart",
        )
    elif (use.joined or use.grouped) and cell.format.blanks and dialect not in _CASELESS:
        yield AnswerWarning(
            "mixed_spellings",
            f"{cell.name} has blanks around some of its values, which = does not overlook",
        )


def is_matched(value: str, literals: Iterable[str], dialect: str) -> bool:
    """Whether the engine takes a value for one of the literals."""
    if dialect not in _CASELESS:
        return value in literals
    return value.rstrip().casefold() in {text.rstrip().casefold() for text in literals}


def _one(group: Iterable[str], dialect: str) -> bool:
    """Whether the engine takes all spellings for one."""
    return dialect in _CASELESS and len({text.rstrip().casefold() for text in group}) == 1


def _of_dates(use: Use) -> Iterator[AnswerWarning]:
    dates = use.cell.format.dates
    if not dates or use.handled:
        return
    if use.ordered:
        how = "compared and sorted as text, not by date"
    elif use.dated:
        how = "the engine's functions do not read them as dates"
    elif len(dates) > 1 and (use.grouped or any(text[-1:].isdigit() for text in use.equal)):
        how = "compared as text, a day written in another way is another one"
    elif 0 < len(use.like) < len(dates):
        how = "compared with fewer patterns than ways to write them"
    else:
        return
    yield AnswerWarning(
        "dates_as_text", f"{use.cell.name} holds dates as text ({', '.join(dates)}): {how}"
    )


def _of_numbers(use: Use, said: set[str]) -> Iterator[AnswerWarning]:
    form = use.cell.format
    if use.handled or not (form.numbers or form.unsorted):
        return
    unknown = [word for word in form.unknown if word not in said]
    if use.ordered and form.unsorted:
        how = "compared and sorted as text, not as numbers"
    elif (use.added or use.cast) and not form.prefix:
        how = f"read up to the first sign that is no digit: {_shown(form.numbers)}"
    elif (use.added or use.cast) and len(form.units) > 1:
        how = f"read without their units: {_shown(form.numbers)}"
    elif use.added and unknown:
        how = f"added up with 0 for {_shown(unknown)}"
    else:
        return
    yield AnswerWarning("numbers_as_text", f"{use.cell.name} holds numbers as text: {how}")


def _shown(values: Iterable[str]) -> str:
    texts = [repr(value) for value in values]
    more = [f"{len(texts) - MAX_SHOWN} more"] if len(texts) > MAX_SHOWN else []
    texts = texts[:MAX_SHOWN] + more
    return " and ".join(part for part in (", ".join(texts[:-1]), texts[-1]) if part)
