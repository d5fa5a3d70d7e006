"""Spellings of a word that mean the same: inflected, mistyped, written together or apart."""

from __future__ import annotations

import re
from functools import lru_cache

_IRREGULAR = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "foot": "feet",
    "mouse": "mice",
    "wife": "wives",
    "knife": "knives",
    "life": "lives",
    "leaf": "leaves",
    "wolf": "wolves",
}
_REGULAR = {plural: singular for singular, plural in _IRREGULAR.items()}
_HISSING = ("s", "x", "z", "ch", "sh")
_LETTERS = re.compile(r"[^\W\d_]+")
_DOUBLED = re.compile(r"([b-df-hj-np-tv-z])\1$")
_CODE = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_SHORTEST_INFLECTED = 3
_LONGEST_INFLECTED = 40
_SHORTEST_TYPO = 4
_TWO_TYPOS = 8
_LONGEST_TYPO = 30
"""Lance refuses much longer words: their automaton would be too large."""


@lru_cache(maxsize=4096)
def inflections(word: str) -> frozenset[str]:
    """Regular English inflections of a folded word: number, past tense, -ing; not the word itself.

    A rule rather than equal stems: Snowball gives "university" and "universe" one stem.
    """
    if not _SHORTEST_INFLECTED <= len(word) <= _LONGEST_INFLECTED:
        return frozenset()
    if not word.isascii() or not word.isalpha():
        return frozenset()
    forms = {_plural(word), *_singulars(word), *_bases(word)}
    forms |= {word + "d"} if word.endswith("e") else {word + "ed"}
    return frozenset(form for form in forms if len(form) >= _SHORTEST_INFLECTED) - {word}


def inflected(a: str, b: str) -> bool:
    """Whether one of two different folded words is an inflection of the other."""
    return b in inflections(a) or a in inflections(b)


def typo_limit(word: str) -> int:
    """Edits by which a mistyped word may differ: 1 from 4 letters on, 2 from 8 to 30."""
    if not _SHORTEST_TYPO <= len(word) <= _LONGEST_TYPO or not _LETTERS.fullmatch(word):
        return 0
    return 1 if len(word) < _TWO_TYPOS else 2


def edits(a: str, b: str, limit: int) -> int:
    """Damerau-Levenshtein distance (optimal string alignment), or ``limit + 1`` if it is larger.

    Letters inserted, deleted, replaced, or two neighbours swapped; Damerau 1964.
    """
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            least = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        if min(row) > limit and min(last) > limit:
            return limit + 1
        before, last = last, row
    return min(last[-1], limit + 1)


def swaps(word: str) -> list[str]:
    """The word with two neighbours swapped, in all ways: one edit here, two to a search index."""
    swapped = (word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1))
    return [other for other in dict.fromkeys(swapped) if other != word]


def splits(word: str) -> list[str]:
    """The pieces of a word cut in two, in all ways, none a single letter."""
    cuts = range(2, len(word) - 1)
    return list(dict.fromkeys(piece for i in cuts for piece in (word[:i], word[i:])))


def code_pieces(word: str) -> list[str]:
    """``ab123`` → ``ab``, ``123``; nothing for a word of one kind of characters."""
    pieces = _CODE.split(word)
    return pieces if len(pieces) > 1 else []


def _plural(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(_HISSING) else "s")


def _singulars(word: str) -> list[str]:
    if word in _REGULAR:
        return [_REGULAR[word]]
    if word.endswith("ies"):
        return [word[:-3] + "y", word[:-1]]
    if word.endswith("es") and word[:-2].endswith(_HISSING):
        return [word[:-2], word[:-1]]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return [word[:-1]]
    return []


def _bases(word: str) -> list[str]:
    if word.endswith("ied"):
        return [word[:-3] + "y"]
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= _SHORTEST_INFLECTED:
            return [base, base + "e", *([base[:-1]] if _DOUBLED.search(base) else [])]
    return []
