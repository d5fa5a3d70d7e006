"""How likely another source is meant."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.reasoning.source_doubt import LEAST_SHARE, SourceWeights, share_logit, source_doubt

strengths = st.dictionaries(
    st.sampled_from("abcdefgh"), st.floats(-1000, 1000, allow_nan=False), min_size=1
)


def test_a_source_alone_is_beyond_doubt() -> None:
    assert source_doubt({"a": 3.0}, "a") == 0.0
    assert source_doubt({}, "a") == 0.0


def test_doubt_is_the_logistic_of_the_share() -> None:
    weights = SourceWeights(bias=0.0, share=1.0)
    found = {"a": math.log(6.0), "b": math.log(3.0), "c": 0.0}
    assert share_logit(found, "a") == pytest.approx(math.log(0.6 / 0.4))
    assert source_doubt(found, "a", weights) == pytest.approx(0.4)


def test_the_nearer_the_others_and_the_more_of_them_the_more_doubt() -> None:
    clear, near = {"a": 9.0, "b": 2.0}, {"a": 9.0, "b": 8.5}
    crowd = {"a": 9.0, "b": 8.5, "c": 8.5}
    told = [source_doubt(found, "a") for found in (clear, near, crowd)]
    assert told == sorted(told)
    assert told[0] < 0.05
    assert told[1] > 0.5


@given(strengths)
def test_doubt_stays_in_bounds(found: dict[str, float]) -> None:
    for home in (*found, "unknown"):
        assert 0.0 <= source_doubt(found, home) <= 1.0
        assert abs(share_logit(found, home)) <= math.log((1 - LEAST_SHARE) / LEAST_SHARE) + 1e-9
