"""How the texts of a column are written: dates, numbers, units, flags, several spellings.

Recognised from what a profile shows: its frequent values, samples and extremes, 17 at most.
Nothing is guessed from names. A form is told where at least ``FEWEST`` different values and
``MOST`` of all (words for "unknown" aside) have it. What sorts and compares as it should,
dates as ``YYYY-MM-DD`` among it, is no noise and is not told.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dbrag.catalog.written import date_forms, number_in
from dbrag.sources.statements import form_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dbrag.types import Column, ColumnProfile

FEWEST = 3
"""Different values of a form that are needed to speak of it."""
MOST = 0.8
"""Share of the different values that must have the form."""
MAX_VALUE_CHARS = 60
"""Longer texts are prose: they are not looked at."""
_SHOWN = 3

_NO_VALUE = frozenset({"n/a", "#n/a", "null", "(null)", "-", "--", "\u2014", ""})
"""Words that stand for an unknown value in any column, letter case ignored."""
_NO_NUMBER = _NO_VALUE | frozenset(
    {"na", "n.a.", "none", "nil", "nan", "unknown", "missing", "tbd", "?", "not available"}
)
"""Words that do so among dates and numbers, where they can mean nothing else."""
_YES = frozenset({"yes", "y", "true", "t", "1"})
_NO = frozenset({"no", "n", "false", "f", "0"})
_CASELESS_TYPES = ("enum", "set", "citext")
_SORTED = ("YYYY-MM-DD", "YYYY/MM/DD", "YYYY.MM.DD")


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """What is particular about the texts of a column; empty where there is nothing to tell.

    Attributes:
        dates: forms of dates, the commonest first, where text does not sort by date.
        numbers: examples of numbers that are not written plainly.
        units: different units behind them, letter case and plurals aside.
        prefix: whether the digits at the start of such a text are the number: not where
            it has separators, or a sign before it.
        unsorted: whether the numbers, plain ones too, sort otherwise as text.
        unknown: words for "unknown", as typed.
        flags: spellings of yes and no, where one of them has several.
        spellings: the ways in which one value is written, for each such value.
        blanks: whether blanks stand around some values but not around all.
    """

    dates: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    prefix: bool = True
    unsorted: bool = False
    unknown: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    spellings: tuple[tuple[str, ...], ...] = ()
    blanks: bool = False

    def in_words(self) -> str:
        """A phrase for people and models, values between quotes; "" for plain columns."""
        said = []
        if self.dates:
            said.append(f"dates as {_listed(self.dates)}")
        if self.numbers:
            said.append(f"numbers like {_quoted(self.numbers)}")
        if self.unknown:
            said.append(f"{_quoted(self.unknown)} for unknown")
        if self.flags:
            said.append(f"yes and no as {_quoted(self.flags, 6)}")
        if self.spellings:
            said.append(f"one value as {_quoted(self.spellings[0])}")
        elif self.blanks:
            said.append("blanks around some values")
        return "; ".join(said)


_PLAIN = ColumnFormat()


@lru_cache(maxsize=2048)
def column_format(column: Column, profile: ColumnProfile) -> ColumnFormat:
    """How the texts of a column are written, by its profile.

    Of columns that are not declared as text only those values count that no number or date
    of an engine looks like: SQLite keeps such texts.
    """
    values = [v for v in visible(profile) if len(v) <= MAX_VALUE_CHARS]
    if not values or len(values) < len(visible(profile)):
        return _PLAIN
    kind = column.type.casefold()
    is_text = form_of(column.type) in ("text", "short text") and not kind.startswith(
        _CASELESS_TYPES
    )
    dates = _dates(values)
    if dates is not None:
        return dates
    numbers = _numbers(values, is_text)
    if numbers is not None:
        return numbers
    return _texts(values) if is_text or not kind else _PLAIN


def visible(profile: ColumnProfile) -> Mapping[str, int | None]:
    """The values that a profile shows, with how many of the rows read hold each.

    None where that was not counted. Values that were cut are left out.
    """
    found: dict[str, int | None] = dict(profile.frequent)
    for value in (profile.minimum, profile.maximum, *profile.samples):
        if value is not None:
            found.setdefault(value, None)
    return {value: count for value, count in found.items() if not value.endswith("…")}


def same_value(text: str) -> str:
    """What spellings of one value have in common: no letter case, accents, outer blanks."""
    # Decomposing first shows the case of letters such as 𝓐 (as index.words.fold).
    folded = unicodedata.normalize("NFKD", text).casefold()
    decomposed = unicodedata.normalize("NFKD", folded)
    plain = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(plain.split())


def _dates(values: Sequence[str]) -> ColumnFormat | None:
    """The format of dates, plain where they sort as text; None for other values."""
    unknown, known = _apart(values, _NO_NUMBER)
    forms = date_forms(known)
    n_dates = sum(n for _, n in forms)
    if n_dates < FEWEST or n_dates < MOST * len(known):
        return None
    names = tuple(name for name, _ in forms)
    if len(names) == 1 and names[0] in _SORTED:
        return ColumnFormat(unknown=unknown)
    return ColumnFormat(dates=names, unknown=unknown, blanks=_has_blanks(known))


def _numbers(values: Sequence[str], is_text: bool) -> ColumnFormat | None:
    """The format of numbers; None for other values, and for plain ones with zeros before."""
    unknown, known = _apart(values, _NO_NUMBER)
    found = [(text, number) for text in known if (number := number_in(text)) is not None]
    if len(found) < FEWEST or len(found) < MOST * len(known):
        return None
    marked = [(text, number) for text, number in found if number.marked]
    if not marked and any(number.coded for _, number in found):
        return ColumnFormat()
    by_number = [text for text, _ in sorted(found, key=lambda one: one[1].value)]
    shapes: dict[str, str] = {}
    for text, number in marked:
        shapes.setdefault(number.shape, text)
    return ColumnFormat(
        numbers=tuple(shapes.values()),
        units=tuple(dict.fromkeys(_unit(number.unit) for _, number in found if number.unit)),
        prefix=all(number.prefix for _, number in found),
        unsorted=(is_text or bool(marked)) and by_number != sorted(by_number),
        unknown=unknown if is_text or marked else (),
        blanks=_has_blanks(known),
    )


def _unit(typed: str) -> str:
    folded = typed.casefold()
    return folded[:-1] if len(folded) > 2 and folded.endswith("s") else folded


def _texts(values: Sequence[str]) -> ColumnFormat:
    unknown, known = _apart(values, _NO_VALUE)
    flags = {value.strip().casefold() for value in known}
    if len(flags) >= FEWEST and flags <= _YES | _NO:
        return ColumnFormat(flags=tuple(known), unknown=unknown)
    groups: dict[str, list[str]] = {}
    for value in known:
        if any(c.isalpha() for c in value):
            groups.setdefault(same_value(value), []).append(value)
    spellings = tuple(tuple(group) for group in groups.values() if len(group) > 1)
    return ColumnFormat(unknown=unknown, spellings=spellings, blanks=_has_blanks(known))


def _apart(values: Sequence[str], words: frozenset[str]) -> tuple[tuple[str, ...], list[str]]:
    """Words for "unknown", and the other values; a column of such words only has none."""
    unknown = tuple(value for value in values if value.strip().casefold() in words)
    known = [value for value in values if value not in unknown]
    return (unknown, known) if known else ((), list(values))


def _has_blanks(values: Iterable[str]) -> bool:
    return len({value != value.strip() for value in values}) == 2


def _listed(texts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(texts[:-1]), texts[-1]) if part)


def _quoted(texts: Sequence[str], n: int = _SHOWN) -> str:
    return ", ".join(f"'{text}'" for text in texts[:n]) + (", …" if len(texts) > n else "")
