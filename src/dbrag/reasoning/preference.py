"""The tables that the user prefers (``preferred`` of ``[notes]``) before their copies.

A copy is a table of the same source that shares half of its column names or more with a
preferred one: a backup, last year's, a staging table. By the signs of ``relevance`` the two
hardly differ. So the preferred one takes the better of both chances, and the copy a tenth
of the worse, unless the question says a word of its name that the preferred one's names
lack ("orders in the backup").
"""

from __future__ import annotations

from collections.abc import Sequence

from dbrag.catalog.notes import spoken_names
from dbrag.index.words import plain_words, split_identifier, stemmed
from dbrag.retrieval.coverage import question_words
from dbrag.types import Table

ALIKE = 0.5
"""Share of common column names among all of two tables (Jaccard) from which one is a copy."""
BEHIND = 0.1
"""What is left of a copy's chance: below every threshold of ``select``."""


def before_copies(question: str, chances: Sequence[float], tables: Sequence[Table]) -> list[float]:
    """The chances of the tables of one source, copies of preferred ones behind these.

    Args:
        chances: p(needed) of each of ``tables``.
    """
    found = list(chances)
    if not any(table.preferred for table in tables):
        return found
    said = set(question_words(question))
    for i, first in enumerate(tables):
        for j, other in enumerate(tables):
            if (
                first.preferred
                and not other.preferred
                and alike(first, other)
                and not (_words(other) - _words(first)) & said
            ):
                found[i], found[j] = max(found[i], found[j]), BEHIND * min(found[i], found[j])
    return found


def alike(a: Table, b: Table) -> bool:
    """Whether two tables have at least half of their column names in common."""
    one, other = ({column.name.casefold() for column in table.columns} for table in (a, b))
    return len(one & other) >= ALIKE * max(1, len(one | other))


def _words(table: Table) -> set[str]:
    names = " ".join(split_identifier(name) for name in spoken_names(table))
    return set(stemmed(plain_words(names)))
