from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import dbrag
from dbrag.index.build import build_index
from dbrag.index.store import open_index
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.retrieval.coarse import rank
from dbrag.retrieval.hints import did_you_mean, question_warnings
from dbrag.retrieval.typos import MAX_UNKNOWN, mentions_in
from dbrag.settings import Settings
from dbrag.sources import open_sources
from tests.index.conftest import write_db
from tests.retrieval.foreign_questions import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dbrag.index.store import Index

WORLD = """
CREATE TABLE country (code TEXT PRIMARY KEY, name TEXT, note TEXT);
CREATE TABLE city (
    id INTEGER PRIMARY KEY, name TEXT, country_code TEXT REFERENCES country (code), size INTEGER
);
CREATE TABLE pet (id INTEGER PRIMARY KEY, kind TEXT, tag TEXT);
INSERT INTO country VALUES
    ('AFG', 'Afghanistan', 'a land of mountains, its capitol stands in the east'),
    ('DEU', 'Germany', NULL), ('USA', 'United States', NULL);
INSERT INTO city VALUES
    (1, 'Kabul', 'AFG', 1780000), (2, 'New York', 'USA', 8008278), (3, '北京市', NULL, 1),
    (4, 'Robert''); DROP TABLE city;--', NULL, 1);
INSERT INTO pet VALUES (1, 'cat', 'AB-123'), (2, 'dog', 'X'), (3, 'fox', 'A');
"""


class English(HashEmbedder):
    """Goes by the name of the default encoder and knows some words."""

    name = "local:all-minilm-l6-v2"  # type: ignore[assignment]

    def knows_word(self, word: str) -> bool:
        return word in {"people", "live", "germane", "lives"}


EMBEDDER = English()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("typos")
    write_db(folder / "data" / "world.db", WORLD)
    sources, _ = open_sources([str(folder / "data")])
    build_index(folder / "index", sources, embedder=EMBEDDER, settings=Settings())
    with open_index(folder / "index") as opened:
        yield opened


def said(index: Index, question: str) -> list[tuple[str, str, str]]:
    return [(m.said, m.value, m.how) for m in mentions_in(index, EMBEDDER, question)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many people live in Kabul?", ("Kabul", "Kabul", "exact")),
        ("How many people live in Kabull?", ("Kabull", "Kabul", "typo")),  # the same stem
        ("How many people live in kaubl?", ("kaubl", "Kabul", "typo")),
        ("people of Hermany", ("Hermany", "Germany", "typo")),
        ("cities of Afganisten", ("Afganisten", "Afghanistan", "typo")),
        ("people in New Yorc", ("New Yorc", "New York", "typo")),
        ("people in newyork", ("newyork", "New York", "inflected")),
        ("Germany's cities", ("Germany", "Germany", "exact")),
        ("how many cats", ("cats", "cat", "inflected")),
        ("pet with tag ab123", ("ab123", "AB-123", "inflected")),
        ("pet with tag 'X'", ("X", "X", "exact")),
        ("pet with tag 'A'", ("A", "A", "exact")),
        ("北京市有多少人", ("北京市", "北京市", "exact")),
    ],
)
def test_mentions(index: Index, question: str, expected: tuple[str, str, str]) -> None:
    assert expected in said(index, question)


@pytest.mark.parametrize(
    "question",
    [
        "How germane is it?",  # the encoder's vocabulary has the word
        "Which capitol is it?",  # a row has it, no value is it
        "list the counry",  # near a name, not a value
        "a fog",  # too short
        "anything at all",
        "?",
    ],
)
def test_no_typos(index: Index, question: str) -> None:
    assert [m for m in said(index, question) if m[2] == "typo"] == []


def test_what_is_told(index: Index) -> None:
    candidates = rank(index, EMBEDDER, "people of Kabull and of Germny")
    match = next(m for c in candidates for m in c.matches if c.table.name == "city")
    assert (match.column, match.value, match.said, match.how) == ("name", "Kabul", "Kabull", "typo")
    assert {(w.code, w.message) for w in did_you_mean(candidates)} == {
        ("did_you_mean", "no value 'Kabull'; did you mean 'Kabul' (world.city.name)?"),
        ("did_you_mean", "no value 'Germny'; did you mean 'Germany' (world.country.name)?"),
    }


def test_the_language_is_told_and_values_are_found_all_the_same(index: Index) -> None:
    question = "Wie viele Leute wohnen in Kabul?"
    candidates = rank(index, EMBEDDER, question)
    assert candidates[0].table.name == "city"
    (warning,) = question_warnings(index, EMBEDDER, question, candidates)
    assert warning.code == "language"
    assert "seems to be in German" in warning.message
    assert "local:all-minilm-l6-v2 knows English only" in warning.message
    assert "paraphrase-multilingual-MiniLM-L12-v2" in warning.message
    assert 'encoder = "F"' in warning.message
    assert question_warnings(index, HashEmbedder(), question, candidates) == ()


def test_short_questions_of_all_languages(index: Index) -> None:
    questions = [question for several in QUESTIONS.values() for question in several]
    told = [
        warning.code
        for question in questions
        for warning in question_warnings(index, EMBEDDER, question, ())
    ]
    assert set(told) == {"language"}
    assert len(told) >= 0.95 * len(questions)


def test_only_a_few_words_are_looked_up(index: Index) -> None:
    words = " ".join(f"kabul{letter}" for letter in "bcdfghjklm")
    assert [m for m in said(index, words) if m[2] == "typo"] == []
    marked = said(index, "in " + words.title())
    assert len([m for m in marked if m[2] == "typo"]) == MAX_UNKNOWN


def test_a_hostile_or_huge_question(index: Index) -> None:
    for question in (
        "Robert'); DROP TABLE city;--",
        '"; ~2 AND (Kabull^9 OR *) \\',
        "\u202e\x00Kabull\ud800",
        "Kabull " * 2_800,
        "x" * 20_000,
        "kabull" * 3_000,
        "йцукенгшщз" * 3,
        "𐐨𐐩𐐪𐐫𐐬𐐭𐐮𐐯𐐰𐐱" * 3,
    ):
        assert isinstance(said(index, question), list)
    assert ("Kabull", "Kabul", "typo") in said(index, "Kabull " * 2_800)
    assert said(index, "show Robert'); DROP TABLE city;--")[0][1] == "Robert'); DROP TABLE city;--"


def test_the_same_again(index: Index) -> None:
    question = "people of Kabull, Germny and New Yorc"
    assert said(index, question) == said(index, question)


def test_the_reason_and_the_json_say_what_was_asked(index: Index) -> None:
    (first, *_) = rank(index, EMBEDDER, "size of the city Kabull", k=1)
    assert "city.name = 'Kabul' (asked: 'Kabull')" in first.reason
    assert first.to_dict()["matches"] == [
        {"column": "name", "value": "Kabul", "said": "Kabull", "how": "typo"}
    ]


def test_search_and_ask_tell_it_and_the_model_gets_the_stored_value(tmp_path: Path) -> None:
    path = write_db(tmp_path / "world.db", WORLD)
    model = FunctionModel(lambda prompt: "SELECT size FROM city WHERE name = 'Kabul'")
    with dbrag.connect(path, chat_model=model, embedder=EMBEDDER, votes=1, rerank="off") as db:
        found = db.search("What is the size of the city Kabull?")
        assert [w["code"] for w in found.to_dict()["warnings"]] == ["did_you_mean"]
        answer = db.ask("What is the size of the city Kabull?")
        german = db.ask("Wie viele Leute wohnen in Kabul?")
    assert answer.text == "1780000"
    assert "did_you_mean" in {w.code for w in answer.warnings}
    assert "city.name = 'Kabul'" in str(model.prompts[0])
    assert "language" in {w.code for w in german.warnings}
    assert german.status == "answered"
