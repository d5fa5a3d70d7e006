from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.evaluation.significance import (
    bootstrap,
    bootstrap_median,
    mcnemar,
    paired_bootstrap,
    wilson,
)

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


def test_the_score_interval_of_a_share() -> None:
    # Published values: Newcombe 1998, Statistics in Medicine 17, table I, method 3.
    for successes, n, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        assert wilson(successes, n) == (
            pytest.approx(low, abs=5e-5),
            pytest.approx(high, abs=5e-5),
        )
    for successes, n in [(0, 0), (3, 2), (-1, 2)]:
        with pytest.raises(ValueError, match="successes of"):
            wilson(successes, n)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_score_interval_holds_the_share_and_mirrors(case: tuple[int, int]) -> None:
    successes, n = case
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    mirrored = wilson(n - successes, n)
    assert (1 - mirrored[1], 1 - mirrored[0]) == (pytest.approx(low), pytest.approx(high))


def test_the_interval_of_a_median() -> None:
    values = [0.2, 0.4, 0.3, 0.9, 0.35, 0.33, 0.31, 0.5, 0.45]
    interval = bootstrap_median(values)
    assert interval.mean == 0.35
    assert interval.low is not None
    assert interval.high is not None
    assert 0.2 < interval.low < 0.35 < interval.high < 0.9
    assert interval == bootstrap_median(values)
    one = bootstrap_median([0.5])
    assert (one.mean, one.low, one.high) == (0.5, None, None)
    with pytest.raises(ValueError, match="at least one value"):
        bootstrap_median([])
