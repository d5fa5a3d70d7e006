"""Votes by executed result."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.reasoning.vote import Ballot, cell_key, decided, is_hollow, result_key, tally
from dbrag.types import Execution, ResultColumn


def execution(rows: list[tuple[Any, ...]]) -> Execution:
    width = len(rows[0]) if rows else 1
    return Execution(tuple(ResultColumn(f"c{i}", "mixed") for i in range(width)), tuple(rows), 0.0)


CELLS = st.one_of(st.none(), st.integers(), st.text(max_size=5), st.booleans())
ROWS = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1, max_size=8)
)


@given(ROWS, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(rows: list[tuple[Any, ...]], random: Any) -> None:
    shuffled = rows[:]
    random.shuffle(shuffled)
    assert result_key(execution(rows)) == result_key(execution(shuffled))


def test_order_of_columns_does_not_matter() -> None:
    a = execution([(1, "x", 3.0), (2, "y", 4.0)])
    b = execution([("x", 3, 1), ("y", 4, 2)])
    assert result_key(a) == result_key(b)


@given(ROWS)
def test_duplicates_matter(rows: list[tuple[Any, ...]]) -> None:
    assert result_key(execution(rows)) != result_key(execution([*rows, rows[0]]))


def test_alignment_of_columns_matters() -> None:
    assert result_key(execution([(1, "a"), (2, "b")])) != result_key(
        execution([(1, "b"), (2, "a")])
    )


def test_equal_numbers_agree_and_types_do_not_mix() -> None:
    assert cell_key(3) == cell_key(3.0) == cell_key(Decimal("3.00"))
    assert cell_key(0.1 + 0.2) == cell_key(0.3)
    assert cell_key("3") != cell_key(3)
    assert cell_key(None) != cell_key("∅")
    assert cell_key(2**63) != cell_key(2**63 + 1)


def test_hollow_results() -> None:
    assert is_hollow(execution([]))
    assert is_hollow(execution([(None, 0), (0.0, None)]))
    assert not is_hollow(execution([(0, "a")]))


def test_a_group_with_content_beats_more_hollow_ones() -> None:
    outcome = tally([Ballot("h", True), Ballot("h", True), Ballot("a", False)])
    assert outcome is not None
    assert outcome.winners == (2,)
    assert outcome.agreement == 1 / 3


def test_majority_earliest_on_a_tie_and_split() -> None:
    outcome = tally([Ballot("a", False), Ballot("b", False), Ballot("b", False)])
    assert outcome is not None
    assert (outcome.winners, outcome.split) == ((1, 2), False)
    tie = tally([Ballot("a", False), Ballot("b", False)])
    assert tie is not None
    assert (tie.winners, tie.split) == ((0,), True)
    assert tally([]) is None


LIKELIHOODS = st.floats(0.0, 1.0)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), LIKELIHOODS), min_size=1, max_size=7),
    st.lists(st.tuples(st.sampled_from("abcd"), LIKELIHOODS), max_size=4),
)
def test_decided_means_no_continuation_changes_the_winner(
    cast: list[tuple[str, float]], to_come: list[tuple[str, float]]
) -> None:
    ballots = [Ballot(key, False, likelihood) for key, likelihood in cast]
    if decided(ballots, len(to_come)):
        now = tally(ballots)
        everything = [*ballots, *(Ballot(key, False, p) for key, p in to_come)]
        after = tally(everything)
        assert now is not None
        assert after is not None
        assert everything[after.winners[0]].key == ballots[now.winners[0]].key


def test_two_doubtful_votes_of_three_do_not_decide() -> None:
    assert decided([Ballot("a", False, 0.7), Ballot("a", False, 0.6)], 1)
    assert not decided([Ballot("a", False, 0.3), Ballot("a", False, 0.2)], 1)
    assert not decided([Ballot("a", True, 1.0), Ballot("a", True, 1.0)], 0)


def test_a_cell_that_holds_a_separator_is_not_two() -> None:
    one, other = execution([("a\x1fsb", "c")]), execution([("a", "b\x1fsc")])
    assert result_key(one) != result_key(other)


def test_a_likely_program_outvotes_two_unlikely_ones() -> None:
    ballots = [Ballot("a", False, 0.2), Ballot("a", False, 0.1), Ballot("b", False, 0.9)]
    counted = tally(ballots)
    assert counted is not None
    assert counted.winners == (2,)
    assert counted.rivals == ((0, 1),)
    assert counted.agreement == pytest.approx(1 / 3)
