"""When two result tables are the same: the core of execution match.

Two tables match when one permutation of the columns, applied to all rows, turns one
into the other: as a bag of rows, or row by row where order counts. Cells are equal
when both are NULL, both numbers within a relative tolerance, or the same text.

A tolerance is not transitive, so it cannot simply be hashed. Numbers are first put
into clusters (chains of neighbours within the tolerance): rows in different clusters
can never be equal, which makes hashing and colour refinement safe for pruning. Only
clusters wider than the tolerance need the exact check at the end.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from dbrag.values import json_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

Cell = None | float | str
"""A cell as compared: NULL, a number, or text."""

RELATIVE_TOLERANCE = 1e-6
_NUMBER = (bool, int, float, Decimal)


def same_rows(
    left: Sequence[Sequence[Any]],
    right: Sequence[Sequence[Any]],
    *,
    ordered: bool,
    tolerance: float = RELATIVE_TOLERANCE,
) -> bool:
    """Whether two tables hold the same rows under one permutation of the columns.

    Duplicates count. Two tables without rows are equal whatever their columns.

    Args:
        left, right: rows ``[n_rows][n_columns]``, any values a database returns.
        ordered: compare row by row instead of as bags.
        tolerance: relative; 0 only equals 0.
    """
    if len(left) != len(right):
        return False
    if not left:
        return True
    width = len(left[0])
    if width != len(right[0]):
        return False
    if width == 0:
        return True
    a, b = _columns(left, width), _columns(right, width)
    if ordered:
        return _same_ordered(a, b, tolerance)
    # Most right answers are exactly right: clusters of one value need no second check.
    return _Bags(a, b, 0.0).match() or (tolerance > 0 and _Bags(a, b, tolerance).match())


def same_number(a: float, b: float, tolerance: float = RELATIVE_TOLERANCE) -> bool:
    """``|a − b| ≤ tolerance · max(|a|, |b|)``; infinities and NaN equal themselves."""
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=0.0)


def as_cell(value: object) -> Cell:
    """A database value as it is compared: numbers by value, everything else as JSON text."""
    if value is None:
        return None
    if isinstance(value, _NUMBER):
        try:
            return float(value)
        except (OverflowError, ValueError):  # beyond a float, or a signalling NaN
            return f"number:{value}"
    plain = json_value(value)
    return plain if isinstance(plain, str) else repr(plain)


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Cell]]:
    """The cells by column ``[n_columns][n_rows]``."""
    return [[as_cell(row[i]) for row in rows] for i in range(width)]


# ---- in order: columns are independent of each other --------------------------------


def _same_ordered(a: list[list[Cell]], b: list[list[Cell]], tolerance: float) -> bool:
    """Row by row: a perfect matching between columns that agree in every row."""
    allowed = [
        [j for j, right in enumerate(b) if _same_column(left, right, tolerance)] for left in a
    ]
    return _perfect_matching(len(a), lambda i: allowed[i])


def _same_column(a: list[Cell], b: list[Cell], tolerance: float) -> bool:
    return all(_same_cell(x, y, tolerance) for x, y in zip(a, b, strict=True))


def _same_cell(x: Cell, y: Cell, tolerance: float) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        return same_number(x, y, tolerance)
    return x == y and type(x) is type(y)


def _perfect_matching(
    n: int, neighbours: Callable[[int], Sequence[int]], start: Mapping[int, int] | None = None
) -> bool:
    """Whether ``n`` left and ``n`` right vertices can all be paired (augmenting paths).

    One vertex without an augmenting path proves that there is no perfect matching
    (Berge 1957), so a mismatch stops at once.

    Args:
        start: pairs (left → right) to begin with; later steps may undo them.
    """
    right_of = dict(start or {})
    left_of = {right: left for left, right in right_of.items()}
    for root in range(n):
        if root in right_of:
            continue
        parent: dict[int, int] = {}  # right vertex → left vertex it was reached from
        free = _free_vertex(root, neighbours, left_of, parent)
        if free is None:
            return False
        while True:  # flip the path from the free vertex back to the root
            left = parent[free]
            previous = right_of.get(left)
            left_of[free], right_of[left] = left, free
            if previous is None:
                break
            free = previous
    return True


def _free_vertex(
    root: int,
    neighbours: Callable[[int], Sequence[int]],
    left_of: Mapping[int, int],
    parent: dict[int, int],
) -> int | None:
    """The unpaired right vertex nearest to ``root``; fills ``parent`` with the way to it."""
    queue = [root]
    for left in queue:  # grows while it is read
        for right in neighbours(left):
            if right in parent:
                continue
            parent[right] = left
            if right not in left_of:
                return right
            queue.append(left_of[right])
    return None


# ---- as bags: the columns have to be found ------------------------------------------


class _Bags:
    """Both tables with their cells as cluster numbers, and the search for the columns."""

    def __init__(self, a: list[list[Cell]], b: list[list[Cell]], tolerance: float) -> None:
        self.a, self.b, self.tolerance = a, b, tolerance
        codes, self.wide = _clusters([*a, *b], tolerance)
        width = len(a)
        flat = np.array([[codes[cell] for cell in column] for column in (*a, *b)], dtype=np.int64)
        # [n_rows, n_columns]
        self.left: NDArray[np.int64] = flat[:width].T.copy()
        self.right: NDArray[np.int64] = flat[width:].T.copy()
        self.width = width

    def match(self) -> bool:
        """Whether some permutation of the columns makes the bags equal."""
        colours = np.zeros(self.width, dtype=np.uint64)
        return self._search(colours, colours.copy(), [])

    def _search(
        self, left: NDArray[np.uint64], right: NDArray[np.uint64], fixed: list[tuple[int, int]]
    ) -> bool:
        """Refine the column colours; where they leave a choice, try each.

        Args:
            left, right: colour of each column ``[n_columns]``; only columns of the same
                colour can belong together.
            fixed: the pairs of columns chosen so far.
        """
        left, right = _refine(self.left, left), _refine(self.right, right)
        if not np.array_equal(np.sort(left), np.sort(right)):
            return False
        sizes = Counter(left.tolist())
        open_ = [(size, colour) for colour, size in sizes.items() if size > 1]
        if not open_:
            order = {colour: j for j, colour in enumerate(right.tolist())}
            return self._same_bag([(i, order[c]) for i, c in enumerate(left.tolist())])
        colour = np.uint64(min(open_)[1])
        i = int(np.flatnonzero(left == colour)[0])
        fresh = _mix(np.array([colour]))[0]
        tried: list[list[Cell]] = []
        for j in np.flatnonzero(right == colour).tolist():
            # Equal columns are interchangeable: one of them is enough.
            if self.b[j] in tried or not self._same_values(self.a[i], self.b[j]):
                continue
            tried.append(self.b[j])
            pairs = [*fixed, (i, j)]
            # Colours say nothing inside a wide cluster: look before searching on.
            if self.wide and len(pairs) > 1 and not self._same_bag(pairs):
                continue
            one, other = left.copy(), right.copy()
            one[i] = other[j] = fresh
            if self._search(one, other, pairs):
                return True
        return False

    def _same_values(self, a: list[Cell], b: list[Cell]) -> bool:
        """Whether two columns can hold the same bag of values (their order left aside)."""
        if Counter(c for c in a if not isinstance(c, float)) != Counter(
            c for c in b if not isinstance(c, float)
        ):
            return False
        x = sorted((c for c in a if isinstance(c, float)), key=_number_key)
        y = sorted((c for c in b if isinstance(c, float)), key=_number_key)
        return _same_column([*x], [*y], self.tolerance)

    def _same_bag(self, pairs: list[tuple[int, int]]) -> bool:
        """Whether the rows, cut to these pairs of columns, are the same bag."""
        left = self.left[:, [i for i, _ in pairs]]
        right = self.right[:, [j for _, j in pairs]]
        rows, others = _groups(left), _groups(right)
        if rows.keys() != others.keys() or any(len(rows[k]) != len(others[k]) for k in rows):
            return False
        if not self.wide:
            return True
        for key, group in rows.items():
            wide = [pair for pair, code in zip(pairs, key, strict=True) if code in self.wide]
            if wide and not self._same_group(group, others[key], wide):
                return False
        return True

    def _same_group(self, rows: list[int], others: list[int], pairs: list[tuple[int, int]]) -> bool:
        """Rows that agree but for numbers in wide clusters: can they all be paired?

        Args:
            rows, others: row numbers in both tables, equally many.
            pairs: the columns whose numbers are in wide clusters here.
        """
        # The numbers alone: [n_rows_of_group][n_pairs].
        x = sorted(tuple(_number(self.a[i][r]) for i, _ in pairs) for r in rows)
        y = sorted(tuple(_number(self.b[j][r]) for _, j in pairs) for r in others)
        if all(self._near(p, q) for p, q in zip(x, y, strict=True)):
            return True
        if len(pairs) == 1:  # sorted order is optimal in one dimension
            return False
        start = _equal_pairs(x, y)
        firsts = [q[0] for q in y]

        def neighbours(i: int) -> list[int]:
            reach = abs(x[i][0]) * self.tolerance * (1 + 2 * self.tolerance)
            low = bisect_left(firsts, x[i][0] - reach)
            high = bisect_left(firsts, math.nextafter(x[i][0] + reach, math.inf))
            return [j for j in range(low, high) if self._near(x[i], y[j])]

        return _perfect_matching(len(x), neighbours, start)

    def _near(self, p: tuple[float, ...], q: tuple[float, ...]) -> bool:
        return all(same_number(s, t, self.tolerance) for s, t in zip(p, q, strict=True))


def _clusters(columns: list[list[Cell]], tolerance: float) -> tuple[dict[Cell, int], set[int]]:
    """A number for each cell, equal for cells that a chain of near numbers connects.

    Returns:
        The numbers, and which of them stand for clusters wider than the tolerance.
    """
    seen = {cell for column in columns for cell in column}
    codes: dict[Cell, int] = {}
    wide: set[int] = set()
    for cell in seen:
        if not isinstance(cell, float):
            codes[cell] = len(codes)
    code, first, last = len(codes), math.nan, math.nan
    for number in sorted((cell for cell in seen if isinstance(cell, float)), key=_number_key):
        if not same_number(last, number, tolerance):
            code, first = code + 1, number
        elif not same_number(first, number, tolerance):
            wide.add(code)
        codes[number] = code
        last = number
    return codes, wide


def _refine(table: NDArray[np.int64], colours: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Colours of columns, refined until no more columns differ (Weisfeiler and Leman 1968).

    A row's colour is the bag of its (cell, column colour), a column's the bag of its
    (cell, row colour): independent of the order of rows and columns. Bags are summed
    hashes of 64 bits; a collision only costs pruning, never a wrong answer.

    Args:
        table: cluster numbers ``[n_rows, n_columns]``.
        colours: ``[n_columns]``; returned in the same shape.
    """
    cells = _mix(table.astype(np.uint64))
    while True:
        rows = _mix(cells ^ _mix(colours)[None, :]).sum(axis=1, dtype=np.uint64)
        bags = _mix(cells ^ _mix(rows + np.uint64(1))[:, None]).sum(axis=0, dtype=np.uint64)
        refined = _mix(bags ^ _mix(colours))
        if len(np.unique(refined)) == len(np.unique(colours)):
            return refined
        colours = refined


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit hash of each element (the finaliser of splitmix64, Steele et al. 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _groups(table: NDArray[np.int64]) -> dict[tuple[int, ...], list[int]]:
    """Row numbers by row."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(table.tolist()):
        groups[tuple(row)].append(i)
    return groups


def _equal_pairs(x: list[tuple[float, ...]], y: list[tuple[float, ...]]) -> dict[int, int]:
    waiting: dict[tuple[float, ...], list[int]] = defaultdict(list)
    for j, row in enumerate(y):
        waiting[row].append(j)
    return {i: waiting[row].pop() for i, row in enumerate(x) if waiting.get(row)}


def _number(cell: Cell) -> float:
    # Columns of one group agree in kind; what is not in a wide cluster is equal anyway.
    return cell if isinstance(cell, float) else 0.0


def _number_key(number: float) -> tuple[bool, float]:
    return (math.isnan(number), 0.0 if math.isnan(number) else number)
