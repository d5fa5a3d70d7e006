"""How well columns join, against sets and the published formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scipy")

from dbrag.evaluation.baselines.jar_columns import (
    ColumnFacts,
    headers,
    jaccard,
    joinability,
    overlap,
    relevance,
    type_of,
)
from dbrag.types import Column, Table, TableRef

SETS = st.lists(st.sets(st.integers(0, 30), max_size=12), min_size=1, max_size=5)


def sorted_hashes(values: set[int]) -> np.ndarray:
    return np.array(sorted(values), np.uint32)


@given(SETS)
def test_jaccard_of_whole_sets_is_exact(sets: list[set[int]]) -> None:
    found = jaccard([sorted_hashes(one) for one in sets], np.ones(len(sets), bool))
    for i, a in enumerate(sets):
        for j, b in enumerate(sets):
            wanted = len(a & b) / len(a | b) if a | b else 0.0
            assert found[i, j] == pytest.approx(wanted)


def test_jaccard_of_samples_is_near() -> None:
    random = np.random.default_rng(0)
    universe = random.choice(2**32, 60_000, replace=False).astype(np.uint32)
    a, b = np.sort(universe[:40_000]), np.sort(universe[20_000:])
    for kept, complete in ((a[:1024], [False, True]), (a[:1024], [False, False])):
        other = b if complete[1] else b[:1024]
        found = jaccard([kept, other], np.array(complete))
        assert found[0, 1] == found[1, 0]
        assert found[0, 1] == pytest.approx(20_000 / 60_000, abs=0.04)


def test_overlap_of_words() -> None:
    words = [np.array(one, np.int64) for one in ([1, 2, 3], [2, 3], [4], [])]
    assert overlap(words)[0].tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ("INTEGER", "number"),
        ("numeric(10, 2)", "number"),
        ("VARCHAR(20)", "text"),
        ("", "text"),
        ("datetime", "time"),
        ("TIMESTAMP WITH TIME ZONE", "time"),
        ("BOOLEAN", "boolean"),
        ("BLOB", "blob"),
    ],
)
def test_types(declared: str, wanted: str) -> None:
    assert type_of(Column("c", declared)) == wanted


def facts(**changed: object) -> ColumnFacts:
    """Tables a (2 columns), b (1 column), c (none)."""
    options: dict[str, object] = {
        "starts": np.array([0, 2, 3, 3]),
        "types": np.array([0, 1, 0]),
        "uniqueness": np.array([1.0, 0.5, 0.25]),
        "words": tuple(np.array(one, np.int64) for one in ([0, 1], [0, 2], [1, 3])),
        "values": tuple(sorted_hashes(one) for one in ({1, 2, 3, 4}, {9}, {3, 4, 5, 6})),
        "complete": np.ones(3, bool),
        "vectors": np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32),
        **changed,
    }
    return ColumnFacts(**options)  # type: ignore[arg-type]


def test_the_published_formula() -> None:
    found = joinability(facts(), [0, 1, 2])
    # jaccard 2/6, cosine 0.6, overlap 1/2; the larger uniqueness is 1
    wanted = 0.5 * 2 / 6 + 0.25 * 0.6 + 0.25 * 0.5
    assert found == pytest.approx(np.array([[0, wanted, 0], [wanted, 0, 0], [0, 0, 0]]))
    assert joinability(facts(uniqueness=np.array([0.5, 0.5, 0.25])), [0, 1])[0, 1] == pytest.approx(
        wanted / 2
    )


def test_columns_of_two_types_do_not_join() -> None:
    assert joinability(facts(types=np.array([0, 1, 2])), [0, 1]).max() == 0
    # only the text column of a is left, which has nothing in common but the header's cosine
    found = joinability(facts(types=np.array([2, 0, 0])), [1, 0])
    assert found[0, 1] == pytest.approx(0.5 * 0.25 * 0.8)


def test_empty_tables_join_nothing() -> None:
    assert joinability(facts(uniqueness=np.zeros(3)), [0, 1]).max() == 0


def test_the_nearest_column_counts() -> None:
    asked = np.array([[1, 0], [0, -1]], np.float32)
    found = relevance(facts(), [2, 1, 0], asked)
    assert found == pytest.approx(np.array([[-1, 0.6, 1], [-1, -0.8, 0]]))


def test_headers_name_no_database() -> None:
    table = Table(TableRef("secret_db", None, "Order_Items"), (Column("order.ID"), Column("Qty")))
    assert headers([table]) == ["order items orderid", "order items qty"]
