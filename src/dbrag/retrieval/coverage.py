"""How much of a question the schema of each source (or part of one) speaks of.

A table may resemble a question better than the right one does; a whole database that
has words for everything in the question seldom does so by chance. So sources are told
apart by the share of the question's telling words that their table and column names
know, each word weighted by how few sources know it:

    coverage(q, s) = Σ idf(w) [w ∈ words(s)] / Σ idf(w),  over w in words(q) known to any source
    idf(w) = ln((n_sources + 1) / (sources that know w + 0.5))

(the inverse document frequency of BM25's family, Robertson and Zaragoza 2009, with a
source as the document).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from dbrag.catalog.parts import parts_of
from dbrag.index.words import STOP_WORDS, plain_words, split_identifier, stemmed
from dbrag.types import Table

MAX_QUESTION_WORDS = 200


class SourceVocabulary:
    """The stemmed words of every source's table and column names.

    Attributes:
        parts: table → the source, or part of one (``catalog.parts``), that it belongs to.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self.parts = parts_of(tables)
        words: dict[str, set[str]] = {}
        seen: dict[str, tuple[str, ...]] = {}  # most column names recur: stem each once
        for table in tables:
            own = words.setdefault(self.parts[table.ref], set())
            for name in (table.ref.name, *(column.name for column in table.columns)):
                if name not in seen:
                    seen[name] = _name_words(name)
                own.update(seen[name])
        self._words = words
        known_by = Counter(word for own in words.values() for word in own)
        n = len(words)
        self._idf = {word: math.log((n + 1) / (count + 0.5)) for word, count in known_by.items()}

    def coverage(self, question: str) -> dict[str, float]:
        """Source or part → share of the question's weight that it knows, 0..1."""
        asked = {word: self._idf[word] for word in question_words(question) if word in self._idf}
        total = sum(asked.values())
        if total <= 0:
            return dict.fromkeys(self._words, 0.0)
        return {
            source: sum(weight for word, weight in asked.items() if word in own) / total
            for source, own in self._words.items()
        }


def _name_words(name: str) -> tuple[str, ...]:
    return tuple(stemmed(plain_words(split_identifier(name))))


def question_words(question: str) -> list[str]:
    """Telling words, and neighbours written together: "high schooler" is ``Highschooler``."""
    words = plain_words(question)[:MAX_QUESTION_WORDS]
    telling = [word for word in words if word not in STOP_WORDS and len(word) > 1]
    joined = [a + b for a, b in pairwise(words)]
    return list(dict.fromkeys(stemmed([*telling, *joined])))
