"""Cell values that a question mentions: full-text hits, checked word by word."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Literal

from dbrag.index.words import STOP_WORDS, UNSPACED, WORD, plain_words, telling
from dbrag.retrieval.spelling import code_pieces, edits, inflected, inflections, typo_limit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from dbrag.index.values import ValueHit
    from dbrag.types import TableRef

How = Literal["exact", "inflected", "typo"]

QUOTED = re.compile(
    r"\"[^\"]{0,200}\"|“[^”]{0,200}”|„[^“”]{0,200}[“”]|«[^»]{0,200}»|‘[^’]{0,200}’"
    r"|`[^`]{0,200}`|(?<!\w)'[^']{0,200}'(?!\w)"
)
"""A quotation with its marks; an apostrophe within a word is none."""
_QUOTES = frozenset("\"'“”„‘’«»`")
_MAX_WORDS = 1_000
_MAX_JOINED = 4
_MAX_QUOTED = 100
_SHORTEST_JOINED = 5
_SHORTEST_CODE = 4
_RANK: Mapping[How, int] = {"exact": 0, "inflected": 1, "typo": 2}
_WORTH: Mapping[How, tuple[float, float]] = {
    "exact": (0.2, 1.0),
    "inflected": (0.1, 0.5),
    "typo": (0.2, 0.2),
}
"""Worth of a mention in plain lower case ("female") and of a marked one ("Kabul")."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A value whose words stand together in the question.

    ``start`` and ``end`` are word positions. ``strong``: quoted, capitalised within the
    sentence, or more than one telling word; others may be words like any. ``said`` is
    what stands in the question, and ``how`` it relates to the value: the same words,
    other forms of them or other spaces, or a likely typo by so many ``edits``.
    """

    table: TableRef
    column: str
    value: str
    start: int
    end: int
    strong: bool
    how: How = "exact"
    said: str = ""
    edits: int = 0

    @property
    def worth(self) -> float:
        """How far the mention is to be trusted, 0..1; a typo never more than a weak exact one."""
        return _WORTH[self.how][self.strong]


@dataclass(frozen=True, slots=True)
class Word:
    """A folded word of a question, and the characters of the run it stands in.

    ``marked``: quoted, or capitalised within the sentence. Words of scripts without
    spaces are pairs of characters within a run.
    """

    text: str
    marked: bool
    start: int
    end: int


@dataclass(frozen=True)
class _Asked:
    """The words of a question and where they stand; ``quoted``: (start, end) of quotations."""

    text: str
    words: list[Word]
    quoted: set[tuple[int, int]]
    places: dict[str, list[int]] = field(default_factory=dict)
    joined: dict[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, question: str) -> _Asked:
        text = unicodedata.normalize("NFC", question)
        words = question_words(text)
        asked = cls(text, words, _quoted_spans(text, words))
        for i, word in enumerate(words):
            asked.places.setdefault(word.text, []).append(i)
            run = ""
            for end in range(i, min(i + _MAX_JOINED, len(words))):
                if words[end].text in STOP_WORDS:
                    break
                run += words[end].text
                if _joinable(run):
                    asked.joined.setdefault(run, (i, end + 1))
        return asked

    def said(self, start: int, end: int) -> str:
        """What was typed from one word to another."""
        return self.text[self.words[start].start : self.words[end - 1].end]


def quotations(question: str) -> list[str]:
    """What stands in quotation marks, without them."""
    return [match[0][1:-1] for match in QUOTED.finditer(question)]


def search_text(question: str) -> str:
    """The question with other forms of its words behind it: inflected, joined, codes apart.

    Full text finds equal words only.
    """
    words = [word for word in plain_words(question)[:_MAX_WORDS] if word not in STOP_WORDS]
    forms = [form for word in words for form in sorted(inflections(word))]
    forms += [piece for word in words for piece in code_pieces(word)]
    forms += [a + b for a, b in pairwise(words) if _joinable(a + b)]
    asked = set(words)
    more = telling((form for form in forms if form not in asked), _MAX_WORDS)
    return f"{question} {' '.join(more)}" if forms else question


def find_mentions(
    question: str, hits: Iterable[ValueHit], unknown: Collection[str] = ()
) -> list[Mention]:
    """The hits whose words occur in the question in a row, letter case and accents ignored.

    Of overlapping mentions the longer hides the shorter inside it ("New York City" hides
    "York"); one by a typo hides only weak ones, and of several values near a mistyped
    word only the nearest are kept. Longest first, strong before weak, exact before
    inflected before mistyped, then in the order of the hits.

    Args:
        unknown: folded words that nothing else knows, so that they may be typos.
    """
    asked = _Asked.of(question)
    found: list[Mention] = []
    for hit in hits:
        value = plain_words(hit.value)
        place = _place(value, asked, unknown) if value else None
        if place is not None:
            start, end, how, distance = place
            words = asked.words[start:end]
            said = hit.value if UNSPACED.search(hit.value) else asked.said(start, end)
            strong = _is_strong(value, words)
            found.append(
                Mention(hit.table, hit.column, hit.value, start, end, strong, how, said, distance)
            )
    outer = _outermost(_nearest(found))
    return sorted(outer, key=lambda m: (m.start - m.end, not m.strong, _RANK[m.how], m.edits))


def mention_scores(mentions: Sequence[Mention], n_tables: int) -> Mapping[TableRef, float]:
    """How telling the best mention of each table is, 0 to 1.

    ln((n + 1) / tables that hold the value) / ln(n + 1), the inverse document frequency
    (Spärck Jones 1972) as a share of its largest value, times the mention's worth; the
    tables counted are those that hold it as exactly or more so.
    Bare numbers say nothing about which table is meant and count 0.
    """
    holders: dict[tuple[int, int, int], set[TableRef]] = {}
    for mention in mentions:
        for rank in range(_RANK[mention.how], len(_RANK)):
            holders.setdefault((mention.start, mention.end, rank), set()).add(mention.table)
    scores: dict[TableRef, float] = {}
    for mention in mentions:
        if mention.value.strip().isdigit():
            continue
        share = (n_tables + 1) / len(holders[mention.start, mention.end, _RANK[mention.how]])
        score = math.log(share) / math.log(n_tables + 1) * mention.worth
        scores[mention.table] = max(score, scores.get(mention.table, 0.0))
    return scores


def question_words(question: str) -> list[Word]:
    """The words of a question in order, the first thousand or so."""
    text = unicodedata.normalize("NFC", question)
    words: list[Word] = []
    for match in WORD.finditer(text):
        capital = bool(words) and match[0][0].isupper()
        quoted = match.start() > 0 and text[match.start() - 1] in _QUOTES
        words.extend(
            Word(piece, capital or quoted, match.start(), match.end())
            for piece in plain_words(match[0])
        )
        if len(words) > _MAX_WORDS:
            break
    return words


def _quoted_spans(text: str, words: Sequence[Word]) -> set[tuple[int, int]]:
    spans = set()
    for match in islice(QUOTED.finditer(text), _MAX_QUOTED):
        low, high = match.span()
        inside = [i for i, word in enumerate(words) if low < word.start and word.end < high]
        if inside:
            spans.add((inside[0], inside[-1] + 1))
    return spans


def _place(
    value: Sequence[str], asked: _Asked, unknown: Collection[str]
) -> tuple[int, int, How, int] | None:
    """Where a value stands in the question, how, and by how many edits: the best way first.

    A value of stop words only ("A", "The Who") has to stand in quotation marks.
    """
    if all(word in STOP_WORDS for word in value):
        spans = sorted(asked.quoted)
        exact = (s for s in spans if [w.text for w in asked.words[s[0] : s[1]]] == value)
        return next(((start, end, "exact", 0) for start, end in exact), None)
    for start in asked.places.get(value[0], ()):
        end = start + len(value)
        if [word.text for word in asked.words[start:end]] == value:
            return start, end, "exact", 0
    joined = asked.joined.get("".join(value))
    if joined is not None:
        return *joined, "inflected", 0
    for start in _starts(value, asked):
        if all(_same(a, asked.words[start + i].text) for i, a in enumerate(value)):
            return start, start + len(value), "inflected", 0
    if not unknown:
        return None
    best: tuple[int, int, How, int] | None = None
    for start in _starts(value, asked, unknown):
        far = [_far(a, asked.words[start + i].text, unknown) for i, a in enumerate(value)]
        if None not in far:
            total = sum(distance or 0 for distance in far)
            if total and (best is None or total < best[3]):
                best = start, start + len(value), "typo", total
    return best


def _starts(value: Sequence[str], asked: _Asked, unknown: Collection[str] = ()) -> Iterator[int]:
    """Positions where the value's first word may stand, by any of its words' spellings."""
    last = len(asked.words) - len(value)
    starts: dict[int, None] = {}
    for text in (value[0], *sorted(inflections(value[0]))):
        starts |= dict.fromkeys(asked.places.get(text, ()))
    for text in unknown:
        for place in asked.places.get(text, ()):
            starts |= dict.fromkeys(place - i for i in range(len(value)))
    return (start for start in sorted(starts) if 0 <= start <= last)


def _same(value: str, said: str) -> bool:
    return value == said or inflected(value, said)


def _far(value: str, said: str, unknown: Collection[str]) -> int | None:
    """Edits between two words: 0 for the same, None for others."""
    if _same(value, said):
        return 0
    if said not in unknown or any(c.isdigit() for c in value):
        return None
    limit = min(typo_limit(said), typo_limit(value))
    distance = edits(said, value, limit)
    return distance if distance <= limit else None


def _nearest(found: Sequence[Mention]) -> list[Mention]:
    """Without typos that a nearer or more exact spelling of the same words makes unlikely."""
    least: dict[tuple[int, int], int] = {}
    for mention in found:
        span = mention.start, mention.end
        least[span] = min(least.get(span, mention.edits), mention.edits)
    return [m for m in found if m.edits == least[m.start, m.end]]


def _outermost(found: Sequence[Mention]) -> list[Mention]:
    sure = {(m.start, m.end) for m in found if m.how != "typo"}
    guessed = {(m.start, m.end) for m in found if m.how == "typo"}
    return [
        m
        for m in found
        if not any(_hides(span, (m.start, m.end)) for span in sure)
        and (
            (m.strong and m.how != "typo")
            or not any(_hides(span, (m.start, m.end)) for span in guessed)
        )
    ]


def _joinable(run: str) -> bool:
    if run.isdigit():
        return False
    return len(run) >= (_SHORTEST_CODE if any(c.isdigit() for c in run) else _SHORTEST_JOINED)


def _is_strong(value: Sequence[str], words: Sequence[Word]) -> bool:
    count = sum(word not in STOP_WORDS for word in value)
    return count > 1 or any(word.marked for word in words)


def _hides(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]
