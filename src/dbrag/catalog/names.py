"""Names: what a table may be called, and which words tell what a column refers to."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from dbrag.types import TableRef

_CAMEL = re.compile(
    r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\D)(?=\d)|(?<=\d)(?=\D)"
)
_IDS = re.compile(r"IDs(?![a-z])")  # else "I" and "Ds"
_WORD = re.compile(r"[^\W_]+")
_GLUED = re.compile(r"(.{3,})(ids?|num|nbr|code|key)")
_MAX_NAME = 200

_KEY_WORDS = "id ids no nr num nbr number code key pk fk guid uuid identifier ref"
_GENERIC = f"""{_KEY_WORDS} index idx seq
name title label value type of the a in by to from for and at on is"""
KEY_WORDS = frozenset(_KEY_WORDS.split())
"""Words that say: this column identifies something."""
GENERIC = frozenset(_GENERIC.split())
"""Words that do not tell tables apart."""

_MEASURES = """
age amount capacity cost count day duration grade height length level month percent price
quantity qty rank rating salary score size speed total weight width year"""
MEASURES = frozenset(_MEASURES.split())
"""Last words of columns that count or measure, and refer to nothing."""
_ROLES = """
parent manager mgr supervisor boss superior report previous prev next predecessor successor"""
ROLES = frozenset(_ROLES.split())
"""What a row of a table is to another row of the same table."""


def spellings(ref: TableRef) -> set[str]:
    """Everything that a table may be called: its name, with schema or source or both before it."""
    forms = {ref.name, f"{ref.source}.{ref.name}", str(ref)}
    if ref.schema is not None:
        forms.add(f"{ref.schema}.{ref.name}")
    return forms


def owners(wanted: Collection[str], refs: Iterable[TableRef]) -> dict[str, list[TableRef]]:
    """Which tables may be called so, in the order of ``refs``; letter case is of no account.

    Args:
        wanted: names, case folded; the others take no memory.
    """
    found: dict[str, list[TableRef]] = {}
    for ref in refs:
        for form in {text.casefold() for text in spellings(ref)}:
            if form in wanted:
                found.setdefault(form, []).append(ref)
    return found


@lru_cache(maxsize=100_000)
def words(name: str) -> tuple[str, ...]:
    """``CustomerIDs`` → ``customer``, ``id``: singular, lower case; ``stuid`` → ``stu``, ``id``."""
    found: list[str] = []
    plain = _IDS.sub("Ids", name[:_MAX_NAME])
    for word in _WORD.findall(_CAMEL.sub(" ", plain)):
        word = word.casefold()
        glued = _GLUED.fullmatch(word)
        if glued and word not in GENERIC:
            found += [singular(glued[1]), singular(glued[2])]
        else:
            found.append(singular(word))
    return tuple(found)


def singular(word: str) -> str:
    """English plurals without their ending; near enough for comparing, not for reading."""
    if word == "ids":
        return "id"
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


def telling(found: tuple[str, ...]) -> tuple[str, ...]:
    """The words that are not generic and no numbers."""
    return tuple(word for word in found if word not in GENERIC and not word.isdigit())


def same(a: str, b: str) -> bool:
    """Equal, or one abbreviates the other: its start of at least three letters."""
    if a == b:
        return True
    short, long = (a, b) if len(a) < len(b) else (b, a)
    return len(short) >= 3 and long.startswith(short)
