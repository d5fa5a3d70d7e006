"""Small summaries of columns that tell whether one column's values lie in another's.

A sketch is made from the rows that were read for the profile. A column that can be
referred to (its values differ) keeps the hashes of all distinct values, one that can only
refer keeps the smallest ones: a KMV synopsis (Beyer et al. 2007, "On synopses for
distinct-value estimation under multiset operations"), a random sample of its distinct
values that is the same for equal values in any table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from dbrag.sources.statements import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.types import ForeignKey, Table, TableRef

    Hashes = NDArray[np.uint32]

Kind = Literal["integer", "text", "date", "other"]

SAMPLE_HASHES = 1_024
"""Hashes kept of a column that can only refer: containment to within 3 points or so."""
KEY_HASHES = 200_000
"""Hashes kept of a column that can be referred to; the smallest ones of more."""
LONGEST_KEY = 128
"""Characters of a text beyond which its column is prose, not a key."""
COUNTER_SPREAD = 4
COUNTER_LIMIT = 200
"""Whole numbers count up if they lie closer than 4 apart, or within 200 of each other."""

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_STARTS = frozenset("-0123456789")
_FIRST = re.compile(r"^[-0-9]", re.MULTILINE)
_INT64 = 2**63
_FEWEST_SEEN = 5
_GAPS = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSketch:
    """What joins can be guessed from.

    ``kind`` is "other" for what is no key: fractions, booleans, binary, prose, and columns
    without a value. ``rows`` were read, ``nulls`` of them were NULL. ``hashes`` are sorted
    and without repetition; ``complete`` when they are those of all distinct values read,
    else they are the smallest. ``minimum`` and ``maximum`` are those of integers.
    """

    name: str
    kind: Kind
    rows: int
    nulls: int
    distinct: int
    minimum: int | None
    maximum: int | None
    hashes: Hashes
    complete: bool

    @property
    def unique(self) -> bool:
        """Whether no value comes twice in the rows read, and none is missing."""
        return self.rows > 0 and self.distinct == self.rows


@dataclass(frozen=True, slots=True, eq=False)
class TableSketch:
    """A table's columns with what is known of its size and keys.

    ``rows`` are those of the whole table as far as known, ``rows_read`` those that the
    sketches saw.
    """

    ref: TableRef
    columns: tuple[ColumnSketch, ...]
    primary_key: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...]
    rows: int
    rows_read: int
    is_view: bool = False

    @property
    def share(self) -> float:
        """The part of the rows that was read, 0..1; 1 for a table that is empty."""
        return min(1.0, self.rows_read / self.rows) if self.rows else 1.0


def sketch_table(table: Table, columns: Sequence[ColumnSketch]) -> TableSketch:
    """The sketch of a table whose columns are sketched; columns it no longer has go."""
    names = {column.name for column in table.columns if column.comment != HIDDEN}
    known = table.row_count if table.row_count is not None else table.estimate
    return TableSketch(
        ref=table.ref,
        columns=tuple(column for column in columns if column.name in names),
        primary_key=table.primary_key,
        foreign_keys=table.foreign_keys,
        rows=max(table.rows_read, known or 0),
        rows_read=table.rows_read,
        is_view=table.kind in ("view", "materialized view"),
    )


def sketch_columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[ColumnSketch]:
    """Sketches of all columns.

    Args:
        rows: ``[n_rows, n_columns]`` as read from the source.
    """
    columns = (list(map(itemgetter(i), rows)) for i in range(len(names)))
    return [sketch_column(name, values) for name, values in zip(names, columns, strict=True)]


def sketch_column(name: str, values: Sequence[Any]) -> ColumnSketch:
    """The sketch of one column; the order of ``values`` is of no account.

    Whole numbers are equal whatever their type: 1, 1.0, Decimal("1.0") and "1" have one
    hash. Texts are compared without the blanks around them, letter case counts.
    """
    import numpy as np

    try:
        # A dict keeps the order of rows: values that lie side by side in memory are met so.
        found = dict.fromkeys(values)
    except TypeError:  # lists and the like
        return _no_key(name, values, 0)
    found.pop(None, None)
    keys = _keys(list(found))
    if keys is None:
        return _no_key(name, values, len(found))
    kind, integers, texts = keys
    nulls = values.count(None) if None in values else 0
    unique = nulls == 0 and len(found) == len(values)
    hashes = _distinct(np.concatenate([_hash_integers(integers), _hash_texts(texts)]))
    kept = KEY_HASHES if unique else SAMPLE_HASHES
    return ColumnSketch(
        name=name,
        kind=kind,
        rows=len(values),
        nulls=nulls,
        distinct=len(found),
        minimum=min(integers) if kind == "integer" else None,
        maximum=max(integers) if kind == "integer" else None,
        hashes=hashes[:kept].copy(),
        complete=len(hashes) <= kept,
    )


def _no_key(name: str, values: Sequence[Any], distinct: int) -> ColumnSketch:
    import numpy as np

    nulls = sum(value is None for value in values)
    empty = np.empty(0, np.uint32)
    return ColumnSketch(name, "other", len(values), nulls, distinct, None, None, empty, True)


def _distinct(hashes: Hashes) -> Hashes:
    """Sorted, without repetition: ``np.unique``, which takes ten times as long."""
    import numpy as np

    hashes = np.sort(hashes)
    first = np.ones(len(hashes), bool)
    first[1:] = hashes[1:] != hashes[:-1]
    return hashes[first]


def _keys(found: list[Any]) -> tuple[Kind, list[int], list[str]] | None:
    """Kind, whole numbers and texts of distinct values; None where they are no keys."""
    integers: list[int] = []
    texts: list[str] = []
    dates = 0
    kinds = set(map(type, found))
    for kind in kinds:
        of_kind: list[Any] = found if len(kinds) == 1 else [v for v in found if type(v) is kind]
        if kind is int:
            integers += of_kind
        elif kind is str:
            if max(map(len, of_kind)) > LONGEST_KEY:
                return None
            _sort_texts(of_kind, integers, texts)
        elif issubclass(kind, (float, Decimal)):
            if not all(map(_whole, of_kind)):
                return None
            integers += map(int, of_kind)
        elif issubclass(kind, (date, time)):
            dates += len(of_kind)
            texts += [_iso(value) for value in of_kind]
        elif issubclass(kind, UUID):
            texts += [str(value) for value in of_kind]
        else:
            return None
    if not integers and not texts:
        return None
    if not texts:
        return "integer", integers, texts
    return ("date" if dates == len(found) else "text"), integers, texts


def _whole(value: float | Decimal) -> bool:
    """Whether it is a whole number that floating point tells from its neighbours."""
    if isinstance(value, Decimal):
        return value.is_finite() and abs(value) < _INT64 and value % 1 == 0
    return abs(value) <= 2**53 and value.is_integer()


def _iso(value: date | time) -> str:
    """``2024-05-01`` also for that day's midnight."""
    return value.isoformat().removesuffix("T00:00:00")


def _sort_texts(values: list[str], integers: list[int], texts: list[str]) -> None:
    """Add to each list what belongs there: texts that are whole numbers count as such."""
    stripped = list(map(str.strip, values))
    if _FIRST.search("\n".join(stripped)) is None:
        texts += stripped
        return
    for text in stripped:
        if text[:1] in _STARTS and _INTEGER.fullmatch(text):
            integers.append(int(text))
        else:
            texts.append(text)


def _hash_integers(values: list[int]) -> Hashes:
    import numpy as np

    try:
        return _mixed(np.array(values, np.int64).astype(np.uint64))
    except OverflowError:
        small = [v for v in values if -_INT64 <= v < _INT64]
        large = [str(v) for v in values if not -_INT64 <= v < _INT64]
        return np.concatenate([_hash_integers(small), _hash_texts(large)])


def _hash_texts(values: list[str]) -> Hashes:
    """FNV-1a (Fowler, Noll, Vo) of the UTF-8 bytes, mixed; all texts at once, byte by byte."""
    import numpy as np

    codes: Sequence[str | bytes] = values
    joined = "".join(values)
    if not joined.isascii():
        codes = [value.encode("utf-8", "surrogatepass") for value in values]
    lengths = np.fromiter(map(len, codes), np.int64, len(codes))
    data = np.frombuffer(joined.encode("utf-8", "surrogatepass"), np.uint8)
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(-lengths, kind="stable")  # texts that go on come first
    starts, lengths = starts[order], lengths[order]
    hashes = np.full(len(codes), 0xCBF29CE484222325, np.uint64)
    for i in range(int(lengths[0]) if len(codes) else 0):
        going = int(np.searchsorted(-lengths, -i, "left"))
        hashes[:going] ^= data[starts[:going] + i]
        hashes[:going] *= np.uint64(0x100000001B3)
    return _mixed(hashes)


def _mixed(x: NDArray[np.uint64]) -> Hashes:
    """The upper half of splitmix64 (Steele et al. 2014), which spreads any input evenly."""
    import numpy as np

    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32)


def has_telling_values(column: ColumnSketch) -> bool:
    """Texts, and whole numbers too scattered to be counted up: common values are no chance."""
    if column.kind in ("text", "date"):
        return True
    if column.minimum is None or column.maximum is None:
        return False
    spread = column.maximum - column.minimum + 1
    return spread > COUNTER_LIMIT and spread > COUNTER_SPREAD * column.distinct


def containment(a: ColumnSketch, b: ColumnSketch) -> float | None:
    """Estimated share of the distinct values of ``a`` that are among those of ``b``, 0..1.

    The smallest hashes of ``a`` are a random sample of its values; of an incomplete ``b``
    only hashes up to its largest one can be looked up (Beyer et al. 2007, section 5: the
    share of common hashes below the smaller threshold). Exact, but for equal hashes of
    different values, where both are complete. None where nothing can be said.
    """
    import numpy as np

    looked_up = a.hashes
    if not b.complete and len(b.hashes):
        looked_up = looked_up[: int(np.searchsorted(looked_up, b.hashes[-1], "right"))]
    if not len(looked_up):
        return None
    return int(np.count_nonzero(is_among(looked_up, b.hashes))) / len(looked_up)


def containment_in_table(a: ColumnSketch, b: ColumnSketch, share: float) -> float | None:
    """The same where only a part of the table of ``b`` was read, ``b`` being unique.

    A value of ``a`` that is in ``b`` was then seen there with probability ``share``, so the
    share seen is divided by it, and counts as 1 within two standard errors of it. Of whole
    numbers without gaps the ranges are compared instead. None where fewer than five values
    can be expected to be seen.

    Args:
        share: of the rows of the table of ``b`` that was read, 0..1.
    """
    if share >= 1:
        return containment(a, b)
    inside = _range_containment(a, b, share)
    if inside is not None:
        return inside
    seen = containment(a, b)
    if seen is None or len(a.hashes) * share < _FEWEST_SEEN:
        return None
    error = (share * (1 - share) / len(a.hashes)) ** 0.5 / share
    estimate = seen / share
    return 1.0 if estimate + 2 * error >= 1 else estimate


def _range_containment(a: ColumnSketch, b: ColumnSketch, share: float) -> float | None:
    """How much of the range of ``a`` lies in that of ``b``; None where ``b`` has gaps."""
    if a.minimum is None or a.maximum is None or b.minimum is None or b.maximum is None:
        return None
    spread = b.maximum - b.minimum + 1
    if b.distinct < _FEWEST_SEEN or spread * share > _GAPS * b.distinct:
        return None
    # What was not read lies in the gaps; or beyond the ends, where the first rows were read.
    unread_outside = round(b.distinct / share) - spread
    slack = max(5 * spread // b.distinct, unread_outside)
    low, high = max(a.minimum, b.minimum - slack), min(a.maximum, b.maximum + slack)
    return max(0, high - low + 1) / (a.maximum - a.minimum + 1)


def is_among(values: Hashes, among: Hashes) -> NDArray[np.bool_]:
    """``[len(values)]``: whether each is in the sorted ``among``."""
    import numpy as np

    if not len(among):
        return np.zeros(len(values), bool)
    # One past the end is taken for the last, which is less.
    return np.asarray(among.take(among.searchsorted(values), mode="clip") == values)
