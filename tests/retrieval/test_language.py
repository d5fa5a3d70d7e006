from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.index.words import stems
from dbrag.retrieval.language import english_only, language_name, language_of
from tests.retrieval.foreign_questions import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

FOREIGN = [(code, question) for code, questions in QUESTIONS.items() for question in questions]


def names(*words: str) -> Callable[[str], bool]:
    known = {stem for word in words for stem in stems(word)}
    return lambda word: stems(word)[0] in known if stems(word) else False


def test_short_questions_in_many_languages() -> None:
    assert len(FOREIGN) >= 100
    found = [(code, language_of(question)) for code, question in FOREIGN]
    noticed = sum(seemed != "en" for _, seemed in found)
    right = sum(code == seemed for code, seemed in found)
    assert noticed >= 0.95 * len(found)
    assert right >= 0.95 * len(found)
    for code in QUESTIONS:
        assert any(seemed != "en" for of, seemed in found if of == code), code


def test_the_case_of_letters_does_not_matter() -> None:
    found = [language_of(question.lower()) for _, question in FOREIGN]
    assert sum(seemed != "en" for seemed in found) >= 0.95 * len(found)
    assert language_of("WIE VIELE KUNDEN GIBT ES IN BERLIN?") == "de"


@pytest.mark.parametrize(
    "question",
    [
        "How many customers are there?",
        "What is the average latitude and longitude in San Jose?",
        "Show the names of singers from Côte d'Ivoire",
        'orders of "Die fröhliche Wissenschaft" by Friedrich Nietzsche',
        "who wrote 'Cent ans de solitude'?",
        "customers",
        "Kabul",
        "AB-123",
        "2018-03-25 06:58:44",
        "select * from customers",
        "luisg@embraer.com.br",
        "?",
        "",
        "42",
        "populaton of Londn",
        "How many people live in 北京?",
        "LIST ALL FLIGHTS FROM LOS ANGELES",
    ],
)
def test_no_alarm(question: str) -> None:
    assert language_of(question, names("customer", "name", "order", "singer")) == "en"


def test_keywords_of_the_database_are_no_foreign_language() -> None:
    question = "gender per vehicle id"
    assert language_of(question, names("gender", "vehicle id")) == "en"


def test_values_say_nothing_of_the_language() -> None:
    question = "customers in São José dos Campos"
    assert language_of(question, names("customer"), ["São José dos Campos"]) == "en"
    assert language_of("quantos clientes em São José dos Campos?", values=["São José"]) == "pt"


def test_names_of_languages_and_encoders() -> None:
    assert {language_name(code) for code in QUESTIONS} >= {"German", "Hindi", "Vietnamese"}
    assert not any("(" in language_name(code) for code in QUESTIONS)
    assert language_name("qq") == "another language (qq)"
    assert english_only("local:all-minilm-l6-v2")
    for name in ("fastembed:BAAI/bge-small-en-v1.5", "ollama:nomic-embed-text", "onnx:e5-small-v2"):
        assert english_only(name), name
    for name in (
        "onnx:paraphrase-multilingual-MiniLM-L12-v2",
        "openai:text-embedding-3-small",
        "fastembed:intfloat/multilingual-e5-large",
        "onnx:model",
        "ollama:bge-m3",
        "ollama:snowflake-arctic-embed2",
        "ollama:nomic-embed-text-v2-moe",
        "test:hash-64",
    ):
        assert not english_only(name), name


@given(st.text(max_size=300))
def test_any_text(question: str) -> None:
    assert language_of(question)


def test_a_huge_question() -> None:
    assert language_of("wie viele " * 2_000) == "de"
    assert language_of("how many " * 2_000) == "en"
    assert language_of("Kabull " * 2_800) == "en"
