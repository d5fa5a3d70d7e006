"""JAR's mixed-integer programme (Chen, Zhang and Roth 2024, arXiv 2404.09889), by HiGHS.

Choose K tables, the joins between them and the columns that cover the sub-questions:

    maximise   w1 · Σ r[q,i] d[q,i]  +  w2 · Σ y[q]  +  w3 · Σ C[i,j] c[i,j]  +  w4 · Σ s[i] b[i]

    Σ b[i] = K                          K tables
    Σ c[i,j] ≤ K - 1                    at most K - 1 joins
    c[i,j] + c[j,i] ≤ b[i], b[j]        a join has both its tables
    d[q,i] ≤ b[i]                       a covering column is of a chosen table
    y[q] ≤ Σ d[q,i]                     a sub-question is covered by some column
    Σ d[q,i] ≤ cap · Q                  not more covering columns than that
    K e[i] + Σ f[j,i] - Σ f[i,j] = b[i], Σ e[i] = 1, e[i] ≤ b[i], 0 ≤ f[i,j] ≤ K c[i,j]
                                        K units of flow from one table reach every table

As published but for what changes no optimum: within a pair of tables only one pair of
columns may join, and within a table one column may cover a sub-question, so only the best
of each is in the programme (``jar_columns``); b, e and c are whole numbers, the others are
then whole by themselves. K connected tables with at most K - 1 joins are a
tree with K - 1, each but the root with one join that leads to it: these equalities, and
that the root is the first of the chosen, are added, and tables and joins that are in no
optimum (``jar_bound``) left out, for speed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from dbrag.evaluation.baselines.parameters import JAR, JarWeights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Status = Literal["optimal", "time limit", "infeasible"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One question's programme.

    Attributes:
        scores: s ``[n]``, of the tables.
        relevance: r ``[n_questions, n]``, of each table's best column to each sub-question.
        joins: C ``[n, n]``, symmetric, of the best pair of columns; 0: they do not join.
        size: K.
    """

    scores: Array
    relevance: Array
    joins: Array
    size: int
    weights: JarWeights = JAR.weights


@dataclass(frozen=True, slots=True)
class Choice:
    """The tables chosen, in order of position, and what they are worth.

    ``objective`` is the programme's; ``bound`` is what no choice can exceed. ``joins`` are
    pairs of positions, a tree over the tables. ``ms`` are milliseconds of wall time.
    """

    tables: tuple[int, ...]
    joins: tuple[tuple[int, int], ...]
    objective: float
    bound: float
    status: Status
    ms: float


def solve(problem: Problem, limit_s: float = 60.0) -> Choice:
    """The best choice; the best one found where the time is over.

    Args:
        limit_s: seconds for the solver, as in the authors' code.

    Returns:
        A choice of no table, status "infeasible", where no K tables are connected.
    """
    from dbrag.evaluation.baselines.jar_bound import best_found, candidates, worth_of

    started = time.perf_counter()
    found = best_found(problem)
    if found is None:
        return Choice((), (), 0.0, 0.0, "infeasible", _ms(started))
    kept, joins = candidates(problem, found.objective)
    part = replace(
        problem, scores=problem.scores[kept], relevance=problem.relevance[:, kept], joins=joins
    )
    result, model = _run(part, limit_s)
    best = found
    if result.x is not None:
        solved = worth_of(problem, [int(kept[i]) for i in model.read(result.x)])
        if solved is not None and solved.objective > found.objective:
            best = solved
    bound = getattr(result, "mip_dual_bound", None)
    return Choice(
        best.tables,
        best.joins,
        best.objective,
        float("inf") if bound is None else -float(bound),
        "time limit" if result.status == 1 else "optimal",
        _ms(started),
    )


def _ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)


def _run(problem: Problem, limit_s: float) -> tuple[Any, _Model]:
    from scipy.optimize import milp

    model = _Model(problem)
    result = milp(
        -model.worth(),
        integrality=model.whole(),
        bounds=model.bounds(),
        constraints=model.constraints(),
        options={"time_limit": limit_s, "mip_rel_gap": 0.0},
    )
    return result, model


class _Model:
    """The programme as arrays; variables in the order b, e, d, y, c, f."""

    def __init__(self, problem: Problem) -> None:
        import numpy as np

        self.problem = problem
        self.n, self.q = len(problem.scores), len(problem.relevance)
        left, right = np.nonzero(np.triu(problem.joins, 1) > 0)
        self.tails = np.concatenate([left, right])
        self.heads = np.concatenate([right, left])
        self.pairs, self.arcs = len(left), 2 * len(left)
        sizes = [self.n, self.n, self.q * self.n, self.q, self.arcs, self.arcs]
        self.b, self.e, self.d, self.y, self.c, self.f, self.total = np.cumsum([0, *sizes]).tolist()

    def worth(self) -> Array:
        """The objective's coefficients ``[total]``."""
        import numpy as np

        problem, weights = self.problem, self.problem.weights
        worth = np.zeros(self.total)
        worth[: self.n] = weights.tables * problem.scores
        worth[self.d : self.y] = weights.columns * problem.relevance.ravel()
        worth[self.y : self.c] = weights.coverage
        worth[self.c : self.f] = weights.joins * problem.joins[self.tails, self.heads]
        return worth

    def whole(self) -> Array:
        """1 for the variables that must be whole: ``[total]``."""
        import numpy as np

        whole = np.zeros(self.total)
        whole[: self.d] = 1
        whole[self.c : self.f] = 1
        return whole

    def bounds(self) -> Any:
        """0..1, flow up to K - 1: the root keeps its own unit."""
        import numpy as np
        from scipy.optimize import Bounds

        upper = np.ones(self.total)
        upper[self.f :] = self.problem.size - 1
        return Bounds(np.zeros(self.total), upper)

    def constraints(self) -> Any:
        """All of them."""
        rows = _Rows(self.total)
        size, n = self.problem.size, self.n
        rows.add([(self.b + i, 1.0) for i in range(n)], size, size)
        rows.add([(self.e + i, 1.0) for i in range(n)], 1, 1)
        rows.add([(self.c + a, 1.0) for a in range(self.arcs)], size - 1, size - 1)
        for i in range(n):
            self._flow(rows, i)
        self._joins(rows)
        self._cover(rows)
        return rows.constraint()

    def _flow(self, rows: _Rows, i: int) -> None:
        """What flows into table ``i``, one unit more than what flows out of it."""
        import numpy as np

        coming, going = np.flatnonzero(self.heads == i), np.flatnonzero(self.tails == i)
        b, e = self.b + i, self.e + i
        rows.add(
            [
                (e, float(self.problem.size)),
                *((self.f + int(a), 1.0) for a in coming),
                *((self.f + int(a), -1.0) for a in going),
                (b, -1.0),
            ],
            0,
            0,
        )
        rows.add([*((self.c + int(a), 1.0) for a in coming), (b, -1.0), (e, 1.0)], 0, 0)
        rows.add([(e, 1.0), (b, -1.0)], None, 0)
        for before in range(i):  # the root is the first of the chosen
            rows.add([(e, 1.0), (self.b + before, 1.0)], None, 1)

    def _joins(self, rows: _Rows) -> None:
        for a in range(self.arcs):
            rows.add([(self.f + a, 1.0), (self.c + a, 1.0 - self.problem.size)], None, 0)
            rows.add([(self.f + a, 1.0), (self.c + a, -1.0)], 0, None)
        for pair in range(self.pairs):
            both = [(self.c + pair, 1.0), (self.c + self.pairs + pair, 1.0)]
            for end in (self.tails[pair], self.heads[pair]):
                rows.add([*both, (self.b + int(end), -1.0)], None, 0)

    def _cover(self, rows: _Rows) -> None:
        for q in range(self.q):
            of_q = [self.d + q * self.n + i for i in range(self.n)]
            for i, place in enumerate(of_q):
                rows.add([(place, 1.0), (self.b + i, -1.0)], None, 0)
            rows.add([(self.y + q, 1.0), *((place, -1.0) for place in of_q)], None, 0)
        places = range(self.d, self.y)
        rows.add([(p, 1.0) for p in places], None, self.problem.weights.cap * self.q)

    def read(self, x: Array) -> list[int]:
        """Positions of the tables of a solution ``[total]``."""
        import numpy as np

        return [int(i) for i in np.flatnonzero(x[: self.n] > 0.5)]


class _Rows:
    """Linear constraints, one after another."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._values: list[float] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def add(self, terms: list[tuple[int, float]], low: float | None, high: float | None) -> None:
        """low ≤ Σ value · variable ≤ high; None: without that bound."""
        for place, value in terms:
            self._rows.append(len(self._low))
            self._columns.append(place)
            self._values.append(value)
        self._low.append(-float("inf") if low is None else low)
        self._high.append(float("inf") if high is None else high)

    def constraint(self) -> Any:
        """For ``scipy.optimize.milp``."""
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        shape = (len(self._low), self._width)
        matrix = csr_array((self._values, (self._rows, self._columns)), shape=shape)
        return LinearConstraint(matrix, self._low, self._high)
