"""Pairs of columns worth comparing: few for each column, found without comparing all.

Two look-ups find the columns that a column may refer to. By value: the hashes of all
texts, and of whole numbers too scattered to be counters, in one sorted array. By name:
words that are not generic, shared with the other column or its table; counters
(1, 2, 3, …) all lie in each other, so that only a name can tell which is meant. Where
there are few tables, columns that sound like keys are compared with all primary keys.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dbrag.catalog.names import KEY_WORDS, same, telling, words
from dbrag.catalog.sketches import has_telling_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.catalog.sketches import ColumnSketch, TableSketch

MOST_BY_VALUE = 8
MOST_BY_NAME = 16
"""Targets kept for one column and look-up, so that 2,000 tables with the same columns
are compared a few thousand times, not millions of times."""
TOO_COMMON = 200
"""A word or value of more possible targets than this says nothing."""

FEW_KEYS = 40
"""Up to so many primary keys of whole numbers are compared with every column like a key."""

_LOOKED_UP = 64


@dataclass(frozen=True, slots=True)
class ColumnAt:
    """A column with its table.

    ``is_primary`` when it is the primary key by itself; of a table that declares none, as
    files do, the first column without repetitions that sounds like a key, or else is first.
    """

    table: TableSketch
    column: ColumnSketch
    is_primary: bool

    @property
    def words(self) -> tuple[str, ...]:
        """Of the column's name."""
        return words(self.column.name)

    @property
    def table_words(self) -> tuple[str, ...]:
        """Of the table's name."""
        return words(self.table.ref.name)

    @property
    def is_part_of_key(self) -> bool:
        """Whether the declared primary key has it and others."""
        return len(self.table.primary_key) > 1 and self.column.name in self.table.primary_key

    @property
    def sounds_like_key(self) -> bool:
        """``customer_id``, ``code``, not ``price``."""
        return not KEY_WORDS.isdisjoint(self.words)

    @property
    def is_empty(self) -> bool:
        """Whether not one value is known."""
        return self.column.distinct == 0


class Candidates:
    """The columns of some tables that can be referred to, ready for look-ups."""

    def __init__(self, tables: Iterable[TableSketch]) -> None:
        self.columns = [at for table in tables for at in _columns(table)]
        self.keys = [at for at in self.columns if _may_be_key(at)]
        self._own: dict[object, list[int]] = defaultdict(list)
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for i, at in enumerate(self.keys):
            self._own[at.table.ref].append(i)
            for word in {*telling(at.words), *telling(at.table_words)}:
                self._by_word[word].append(i)
        self._by_start: dict[str, list[str]] = defaultdict(list)
        for word in sorted(self._by_word):
            self._by_start[word[:3]].append(word)
        primary = [i for i, at in enumerate(self.keys) if at.is_primary]
        self._primary = primary if len(primary) <= FEW_KEYS else []
        self._matches: dict[str, tuple[int, ...]] = {}

    def pairs(self) -> Iterator[tuple[ColumnAt, ColumnAt]]:
        """(column, what it may refer to), in a fixed order; at most 68 for each column."""
        for at in self.columns:
            if (at.column.kind == "other" and not at.is_empty) or _is_own_counter(at):
                continue
            found = {*self._by_values(at), *self._by_names(at), *self._in_own_table(at)}
            if at.column.kind == "integer" and (at.sounds_like_key or at.is_part_of_key):
                found.update(self._primary)
            for i in sorted(found):
                key = self.keys[i]
                if key.column is not at.column and _comparable(at, key):
                    yield at, key

    def _in_own_table(self, at: ColumnAt) -> Sequence[int]:
        own = self._own[at.table.ref] if at.sounds_like_key or at.column.kind == "integer" else []
        return [i for i in own if self.keys[i].is_primary][:1] or own[:4]

    def _by_names(self, at: ColumnAt) -> list[int]:
        """The keys whose names share the most, rare words first."""
        scores: dict[int, float] = defaultdict(float)
        for word in telling(at.words):
            matches = self._like(word)
            for i in matches:
                scores[i] += 1 / len(matches)
        best = sorted(scores, key=lambda i: (-scores[i], not self.keys[i].is_primary, i))
        return best[:MOST_BY_NAME]

    def _like(self, word: str) -> tuple[int, ...]:
        """Keys with this word, or one that abbreviates or continues it; none if too many."""
        if word not in self._matches:
            close = [other for other in self._by_start[word[:3]] if same(word, other)]
            found = sorted({i for other in close for i in self._by_word[other]})
            if len(found) > TOO_COMMON:
                found = self._by_word.get(word, [])
            self._matches[word] = tuple(found) if len(found) <= TOO_COMMON else ()
        return self._matches[word]

    def _by_values(self, at: ColumnAt) -> list[int]:
        """The keys that hold the most of some of its values."""
        import numpy as np

        hashes, owners = self._values
        if not has_telling_values(at.column) or not len(hashes):
            return []
        some = at.column.hashes[:_LOOKED_UP]
        starts = np.searchsorted(hashes, some, "left")
        ends = np.searchsorted(hashes, some, "right")
        hits = [
            owners[start:end]
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
            if 0 < end - start <= TOO_COMMON
        ]
        if not hits:
            return []
        found, counts = np.unique(np.concatenate(hits), return_counts=True)
        best = np.lexsort((found, -counts))[: MOST_BY_VALUE + 1]
        return [int(i) for i in found[best]]

    @cached_property
    def _values(self) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Hashes of all keys whose values tell something, sorted, and whose they are."""
        import numpy as np

        telling_keys = [i for i, at in enumerate(self.keys) if has_telling_values(at.column)]
        if not telling_keys:
            return np.empty(0, np.uint32), np.empty(0, np.int32)
        hashes = [self.keys[i].column.hashes for i in telling_keys]
        owners = np.repeat(np.array(telling_keys, np.int32), [len(h) for h in hashes])
        together = np.concatenate(hashes)
        order = np.argsort(together, kind="stable")
        return together[order], owners[order]


def _columns(table: TableSketch) -> list[ColumnAt]:
    primary = table.primary_key
    if not primary and not table.is_view:
        unique = [c.name for c in table.columns if c.unique and c.kind != "other"]
        primary = tuple(sorted(unique, key=lambda name: KEY_WORDS.isdisjoint(words(name)))[:1])
    return [ColumnAt(table, column, primary == (column.name,)) for column in table.columns]


def _may_be_key(at: ColumnAt) -> bool:
    if at.table.is_view:  # it repeats the keys of its tables
        return False
    if at.is_empty:
        return at.is_primary
    return at.column.kind != "other" and (at.column.unique or at.is_primary)


def _is_own_counter(at: ColumnAt) -> bool:
    """Whether it only numbers the rows of its table: nothing in name or values points away."""
    return not telling(at.words) and not has_telling_values(at.column)


def _comparable(at: ColumnAt, key: ColumnAt) -> bool:
    return at.column.kind == key.column.kind or at.is_empty or key.is_empty
