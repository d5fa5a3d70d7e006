"""What an engine knows of a whole table, in the profile of a sample."""

from __future__ import annotations

from dbrag.catalog.whole import of_whole
from dbrag.sources.base import ColumnStatistics
from dbrag.types import ColumnProfile

SEEN = ColumnProfile("n", 1, 3, "2", "10", (("2", 4), ("10", 1)), ("2", "10", "3"))


def test_facts_of_the_whole_replace_those_of_the_sample_and_are_named() -> None:
    known = ColumnStatistics(500, 0.25, "-7", "9999", (("2", 0.5), ("4", 0.125)))
    profile = of_whole(SEEN, known, 1000, 6)
    assert (profile.nulls, profile.distinct, profile.minimum, profile.maximum) == (
        250, 500, "-7", "9999",
    )  # fmt: skip
    assert profile.frequent == (("2", 500), ("4", 125))
    assert profile.whole == ("distinct", "frequent", "maximum", "minimum", "nulls")
    assert profile.samples == SEEN.samples


def test_what_was_seen_beyond_an_estimate_stays() -> None:
    profile = of_whole(SEEN, ColumnStatistics(2, None, "3", "9"), 1000, 6)
    assert (profile.distinct, profile.minimum, profile.maximum) == (3, "2", "10")
    assert profile.whole == ()
    mixed = of_whole(SEEN, ColumnStatistics(minimum="abc"), 1000, 6)
    assert mixed.minimum == "2"


def test_dates_and_texts() -> None:
    seen = ColumnProfile("d", 0, 2, "2024-01-05", "2024-02-01", (), ())
    profile = of_whole(seen, ColumnStatistics(minimum="2019-12-31", maximum="2024-01-31"), None, 2)
    assert (profile.minimum, profile.maximum) == ("2019-12-31", "2024-02-01")
    assert profile.whole == ("minimum",)


def test_shares_need_a_number_of_rows() -> None:
    known = ColumnStatistics(null_share=0.5, frequent=(("2", 0.5),))
    assert of_whole(SEEN, known, None, 6) == SEEN
    assert of_whole(SEEN, None, 1000, 6) == SEEN
    assert of_whole(SEEN, known, 3, 6) == SEEN  # the number of rows is wrong
