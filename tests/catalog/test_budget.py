"""Rows and time of a source, spread over its tables."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbrag.catalog.budget import Budget, small_first
from dbrag.types import Table, TableRef

SIZES = st.lists(st.integers(0, 10_000), min_size=1, max_size=30)


def spread(sizes: list[int], rows: int, table_rows: int = 1_000) -> list[int]:
    budget = Budget(table_rows, 10.0, rows, 100.0, len(sizes), len(sizes))
    read = []
    for size in sorted(sizes):
        share = budget.share()
        read.append(min(size, share[0]) if share else 0)
        budget.spend(read[-1], 0.001)
    return read


@given(SIZES, st.integers(1, 50_000))
def test_the_budget_is_kept_used_and_fair(sizes: list[int], rows: int) -> None:
    read = spread(sizes, rows)
    assert sum(read) <= rows
    wanted = [min(size, 1_000) for size in sorted(sizes)]
    if sum(wanted) <= rows:
        assert read == wanted
        return
    # Who got less than wanted got as much as anybody, but for what does not divide evenly.
    cut = [got for got, want in zip(read, wanted, strict=True) if got < want]
    assert min(cut) >= max(read) - len(sizes)
    assert sum(read) > rows - len(sizes)


def test_time_is_shared_too() -> None:
    budget = Budget(1_000, 10.0, 10**6, 40.0, tables=8, to_read=8)
    assert budget.share() == (1_000, 5.0)
    budget.spend(10, 0.5)
    assert budget.share() == (1_000, 39.5 / 7)
    budget.known(10)
    assert budget.share() == (1_000, 39.5 / 7)
    budget.spend(10, 39.5)
    assert budget.share() is None


def test_small_tables_come_first_unknown_ones_last_in_their_order() -> None:
    tables = [
        Table(TableRef("s", None, name), (), estimate=estimate)
        for name, estimate in [("a", None), ("b", 50), ("c", 0), ("d", None), ("e", 50)]
    ]
    assert [table.ref.name for table in small_first(tables)] == ["c", "b", "e", "a", "d"]
