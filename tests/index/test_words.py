from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.index.words import fold, plain_words, split_identifier, stems, telling


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CustomerID", "customer id"),
        ("customer_id2", "customer id 2"),
        ("HTTPServer", "http server"),
        ("order lines", "order lines"),
        ("Dashboard-data", "dashboard data"),
        ("1stPlace", "1 st place"),
        ("名字", "名字"),
        ("ÉtéDate", "été date"),
        ("___", ""),
    ],
)
def test_split_identifier(name: str, words: str) -> None:
    assert split_identifier(name) == words


def test_fold_and_words() -> None:
    assert fold("Café ÉCOLE Straße") == "cafe ecole strasse"
    assert plain_words("What's in São-Paulo?") == ["what", "s", "in", "sao", "paulo"]
    assert plain_words("东京都 Tokyo京") == ["东京", "京都", "tokyo", "京"]


def test_stems_split_names() -> None:
    assert stems("CustomerOrders") == stems("orders of customer")[::-1][:1] + stems("order")


def test_telling() -> None:
    assert telling(["How", "many", "singers", "are", "in", "the", "Band", "band"], 9) == [
        "singers",
        "Band",
        "band",
    ]
    assert telling(["how", "many"], 9) == ["how", "many"]
    assert telling(["a1", "b1", "c1"], 2) == ["a1", "b1"]


@given(st.text())
def test_any_text(text: str) -> None:
    words = plain_words(text)
    assert all(word and word == fold(word) for word in words)
    assert len(stems(text)) >= len(words) or not words
    split_identifier(text)
