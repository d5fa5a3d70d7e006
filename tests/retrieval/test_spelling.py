from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbrag.retrieval.spelling import (
    code_pieces,
    edits,
    inflected,
    inflections,
    splits,
    swaps,
    typo_limit,
)

WORDS = st.text(alphabet="abcde", max_size=9)


def test_other_forms_of_a_word() -> None:
    for a, b in [
        ("cat", "cats"),
        ("city", "cities"),
        ("box", "boxes"),
        ("branch", "branches"),
        ("house", "houses"),
        ("woman", "women"),
        ("cancel", "canceled"),
        ("complete", "completed"),
        ("ship", "shipped"),
        ("ship", "shipping"),
        ("study", "studied"),
        ("movie", "movies"),
    ]:
        assert inflected(a, b), (a, b)
        assert inflected(b, a), (a, b)


def test_words_that_only_look_alike() -> None:
    for a, b in [
        ("university", "universe"),
        ("us", "u"),
        ("bus", "bu"),
        ("class", "clas"),
        ("general", "generous"),
        ("a", "as"),
        ("2014", "2014s"),
        ("北京", "北京s"),
    ]:
        assert not inflected(a, b), (a, b)


def test_how_far_typos_go() -> None:
    assert [typo_limit(w) for w in ("red", "reds", "kabulls", "kabullss", "ab123", "")] == [
        0,
        1,
        1,
        2,
        0,
        0,
    ]
    assert edits("kabull", "kabul", 1) == 1
    assert edits("kaubl", "kabul", 1) == 1
    assert edits("afganisten", "afghanistan", 2) == 2
    assert edits("kabul", "lima", 2) == 3


def test_pieces() -> None:
    assert swaps("aab") == ["aba"]
    assert splits("newyork")[:4] == ["ne", "wyork", "new", "york"]
    assert splits("abc") == []
    assert code_pieces("ab123c") == ["ab", "123", "c"]
    assert code_pieces("abc") == []


def slow_edits(a: str, b: str) -> int:
    d = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(
                d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            )
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    return d[len(a), len(b)]


@given(WORDS, WORDS, st.integers(0, 3))
def test_edits_are_the_textbook_distance(a: str, b: str, limit: int) -> None:
    assert edits(a, b, limit) == min(slow_edits(a, b), limit + 1)


@given(st.text(max_size=20))
def test_inflections_of_anything(word: str) -> None:
    assert word not in inflections(word)
    assert all(inflected(form, word) for form in inflections(word))
