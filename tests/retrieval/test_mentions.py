from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.index.values import ValueHit
from dbrag.retrieval.mentions import find_mentions, mention_scores
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
