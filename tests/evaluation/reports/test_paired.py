from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from dbrag.errors import UsageError
from dbrag.evaluation.reports.paired import compared, holm, pair_json, pairs, randomisation_p
from dbrag.evaluation.reports.runs import read_runs

from .made import recall, write_run


def exact(a: list[float], b: list[float]) -> float:
    """The definition: all signs of the differences."""
    differences = [y - x for x, y in zip(a, b, strict=True)]
    observed = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(one >= observed - 1e-9 for one in sums) / len(sums)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([0, 0, 0, 0, 0.5], [1, 0.5, 1, 1, 0.5]),
        ([1, 0.5, 0, 1, 0, 1], [0.5, 1, 0, 0.5, 1, 0.5]),
        ([0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]),
        ([0.2, 0.4, 0.1, 0.9, 0.5, 0.6, 0.3], [0.3, 0.2, 0.6, 0.8, 0.9, 0.6, 0.7]),
    ],
)
def test_draws_agree_with_all_signs(a: list[float], b: list[float]) -> None:
    assert randomisation_p(a, b) == pytest.approx(exact(a, b), abs=0.015)
    assert randomisation_p(a, b) == randomisation_p(a, b)
    assert randomisation_p(b, a) == pytest.approx(exact(a, b), abs=0.015)


def test_no_difference_and_wrong_lengths() -> None:
    assert randomisation_p([0.5, 1], [0.5, 1]) == 1
    with pytest.raises(ValueError, match="cannot be paired"):
        randomisation_p([1.0], [])
    with pytest.raises(ValueError, match="cannot be paired"):
        randomisation_p([], [])


def test_holm_by_hand() -> None:
    # Ordered 0.01, 0.03, 0.04: times 3, 2, 1; never less than the one before.
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.6, 0.7]) == [1, 1]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


def ranked(values: list[float]) -> list[object]:
    return [recall(f"q-{i}", f"db{i % 3}", 2, value) for i, value in enumerate(values)]


def test_every_run_against_the_reference(tmp_path: Path) -> None:
    ours = write_run(tmp_path / "ours", ranked([1, 1, 1, 1, 1, 0.5]), "retrieval")
    bm25 = write_run(tmp_path / "bm25", ranked([0, 0.5, 0, 0.5, 1, 1]), "retrieval", "bm25")
    few = write_run(tmp_path / "few", ranked([0, 0.5]), "retrieval", "coarse")
    runs = read_runs([bm25, ours, few])
    found = pairs(runs)
    assert {pair.reference for pair in found} == {"ours"}
    assert [(p.run, p.found.metric, p.found.n) for p in found] == [
        ("bm25", "R@5", 6),
        ("bm25", "CR@5", 6),
        ("few", "R@5", 2),
        ("few", "CR@5", 2),
    ]
    r5, cr5 = found[:2]
    assert (r5.found.a, r5.found.b) == (pytest.approx(5.5 / 6), 0.5)
    assert (len(r5.found.wins), len(r5.found.losses)) == (1, 4)
    assert r5.found.p is None  # scores between 0 and 1: no McNemar
    assert r5.p == pytest.approx(exact([1, 1, 1, 1, 1, 0.5], [0, 0.5, 0, 0.5, 1, 1]), abs=0.02)
    assert cr5.p == cr5.found.p == pytest.approx(2 * 6 / 32)  # 1 won, 4 lost
    few_cr5 = found[3]
    assert cr5.holm == few_cr5.holm == pytest.approx(2 * cr5.p)
    assert pair_json(cr5)["p_holm"] == cr5.holm
    by_name = pairs(runs, "few")
    assert {pair.reference for pair in by_name} == {"few"}
    with pytest.raises(UsageError, match="no run 'nobody'"):
        pairs(runs, "nobody")
    with pytest.raises(UsageError, match="share no question"):
        compared(runs[0], read_runs([write_run(tmp_path / "x", [recall("z", "db0", 1, 1)])])[0], [])


def test_further_orders_are_compared_but_not_the_one_before(tmp_path: Path) -> None:
    base = write_run(tmp_path / "base", ranked([1, 1, 0]), "retrieval")
    orders = {"prior": {"R@5": 1.0, "CR@5": 1.0}, "model": {"R@5": 0.0, "CR@5": 0.0}}
    records = [recall(f"q-{i}", f"db{i}", 2, 1, orders=orders) for i in range(3)]
    rerank = write_run(tmp_path / "rerank", records, "retrieval", "rerank", "local:x")
    found = pairs(read_runs([base, rerank]))
    assert [(p.run, p.found.b) for p in found if p.found.metric == "R@5"] == [
        ("rerank, the model alone", 0.0),
        ("rerank, fused", 1.0),
    ]
    assert {p.reference for p in pairs(read_runs([base, rerank]), "rerank")} == {"rerank, fused"}
