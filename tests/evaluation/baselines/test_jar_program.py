"""JAR's programme against every choice there is, on instances small enough to list them."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scipy")

from dbrag.evaluation.baselines.jar_bound import (
    best_found,
    candidates,
    coverage,
    spanning_tree,
    worth_of,
)
from dbrag.evaluation.baselines.jar_program import Choice, Problem, solve
from dbrag.evaluation.baselines.parameters import JarWeights

UNIT = st.floats(0, 1).map(lambda x: round(x, 3))
SIGNED = st.floats(-1, 1).map(lambda x: round(x, 3))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    n = draw(st.integers(1, 6))
    questions = draw(st.integers(1, 3))
    joins = np.zeros((n, n))
    for i, j in combinations(range(n), 2):
        joins[i, j] = joins[j, i] = draw(st.one_of(st.just(0.0), UNIT))
    weights = JarWeights(
        columns=draw(st.sampled_from([2.0, 3.0, 0.5])),
        coverage=draw(st.sampled_from([8.0, 0.0, 1.0])),
        joins=draw(st.sampled_from([1.0, 5.0])),
        tables=draw(st.sampled_from([10.0, 0.3, 0.0])),
        cap=draw(st.sampled_from([1.0, 2.0, 0.5])),
    )
    return Problem(
        scores=np.array([draw(SIGNED) for _ in range(n)]),
        relevance=np.array([[draw(SIGNED) for _ in range(n)] for _ in range(questions)]),
        joins=joins,
        size=draw(st.integers(1, min(n, 4))),
        weights=weights,
    )


def best_by_listing(problem: Problem) -> float | None:
    """The optimum by listing all tables, all sets of joins, all covering columns.

    Nothing of the code under test is used. Where the cap is not whole, d and y may be parts
    of 1 (as in the published programme nothing says how to round): then a grid of halves is
    listed, which is exact for halves.
    """
    n, size, w = len(problem.scores), problem.size, problem.weights
    step = 0.5 if (w.cap * len(problem.relevance)) % 1 else 1.0
    best = None
    for tables in combinations(range(n), size):
        pairs = [p for p in combinations(tables, 2) if problem.joins[p] > 0]
        trees = [s for s in combinations(pairs, size - 1) if connected(tables, s)]
        if not trees:
            continue
        joins = max(sum(problem.joins[p] for p in tree) for tree in trees)
        value = w.tables * sum(problem.scores[i] for i in tables) + w.joins * joins
        value += best_cover(problem.relevance[:, tables], w, step)
        best = value if best is None else max(best, value)
    return best


def connected(tables: tuple[int, ...], pairs: tuple[tuple[int, int], ...]) -> bool:
    group = {i: i for i in tables}
    for i, j in pairs:
        old, new = group[i], group[j]
        group = {k: new if g == old else g for k, g in group.items()}
    return len(set(group.values())) == 1


def best_cover(relevance: np.ndarray, w: JarWeights, step: float) -> float:
    """Per sub-question the best for each amount of columns used; then all ways to share them."""
    levels = np.arange(0, 1 + step / 2, step)
    rows = []
    for row in relevance:
        by_amount: dict[float, float] = {}
        for used in product(levels, repeat=len(row)):
            value = w.columns * float(np.dot(used, row)) + w.coverage * min(1.0, sum(used))
            amount = float(sum(used))
            by_amount[amount] = max(by_amount.get(amount, -np.inf), value)
        rows.append(by_amount)
    best = -np.inf
    for amounts in product(*rows):
        if sum(amounts) <= w.cap * len(relevance) + 1e-9:
            best = max(best, sum(row[a] for row, a in zip(rows, amounts, strict=True)))
    return float(best)


def check(problem: Problem, choice: Choice) -> None:
    """The published constraints, one by one."""
    assert len(set(choice.tables)) == problem.size
    assert len(choice.joins) <= problem.size - 1
    for i, j in choice.joins:
        assert {i, j} <= set(choice.tables)
        assert i != j
        assert problem.joins[i, j] > 0
    assert connected(choice.tables, choice.joins)


@settings(max_examples=150)
@given(problems())
def test_the_optimum_is_that_of_all_choices(problem: Problem) -> None:
    best = best_by_listing(problem)
    choice = solve(problem)
    if best is None:
        assert choice.status == "infeasible"
        assert choice.tables == ()
        return
    assert choice.status == "optimal"
    assert choice.objective == pytest.approx(best, abs=1e-6)
    assert choice.bound >= best - 1e-6
    check(problem, choice)


@settings(max_examples=150)
@given(problems())
def test_what_is_left_out_is_in_no_optimum(problem: Problem) -> None:
    found = best_found(problem)
    if found is None:
        return
    kept, joins = candidates(problem, found.objective)
    alone = {
        pair
        for pair in combinations(range(len(problem.scores)), 2)
        if problem.joins[pair] > 0
        and not (
            set(pair) <= set(kept.tolist())
            and joins[kept.tolist().index(pair[0]), kept.tolist().index(pair[1])] > 0
        )
    }
    best = best_by_listing(problem)
    assert best is not None
    for i, j in alone:
        forced = [
            one
            for one in combinations(range(len(problem.scores)), problem.size)
            if {i, j} <= set(one)
        ]
        for tables in forced:
            worth = with_join(problem, tables, (i, j))
            assert worth is None or worth < best + 1e-9


def with_join(problem: Problem, tables: tuple[int, ...], join: tuple[int, int]) -> float | None:
    """The best of these tables where one join is forced; None where it cannot be."""
    w = problem.weights
    pairs = [p for p in combinations(tables, 2) if problem.joins[p] > 0]
    sums = [
        sum(problem.joins[p] for p in tree)
        for tree in combinations(pairs, problem.size - 1)
        if join in tree and connected(tables, tree)
    ]
    if not sums:
        return None
    step = 0.5 if (w.cap * len(problem.relevance)) % 1 else 1.0
    own = w.tables * sum(problem.scores[i] for i in tables)
    return own + w.joins * max(sums) + best_cover(problem.relevance[:, tables], w, step)


def small(**changed: object) -> Problem:
    joins = np.zeros((4, 4))
    for i, j, c in ((0, 1, 0.9), (1, 2, 0.8), (0, 3, 0.1)):
        joins[i, j] = joins[j, i] = c
    options = {"scores": np.array([0.5, 0.1, 0.4, 0.2]), "size": 3, **changed}
    return Problem(relevance=np.array([[0.3, 0.1, 0.2, 0.9]]), joins=joins, **options)  # type: ignore[arg-type]


def test_a_table_in_between_is_chosen_for_its_joins() -> None:
    choice = solve(small(weights=JarWeights(columns=0.0)))
    assert choice.tables == (0, 1, 2)  # 3 alone has the better score, and no join to 2
    assert choice.joins == ((0, 1), (1, 2))
    assert choice.objective == pytest.approx(10 * 1.0 + 1.7 + 8)
    assert choice.ms > 0


def test_the_column_of_a_sub_question_can_weigh_more() -> None:
    assert solve(small(weights=JarWeights(columns=20.0))).tables == (0, 1, 3)


def test_no_connected_tables() -> None:
    problem = small()
    choice = solve(Problem(problem.scores, problem.relevance, problem.joins * 0, 3))
    assert choice.status == "infeasible"
    assert solve(Problem(problem.scores, problem.relevance, problem.joins, 5)).tables == ()


def test_one_table_needs_no_join() -> None:
    problem = small(size=1, weights=JarWeights(columns=0.0))
    assert solve(problem).tables == (0,)
    assert solve(problem).joins == ()


def test_when_the_time_is_over_the_best_so_far_is_taken() -> None:
    random = np.random.default_rng(3)
    n = 40
    joins = random.random((n, n))
    joins = np.triu(joins, 1) + np.triu(joins, 1).T
    problem = Problem(random.random(n) * 0.01, random.random((2, n)), joins, 5)
    choice = solve(problem, limit_s=1e-3)
    assert choice.status == "time limit"
    assert choice.bound > choice.objective
    check(problem, choice)


def test_coverage_counts_a_sub_question_once() -> None:
    relevance = np.array([[0.5, 0.4], [-0.2, -0.9]])
    weights = JarWeights()
    assert coverage(relevance, weights) == pytest.approx(8 + 2 * 0.5 + 8 - 2 * 0.2)
    assert coverage(relevance, JarWeights(cap=2.0)) == pytest.approx(9 + 7.6 + 2 * 0.4)
    assert coverage(relevance, JarWeights(coverage=0.0, cap=0.5)) == pytest.approx(1.0)


def test_the_heaviest_tree() -> None:
    joins = np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0.0]])
    assert spanning_tree(joins, [0, 1, 2]) == [(0, 2), (1, 2)]
    assert spanning_tree(joins * 0, [0, 1]) is None
    assert worth_of(small(), [2, 3, 0]) is None  # 2 joins 1 only
