"""Cell values that a question mentions: full-text hits, checked word by word."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbrag.index.words import STOP_WORDS, WORD, plain_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dbrag.index.values import ValueHit
    from dbrag.types import TableRef

_QUOTES = frozenset("\"'“”„‘’«»`")
_MAX_WORDS = 1_000
_WEAK = 0.2
"""Worth of a mention in plain lower case ("female") against a marked one ("Kabul")."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A value whose words stand together in the question.

    ``start`` and ``end`` are word positions. ``strong``: quoted, capitalised within the
    sentence, or more than one telling word; others may be words like any.
    """

    table: TableRef
    column: str
    value: str
    start: int
    end: int
    strong: bool


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    marked: bool


def find_mentions(question: str, hits: Iterable[ValueHit]) -> list[Mention]:
    """The hits whose words occur in the question in a row, letter case and accents ignored.

    Of overlapping mentions the longer hides the shorter inside it ("New York City" hides
    "York"). Longest first, strong ones before others, then in the order of the hits.
    """
    words = _question_words(question)
    places: dict[str, list[int]] = {}
    for i, word in enumerate(words):
        places.setdefault(word.text, []).append(i)
    found: list[Mention] = []
    for hit in hits:
        value = plain_words(hit.value)
        if not value or all(word in STOP_WORDS for word in value):
            continue
        for start in places.get(value[0], ()):
            end = start + len(value)
            if [word.text for word in words[start:end]] == value:
                strong = _is_strong(value, words[start:end])
                found.append(Mention(hit.table, hit.column, hit.value, start, end, strong))
                break
    spans = {(m.start, m.end) for m in found}
    outer = [m for m in found if not any(_hides(span, (m.start, m.end)) for span in spans)]
    return sorted(outer, key=lambda m: (m.start - m.end, not m.strong))


def mention_scores(mentions: Sequence[Mention], n_tables: int) -> Mapping[TableRef, float]:
    """How telling the best mention of each table is, 0 to 1.

    ln((n + 1) / tables that hold the value) / ln(n + 1), a fifth of it for weak ones.
    Bare numbers say nothing about which table is meant and count 0.
    """
    holders: dict[tuple[int, int], set[TableRef]] = {}
    for mention in mentions:
        holders.setdefault((mention.start, mention.end), set()).add(mention.table)
    scores: dict[TableRef, float] = {}
    for mention in mentions:
        if mention.value.strip().isdigit():
            continue
        share = (n_tables + 1) / len(holders[mention.start, mention.end])
        score = math.log(share) / math.log(n_tables + 1) * (1.0 if mention.strong else _WEAK)
        scores[mention.table] = max(score, scores.get(mention.table, 0.0))
    return scores


def _question_words(question: str) -> list[_Word]:
    text = unicodedata.normalize("NFC", question)
    words: list[_Word] = []
    for match in WORD.finditer(text):
        capital = bool(words) and match[0][0].isupper()
        quoted = match.start() > 0 and text[match.start() - 1] in _QUOTES
        words.extend(_Word(piece, capital or quoted) for piece in plain_words(match[0]))
        if len(words) > _MAX_WORDS:
            break
    return words


def _is_strong(value: Sequence[str], words: Sequence[_Word]) -> bool:
    telling = sum(word not in STOP_WORDS for word in value)
    return telling > 1 or any(word.marked for word in words)


def _hides(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]
