"""Words of a question that may be mistyped values, and what they may stand for.

A word is taken for a typo only where nothing knows it: no value or row has it, no name or
comment of a table, and it is no whole word of the encoder's vocabulary (the 30,000
commonest words and names of English, for MiniLM).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from dbrag.index.words import STOP_WORDS, plain_words
from dbrag.retrieval.mentions import find_mentions, question_words, quotations, search_text
from dbrag.retrieval.spelling import inflections, splits, swaps, typo_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.index.store import Index
    from dbrag.index.values import ValueHit
    from dbrag.models.base import Embedder
    from dbrag.retrieval.mentions import Mention, Word

_VALUE_HITS = 400
_NEAR_HITS = 200
_AROUND = 2
_QUOTED = 5
_ROWS_LOOKED_AT = 3
MAX_UNKNOWN = 4
"""Unknown words looked up, each 4 ms; more are no typos but another language."""


def mentions_in(index: Index, embedder: Embedder, question: str) -> list[Mention]:
    """The values that a question mentions, in other forms and with small typos too.

    Raises:
        IndexUnusable: the index is damaged.
    """
    hits = index.values.search(search_text(question), _VALUE_HITS)
    for quoted in quotations(question)[:_QUOTED]:
        if all(word in STOP_WORDS for word in plain_words(quoted)):  # searches leave those out
            hits += index.values.search(quoted, _VALUE_HITS)
    words = question_words(question)
    unknown = unknown_words(index, embedder, words, hits)
    for word in unknown:
        hits += _near(index, words, word)
    return find_mentions(question, hits, frozenset(unknown))


def unknown_words(
    index: Index, embedder: Embedder, words: Sequence[Word], hits: Sequence[ValueHit]
) -> list[str]:
    """Folded words of at least four letters that nothing knows, in order, at most four.

    Of more than four only marked ones are taken.
    """
    asked = {w.text: w.marked for w in words if typo_limit(w.text) and w.text not in STOP_WORDS}
    if not asked:
        return []
    in_values = set(chain.from_iterable(plain_words(hit.value) for hit in hits))
    in_vocabulary = getattr(embedder, "knows_word", None)
    unknown = []
    for word in asked:
        forms = (word, *sorted(inflections(word)))
        if any(form in in_values or index.tables.knows(form) for form in forms):
            continue
        if in_vocabulary is not None and any(map(in_vocabulary, forms)):
            continue
        unknown.append(word)
    if len(unknown) > MAX_UNKNOWN:
        unknown = [word for word in unknown if asked[word]]
    return [word for word in unknown[:MAX_UNKNOWN] if not _in_rows(index, word)]


def _in_rows(index: Index, word: str) -> bool:
    """Whether a row has the word; that it has its stem is not enough: "Kabull" has Kabul's."""
    forms = {word, *inflections(word)}
    return any(
        not forms.isdisjoint(plain_words(str(cell)))
        for hit in index.rows.search(word, _ROWS_LOOKED_AT)
        for cell in hit.row.values()
    )


def _near(index: Index, words: Sequence[Word], word: str) -> list[ValueHit]:
    at = next(i for i, other in enumerate(words) if other.text == word)
    around = [w.text for w in words[max(0, at - _AROUND) : at + _AROUND + 1] if w.text != word]
    others = [*swaps(word), *splits(word)]
    return index.values.near(word, typo_limit(word), others, around, _NEAR_HITS)
