"""Whatever a model answers to the reranking prompt is read as far as it names tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.models.json_schema import problem_of
from dbrag.retrieval.replies import read_order, reply_schema


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ('{"tables": [3, 1, 2]}', (2, 0, 1)),
        ("[3, 1, 2]", (2, 0, 1)),
        ('{"tables": [3, 3, 1, 3]}', (2, 0)),  # repeated
        ('{"tables": [99, 0, -1, 2]}', (1,)),  # unknown
        ('{"tables": [1, 2, 3, 4, 5, 6, 7, 8, 9]}', (0, 1, 2, 3, 4)),  # more than there are
        ('{"tables": ["3", "[1]", 2.0]}', (2, 0, 1)),
        ('{"tables": [{"id": 3}, {"number": 1, "why": "x"}]}', (2, 0)),
        ('{"ids": [2, 1]}', (1, 0)),
        ("The best are [3, 1]; also [2, 4].", (2, 0)),
        ("First [3], then [1] and [4].", (2, 0, 3)),
        ("```json\n[4, 2]\n```", (3, 1)),
        ('{"tables": [2, 1', (1, 0)),  # no end, but not cut by a limit
        ('{"tables": [2, 1, ', (1, 0)),
        ('{"tables": [true, null, "x", 1.5, [2]]}', ()),
        ('{"tables": []}', ()),
        ("", ()),
        ("I cannot help with that.", ()),
        ("customers, orders", ()),
        ('{"tables": [1e400, NaN]}', ()),
        ("[" * 5000, ()),
    ],
)
def test_replies(text: str, order: tuple[int, ...]) -> None:
    assert read_order(text, 5) == order


def test_the_last_number_of_a_cut_reply_may_lack_digits() -> None:
    assert read_order('{"tables": [12, 1', 20, cut=True) == (11,)
    assert read_order('{"tables": [12, 1,', 20, cut=True) == (11, 0)
    assert read_order('{"tables": [12, 1]', 20, cut=True) == (11, 0)


@given(st.text(max_size=200), st.integers(1, 60), st.booleans())
def test_an_order_is_of_different_known_tables(text: str, k: int, cut: bool) -> None:
    order = read_order(text, k, cut=cut)
    assert len(set(order)) == len(order)
    assert all(0 <= i < k for i in order)


def test_the_strict_schema_takes_exactly_m_known_numbers() -> None:
    strict = reply_schema(2, 3, strict=True)
    assert problem_of('{"tables": [3, 1]}', strict) is None
    assert problem_of('{"tables": [3, 4]}', strict)
    assert problem_of('{"tables": [3]}', strict)
    loose = reply_schema(2, 3, strict=False)
    assert problem_of('{"tables": [3, 4, 4]}', loose) is None
    assert problem_of("tables 3 and 4", loose)
