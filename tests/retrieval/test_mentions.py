from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.index.values import ValueHit
from dbrag.retrieval.mentions import (
    find_mentions,
    mention_scores,
    question_words,
    search_text,
)
from dbrag.types import TableRef

CITY = TableRef("world", None, "city")
PET = TableRef("pets", None, "pet")


def hits(*values: str, table: TableRef = CITY) -> list[ValueHit]:
    return [ValueHit(table, "name", value, 1.0) for value in values]


def found(question: str, *values: str) -> list[tuple[str, bool]]:
    return [(m.value, m.strong) for m in find_mentions(question, hits(*values))]


@pytest.mark.parametrize(
    ("question", "value", "strong"),
    [
        ("How many people live in Kabul?", "Kabul", True),
        ("how many people live in kabul", "Kabul", False),
        ("hotels in 'kabul'", "Kabul", True),
        ("flights of american airlines", "American Airlines", True),
        ("Kabul has how many people?", "Kabul", False),  # any sentence starts with a capital
        ("hotels in Zürich", "Zurich", True),
        ("人在北京市吗", "北京市", True),
    ],
)
def test_mentions(question: str, value: str, strong: bool) -> None:
    assert found(question, value) == [(value, strong)]


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("How many people live in Kabul?", "Kabul City"),
        ("the city of new and the york of old", "New York"),
        ("how many of them are there", "of"),
        ("category theory", "cat"),
        ("anything", "?!"),
        ("", "Kabul"),
    ],
)
def test_no_mentions(question: str, value: str) -> None:
    assert found(question, value) == []


def test_the_longest_wins() -> None:
    question = "people in New York City and in York"
    assert found(question, "York", "New York City", "York City", "New York") == [
        ("New York City", True)
    ]


def test_scores() -> None:
    mentions = find_mentions(
        "female dogs in Kabul in 2014",
        [*hits("Kabul", "2014"), *hits("female", "Kabul", table=PET), *hits("x")],
    )
    scores = mention_scores(mentions, 99)
    assert scores[CITY] == pytest.approx(scores[PET])
    assert 0 < scores[CITY] < 1
    weak = mention_scores(find_mentions("female dogs", hits("female", table=PET)), 99)
    assert weak[PET] == pytest.approx(0.2)
    assert mention_scores(find_mentions("in 2014", hits("2014")), 99) == {}


@given(st.text(max_size=80), st.lists(st.text(max_size=12), max_size=6))
def test_any_text(question: str, values: list[str]) -> None:
    for mention in find_mentions(question, hits(*values)):
        assert mention.value in values
        assert mention.start < mention.end


@given(st.lists(st.sampled_from(["Kabul", "New York", "red", "panda"]), min_size=1, max_size=4))
def test_a_quoted_value_is_always_found(values: list[str]) -> None:
    question = "show " + " and ".join(f"'{value}'" for value in values)
    assert {m.value for m in find_mentions(question, hits(*values))} == set(values)
    assert all(m.strong for m in find_mentions(question, hits(*values)))


@pytest.mark.parametrize(
    ("question", "value", "how", "said"),
    [
        ("how many cats are there", "Cat", "inflected", "cats"),
        ("orders by New-York clients", "New York", "exact", "New-York"),
        ("hotels in Newyork", "New York", "inflected", "Newyork"),
        ("hotels in New York", "NewYork", "inflected", "New York"),
        ("what is Germany's capital", "Germany", "exact", "Germany"),
        ("what is Germany’s capital", "Germany", "exact", "Germany"),
        ("the Childrens Hospital", "Children's Hospital", "inflected", "Childrens Hospital"),
        ("part AB-123", "AB-123", "exact", "AB-123"),
        ("part ab123", "AB-123", "inflected", "ab123"),
        ("part AB 123", "AB123", "inflected", "AB 123"),
        ("on 2024-01-05", "2024-01-05", "exact", "2024-01-05"),
        ('the status "N/A (closed)"', "N/A (closed)", "exact", "N/A (closed"),
        ("grade 'F' students", "F", "exact", "F"),
        ("grade 'A' students", "A", "exact", "A"),
        ("songs of “The Who”", "The Who", "exact", "The Who"),
        ("the women's team", "Women", "exact", "women"),
        ("tickets of a woman", "Women", "inflected", "woman"),
    ],
)
def test_how_a_value_is_said(question: str, value: str, how: str, said: str) -> None:
    (mention,) = find_mentions(question, hits(value))
    assert (mention.how, mention.said) == (how, said)


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("which is land of the free", "Island"),
        ("rows 1 2", "12"),
        ("what is a university", "Universe"),
        ("how many people live in Kabull", "Kabul"),  # no typos unless a word is unknown
        ("in 2014", "2015"),
        ("a grade of A", "A"),
        ("'a grade'", "A"),
    ],
)
def test_not_the_same(question: str, value: str) -> None:
    assert find_mentions(question, hits(value)) == []


def typos(question: str, unknown: str, *values: str) -> list[tuple[str, str, str]]:
    found = find_mentions(question, hits(*values), frozenset(unknown.split()))
    return [(m.said, m.value, m.how) for m in found]


def test_typos_of_unknown_words() -> None:
    assert typos("people in Kabull", "kabull", "Kabul", "Kabul City") == [
        ("Kabull", "Kabul", "typo")
    ]
    assert typos("people in New Yrok City", "yrok", "New York City", "New York") == [
        ("New Yrok City", "New York City", "typo")
    ]
    # Only the nearest; the word itself must be unknown, short words are never mistyped.
    assert typos("in Afganistan", "afganistan", "Afghanistan", "Afgoniston") == [
        ("Afganistan", "Afghanistan", "typo")
    ]
    assert typos("in Kabull", "other", "Kabul") == []
    assert typos("in Lim", "lim", "Lima") == []
    assert typos("part abcd1", "abcd1", "abcd2") == []


def test_a_typo_hides_no_sure_value() -> None:
    assert typos("the Zoo Kabull", "kabull", "Zoo", "Zoo Kabul") == [
        ("Zoo Kabull", "Zoo Kabul", "typo"),
        ("Zoo", "Zoo", "exact"),
    ]


def test_worth() -> None:
    def worth(question: str, value: str, unknown: str = "") -> float:
        (mention,) = find_mentions(question, hits(value), frozenset(unknown.split()))
        return mention.worth

    exact, inflected = worth("in Kabul", "Kabul"), worth("the Cats", "Cat")
    typo, weak = worth("in Kabull", "Kabul", "kabull"), worth("in kabul", "Kabul")
    assert 1 == exact > inflected > weak >= typo > 0


def test_an_exact_mention_is_worth_the_same_whatever_else_is_near() -> None:
    alone = find_mentions("the Cats", hits("Cats"))
    both = find_mentions("the Cats", [*hits("Cats"), *hits("Cat", table=PET)])
    scores = mention_scores(both, 9)
    assert scores[CITY] == mention_scores(alone, 9)[CITY]
    assert scores[CITY] > scores[PET] > 0


def test_a_huge_question_and_hostile_values() -> None:
    question = "Kabul'; DROP TABLE city; -- \u202e\x00 " + "word " * 4_000
    values = ["Kabul", "'; DROP TABLE city; --", "\u202e\x00", "%", "word " * 20, "x" * 100]
    assert "Kabul" in {m.value for m in find_mentions(question, hits(*values))}
    assert len(search_text(question)) < 3 * len(question)
    for marks in ("„" * 20_000, "'a' " * 5_000, '"' * 19_999, "«" * 20_000):
        assert find_mentions(marks, hits("Kabul", "a")) in ([], find_mentions("'a'", hits("a")))


@given(st.text(max_size=80), st.lists(st.text(max_size=12), max_size=6))
def test_any_typo(question: str, values: list[str]) -> None:
    unknown = frozenset(word.text for word in question_words(question))
    for mention in find_mentions(question, hits(*values), unknown):
        assert (mention.edits > 0) == (mention.how == "typo")
        assert mention.said
