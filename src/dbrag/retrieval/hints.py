"""Warnings about a question itself: likely typos, and a language that the encoder does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.retrieval.language import english_only, language_name, language_of
from dbrag.types import AnswerWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.index.store import Index
    from dbrag.models.base import Embedder
    from dbrag.types import Candidate

MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
"""Knows some 50 languages; the Hugging Face hub has it with the files of an encoder folder."""

_MAX_TOLD = 3
_LOOKED_AT = 5
"""Candidates whose likely typos are told: those an answer is made from."""


def question_warnings(
    index: Index, embedder: Embedder, question: str, candidates: Sequence[Candidate]
) -> tuple[AnswerWarning, ...]:
    """What the asker should know of the question; nothing is refused for it.

    In another language every word looks mistyped: then only the language is told.
    """
    return language_warning(index, embedder, question, candidates) or did_you_mean(candidates)


def did_you_mean(candidates: Sequence[Candidate]) -> tuple[AnswerWarning, ...]:
    """A warning for each word that is likely a mistyped value of one of the best tables.

    At most three; of several values the one of the best table is told.
    """
    told: dict[str, str] = {}
    for candidate in candidates[:_LOOKED_AT]:
        for match in candidate.matches:
            if match.how == "typo" and match.said not in told:
                told[match.said] = (
                    f"no value {match.said!r}; did you mean {match.value!r} "
                    f"({candidate.table}.{match.column})?"
                )
    return tuple(AnswerWarning("did_you_mean", text) for text in list(told.values())[:_MAX_TOLD])


def language_warning(
    index: Index, embedder: Embedder, question: str, candidates: Sequence[Candidate]
) -> tuple[AnswerWarning, ...]:
    """The language of a question that an encoder for English only is asked, and a way out."""
    if not english_only(embedder.name):
        return ()
    # A weak match may be any word: German "die" where somebody is called so.
    values = [
        match.said
        for candidate in candidates[:_LOOKED_AT]
        for match in candidate.matches
        if match.how == "exact" and (match.said[:1].isupper() or " " in match.said)
    ]
    code = language_of(question, index.tables.knows, values)
    if code == "en":
        return ()
    return (
        AnswerWarning(
            "language",
            f"the question seems to be in {language_name(code)}, but the encoder "
            f"{embedder.name} knows English only: tables are found by names and values more "
            "than by meaning. Ask in English, or use a multilingual encoder: "
            f"hf download {MULTILINGUAL} onnx/model.onnx tokenizer.json --local-dir F, "
            'then encoder = "F" in dbrag.toml (or DBRAG_ENCODER=F) and dbrag index --force',
        ),
    )
