"""How near a name that a model wrote is to the name of a column or table.

A model that does not look closely writes the name that it would have given: the whole
words of an abbreviation (``first_name`` for ``stu_fname``), the table's name before the
column's (``team_name`` for ``team.name``) or left out, a word of a longer name
(``Member`` for ``Member_of_club``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from dbrag.catalog.notes import spoken_names
from dbrag.execution.schema import plain, spelling
from dbrag.index.words import STOP_WORDS, plain_words, split_identifier, stemmed
from dbrag.types import Column, Table

NEAR = 0.84
"""Nearness from which an unknown name is taken for a misspelt one."""
_CALLED, _PREFIXED, _SHORTENED = 0.97, 0.95, 0.9
_NAME = re.compile(r"[\w -]+")
_DIGITS = re.compile(r"\d+")
_VOWELS = re.compile("[aeiouy]")
_SAME_WORD = 0.6
"""Likeness of two words below which neither is the other misspelt."""
_GENERAL = frozenset(["data", "detail", "details", "info", "information", "list", "table"])
"""Words of tables' names that do not say what the rows are."""
_PREPOSITIONS = frozenset(["at", "by", "for", "from", "in", "of", "on", "per", "to", "with"])
"""What follows them only says which rows."""
_NUMBERS = ("no", "nr", "nbr")
_LEAST_LETTERS = 3
"""Of an abbreviated word."""


def nearness(name: str, column: Column, table: Table) -> float:
    """How near a written name is to a column's, 0..1; 1 where they are spelled alike."""
    meant = _meant(name, column, table)
    near = 0.0 if meant > _SHORTENED else spelling(name, column.name)
    return max(meant, near if meant or not _contradict(name, column.name) else 0.0)


def _meant(name: str, column: Column, table: Table) -> float:
    """The nearness of a name that is spelled, called, prefixed or shortened so, else 0.

    Nothing is compared letter by letter: it is asked of all columns of a source.
    """
    written, real, own = plain(name), plain(column.name), plain(table.ref.name)
    if written == real:
        return 1.0
    if is_called(column, name):
        return _CALLED
    if own + written == real or written == own + real:
        return _PREFIXED
    return _SHORTENED if shortened(name, column.name) else 0.0


def nearest(name: str, tables: Iterable[tuple[str, Table]]) -> tuple[str, str] | None:
    """The one (alias, column) whose name is near enough; None where none or several are.

    Args:
        tables: with their aliases.
    """
    scored = sorted(
        (
            (nearness(name, column, table), alias, column.name)
            for alias, table in tables
            for column in table.columns
        ),
        reverse=True,
    )
    if not scored or scored[0][0] < NEAR:
        return None
    if len(scored) > 1 and scored[1][0] == scored[0][0]:
        return None
    return scored[0][1], scored[0][2]


def column_in(table: Table, name: str) -> str | None:
    """A column's real name in a table that no statement has read yet: itself, or the one
    that is spelled, called or shortened so; a mere likeness is not enough."""
    real = table.column(name)
    if real is not None:
        return real.name
    bare = name.strip("_ ").lower()
    first, last = bare[:1], bare[-1:]
    scored = [
        (_meant(name, column, table), column.name)
        for column in table.columns
        # a closer look at what begins or ends alike only: the source may have 100,000 columns
        if column.synonyms or column.comment or _is_like(column.name, first, last)
    ]
    best = max(scored, default=(0.0, ""))
    if best[0] < _SHORTENED or sum(near == best[0] for near, _ in scored) > 1:
        return None
    return best[1]


def _is_like(name: str, first: str, last: str) -> bool:
    bare = name.strip("_ ").lower()
    return bare[:1] == first or bare[-1:] == last


def is_called(named: Table | Column, name: str) -> bool:
    """Whether the user or a short comment calls a table or column so, too."""
    if not named.synonyms and not named.comment:
        return False  # almost always
    return any(plain(name) == plain(other) for other in spoken_names(named)[1:])


def _contradict(name: str, real: str) -> bool:
    """Whether two names that look alike say different things: ``max_depth`` and ``min_depth``,
    ``sales_2019`` and ``sales_2020``."""
    words, parts = _words(name), _words(real)
    if _DIGITS.findall(name) != _DIGITS.findall(real):
        return True
    if len(words) != len(parts) or len(words) < 2:
        return False
    return any(spelling(word, part) < _SAME_WORD for word, part in zip(words, parts, strict=True))


def shortened(name: str, real: str) -> bool:
    """Whether ``real`` is ``name`` with words shortened: ``dept_no`` for ``department_number``,
    ``lname`` and ``stu_lname`` for ``last_name``."""
    words = _words(name)
    # before the real name is split, which takes longer than all the rest
    if not words or not (
        real.lstrip("_ ")[:1].lower() == words[0][0] or real.lower().endswith(words[-1])
    ):
        return False
    parts = _words(real)
    if words == parts:
        return False
    if len(words) > 1 and parts:
        initials = "".join(word[0] for word in words[:-1]) + words[-1]
        if len(words[-1]) >= _LEAST_LETTERS and initials in (parts[-1], "".join(parts)):
            return True
    if len(words) != len(parts) or not words:
        return False
    return all(map(_is_short_for, parts, words))


@lru_cache(maxsize=65536)
def _words(name: str) -> tuple[str, ...]:
    return tuple(split_identifier(name).split())


def _is_short_for(part: str, word: str) -> bool:
    """Whether a part is the word itself or an abbreviation: some of its letters in order."""
    if part == word or (word == "number" and part in _NUMBERS):
        return True
    few = 2 if word.startswith(part) else _LEAST_LETTERS
    if not few <= len(part) < len(word) or part[0] != word[0]:
        return False
    # "age" of "average", "city" of "capacity" and "count" of "contract" are words of their own
    if part.endswith("e") or (not word.startswith(part) and len(_VOWELS.findall(part)) > 1):
        return False
    letters = iter(word)
    return all(letter in letters for letter in part)


def table_of_words(name: str, tables: Sequence[Table]) -> Table | None:
    """The one table whose name has all words of the written one: ``ClubMembers`` is
    ``Member_of_club``. A path or a call is none's."""
    wanted = _stems(name) if _NAME.fullmatch(name) else set()
    found = [table for table in tables if wanted and wanted <= _stems(table.ref.name)]
    return found[0] if len(found) == 1 else None


def is_of_kind(name: str, table: Table) -> bool:
    """Whether a written name says what a table's rows are: ``members`` those of
    ``Member_of_club`` and ``items`` those of ``order_items``, which ``orders`` are not."""
    words = plain_words(split_identifier(table.ref.name))
    end = next((i for i, word in enumerate(words) if i and word in _PREPOSITIONS), len(words))
    kind = [word for word in words[:end] if word not in _GENERAL]
    return not kind or stemmed(kind[-1:])[0] in _stems(name)


def _stems(name: str) -> set[str]:
    words = plain_words(split_identifier(name))
    return set(stemmed([word for word in words if word not in STOP_WORDS]))
