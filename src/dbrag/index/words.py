"""Words of names, cells and questions, the same way everywhere in the index."""

from __future__ import annotations

import re
import threading
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_STOP_WORDS = """
a about above after again all also am an and any are as at be because been before being
below between both but by can could did do does doing down during each either else every few
for from further had has have having he her here hers him his how i if in into is it its
itself just me more most much my no nor not now of off on once one only or other our out over
own per please same she should show so some such than that the their them then there these
they this those through to too under until up us very was we were what when where which while
who whom whose why will with would you your list find give tell return number count many name
names different distinct total average
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing about which table is meant: English function words, and the
verbs and counts of questions. Only questions are stripped of them."""

UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+")
"""A run of scripts written without spaces: it is cut into pairs of characters."""
WORD = re.compile(r"[^\W_]+")
"""A run of letters and digits of any script."""
_CAMEL = re.compile(
    r"(?<=[a-zà-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)
_MAX_CHARS = 20_000
_local = threading.local()


def split_identifier(name: str) -> str:
    """``CustomerID``, ``customer_id2`` → ``customer id``, ``customer id 2``."""
    return " ".join(WORD.findall(_CAMEL.sub(" ", name))).lower()


def fold(text: str) -> str:
    """Without letter case and accents: ``Café`` and ``CAFE`` become ``cafe``."""
    # Decomposing first shows the case of letters such as 𝓐, folding may compose again.
    folded = unicodedata.normalize("NFKD", text).casefold()
    decomposed = unicodedata.normalize("NFKD", folded)
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def plain_words(text: str) -> list[str]:
    """The folded words of a text in order, not stemmed; its first 20,000 characters count."""
    words: list[str] = []
    for word in WORD.findall(fold(text[:_MAX_CHARS])):
        words.extend(_pieces(word))
    return words


def stems(text: str) -> list[str]:
    """The stemmed words of names or prose in order, identifiers split."""
    return stemmed(plain_words(_CAMEL.sub(" ", text)))


def stemmed(words: list[str]) -> list[str]:
    """English stems (Snowball); words of other languages mostly stay as they are."""
    return [str(stem) for stem in _stemmer().stemWords(words)]


def telling(words: Iterable[str], limit: int) -> list[str]:
    """The distinct words that are no stop words, in order, at most ``limit``.

    Where nothing but stop words is left, those are taken.
    """
    distinct = dict.fromkeys(words)
    kept = [word for word in distinct if word.casefold() not in STOP_WORDS]
    return (kept or list(distinct))[:limit]


def asked_stems(question: str, limit: int) -> list[str]:
    """Distinct stems of a question's telling words, and of neighbours written together.

    "high schooler" is found in ``Highschooler``, which nothing splits. The question's
    first ``limit`` distinct words count.
    """
    words = plain_words(question)
    joined = [a + b for a, b in pairwise(words[:limit])]
    return list(dict.fromkeys(stemmed([*telling(words, limit), *joined])))


def _pieces(word: str) -> Iterator[str]:
    """A word, with runs of unspaced scripts as overlapping pairs of characters."""
    at = 0
    for run in UNSPACED.finditer(word):
        if run.start() > at:
            yield word[at : run.start()]
        characters = run[0]
        if len(characters) == 1:
            yield characters
        for i in range(len(characters) - 1):
            yield characters[i : i + 2]
        at = run.end()
    if at < len(word):
        yield word[at:]


def _stemmer() -> Any:
    """A stemmer of this thread: PyStemmer's objects may not be shared."""
    found = getattr(_local, "stemmer", None)
    if found is None:
        import Stemmer

        found = _local.stemmer = Stemmer.Stemmer("english")
    return found
