"""What else a column holds for a compared text: other spellings, and likely misspellings.

The values of the index name them, the engine counts them. Other letter case, accents and
outer blanks make another spelling; one edit in a word of at least five letters a likely
misspelling, if it is five times as rare as what it would be for: *Germny* in three rows
beside *Germany* in forty, but not *Ireland* beside *Iceland*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from dbrag.catalog.formats import same_value
from dbrag.errors import DbragError
from dbrag.execution import guard
from dbrag.execution.run import run
from dbrag.index.values import MAX_VALUE
from dbrag.reasoning.noise import MAX_ASKED, Look, Spelled, noise_warnings
from dbrag.retrieval.spelling import edits, swaps

if TYPE_CHECKING:
    from dbrag.index.store import Index
    from dbrag.index.values import ValueIndex
    from dbrag.reasoning.attempt import Attempt
    from dbrag.settings import Settings
    from dbrag.sources.base import Source
    from dbrag.types import AnswerWarning, Column, Table, TableRef

RARER = 5
"""A misspelling is at least so many times as rare as the right spelling."""
SHORTEST = 5
"""Letters of a word from which one edit may be a misspelling."""
COUNT_S = 2.0
"""Seconds that counting may take."""
_HITS = 200


def noise_of(
    attempt: Attempt | None,
    sources: Mapping[str, Source],
    index: Index,
    settings: Settings,
) -> tuple[AnswerWarning, ...]:
    """The warnings of noise for a program that was written, counted if it has run."""
    if attempt is None or attempt.program is None or not attempt.program.tables:
        return ()
    source = sources.get(attempt.program.tables[0].source)
    if source is None or attempt.execution is None:
        return noise_warnings(attempt.program, index.catalog)
    look = StoredSpellings(index.values, source, settings)
    return noise_warnings(attempt.program, index.catalog, look)


def looked_up_once(look: Look) -> Look:
    """The same look, which remembers what it found."""
    found: dict[tuple[TableRef, str, tuple[str, ...]], Spelled] = {}

    def remembered(table: Table, column: Column, texts: Sequence[str]) -> Spelled:
        key = (table.ref, column.name, tuple(texts))
        if key not in found:
            found[key] = look(table, column, texts)
        return found[key]

    return remembered


class StoredSpellings:
    """Looks up spellings in the values of an index, and counts their rows by the engine."""

    def __init__(self, values: ValueIndex, source: Source, settings: Settings) -> None:
        self._values_index = values
        self._source = source
        self._settings = settings

    def __call__(self, table: Table, column: Column, texts: Sequence[str]) -> Spelled:
        """What the column holds beside ``texts``.

        Raises:
            IndexUnusable: the index is damaged.
        """
        # Longer values are not indexed, and the index cannot look for words of any length.
        short = [text for text in texts if len(same_value(text)) <= MAX_VALUE]
        asked, compared = dict.fromkeys(short[:MAX_ASKED]), set(texts)
        same = {
            value
            for text in asked
            for value in self._values(table, column, text)
            if same_value(value) == same_value(text) and value not in compared
        }
        near = {
            value: text
            for text in reversed(asked)  # of two spellings of one, the first is told
            for value in self._near(table, column, same_value(text))
            if value not in same and value not in compared
        }
        if not same and not near:
            return Spelled({}, {})
        counted = self._counts(table, column, list(asked), [*sorted(same), *sorted(near)])
        if counted is None:
            return Spelled(dict.fromkeys(sorted(same)), {})
        of_word: dict[str, int] = {}
        for value, _, n in counted:
            of_word[same_value(value)] = of_word.get(same_value(value), 0) + n
        left = {value: n for value, equal, n in counted if not equal}
        return Spelled(
            {value: left[value] for value in sorted(same) if value in left},
            {
                value: (text, left[value])
                for value, text in sorted(near.items())
                if 0 < left.get(value, 0) * RARER <= of_word.get(same_value(text), 0)
            },
        )

    def _values(self, table: Table, column: Column, text: str) -> list[str]:
        hits = self._values_index.search(text, _HITS, [table.ref])
        return [hit.value for hit in hits if hit.column == column.name]

    def _near(self, table: Table, column: Column, word: str) -> list[str]:
        if len(word) < SHORTEST or not word.isalpha():
            return []
        hits = self._values_index.near(word, 1, swaps(word), (), _HITS)
        return [
            hit.value
            for hit in hits
            if (hit.table, hit.column) == (table.ref, column.name)
            and edits(same_value(hit.value), word, 1) == 1
        ]

    def _counts(
        self, table: Table, column: Column, asked: Sequence[str], others: Sequence[str]
    ) -> list[tuple[str, bool, int]] | None:
        """(value, whether the engine takes it for one that is asked for, rows).

        None where that cannot be counted.
        """
        dialect = self._source.dialect
        cell = exp.column(column.name, quoted=True)
        texts = [exp.Literal.string(value) for value in (*asked, *others)]
        equal = exp.case().when(cell.isin(*texts[: len(asked)]), "1").else_("0")
        query = (
            exp.select(cell, equal, exp.Count(this=exp.Star()))
            .from_(exp.table_(table.ref.name, db=table.ref.schema, quoted=True))
            .where(cell.isin(*texts))
            .group_by(cell, equal)
        )
        try:
            admitted = guard.admit(
                query.sql(dialect), dialect, [table], functions=self._source.functions()
            )
            limit_s = min(COUNT_S, self._settings.timeout_s)
            found = run(self._source, admitted.sql, timeout_s=limit_s, max_rows=1000, max_mb=16)
        except DbragError:
            return None  # too slow or not comparable: it is told without numbers
        return [(str(value), bool(equal), int(n)) for value, equal, n in found.rows]
