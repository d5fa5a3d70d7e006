from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.evaluation.significance import bootstrap, mcnemar, paired_bootstrap

scores = st.lists(st.floats(0, 1), min_size=2, max_size=20)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = [0.13, 0.94, 0.55, 0.02, 0.71, 0.38, 0.86]
    assert bootstrap(values, resamples=500) == bootstrap(values, resamples=500)
    assert bootstrap(values, resamples=500, seed=1) != bootstrap(values, resamples=500, seed=2)


def test_interval_of_a_share_is_about_the_normal_one() -> None:
    values = [1.0] * 60 + [0.0] * 40
    interval = bootstrap(values)
    assert interval.mean == pytest.approx(0.6)
    assert interval.low == pytest.approx(0.6 - 1.96 * 0.049, abs=0.015)
    assert interval.high == pytest.approx(0.6 + 1.96 * 0.049, abs=0.015)


def test_clusters_of_equal_scores_widen_the_interval() -> None:
    values = [1.0] * 50 + [0.0] * 50
    units = [f"db{i // 25}" for i in range(100)]
    by_questions, by_databases = bootstrap(values), bootstrap(values, units)
    assert by_databases.low is not None
    assert by_questions.low is not None
    assert by_databases.low < by_questions.low
    assert by_databases.mean == by_questions.mean


def test_large_databases_weigh_more() -> None:
    # Draws are {a,a}: 1, {a,b}: 3/4 twice, {b,b}: 0; a mean of database means would say 1/2.
    interval = bootstrap([1, 1, 1, 0], ["a", "a", "a", "b"], resamples=2000)
    assert interval.mean == 0.75
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_one_database_says_nothing_about_others() -> None:
    interval = bootstrap([0.0, 1.0], ["a", "a"])
    assert interval.to_dict() == {"mean": 0.5, "low": None, "high": None}


@given(scores)
def test_a_run_does_not_differ_from_itself(values: list[float]) -> None:
    interval = paired_bootstrap(values, values, resamples=50)
    assert (interval.mean, interval.low, interval.high) == (0, 0, 0)


@given(scores, st.floats(0.125, 1))
def test_a_constant_gain_is_certain(values: list[float], gain: float) -> None:
    interval = paired_bootstrap(values, [v + gain for v in values], resamples=50)
    assert interval.low == pytest.approx(gain)
    assert interval.high == pytest.approx(gain)


def test_lengths_must_fit() -> None:
    with pytest.raises(ValueError, match="length"):
        paired_bootstrap([1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="units"):
        bootstrap([1.0], ["a", "b"])
    with pytest.raises(ValueError, match="at least one"):
        bootstrap([])


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [(0, 0, 1.0), (5, 5, 1.0), (6, 0, 2 / 64), (0, 6, 2 / 64), (9, 1, 2 * 11 / 1024)],
)
def test_mcnemar_by_hand(wins: int, losses: int, p: float) -> None:
    assert mcnemar(wins, losses) == pytest.approx(p)
