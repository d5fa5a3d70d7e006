"""Which chart suits a result: decided from the Arrow columns alone, their types, names, values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

from dbrag.values import text_value

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["bar", "line", "point"]

MAX_BARS = 40
"""Categories that can be read side by side."""
MAX_SERIES = 8
"""Lines or colours that can be told apart."""
MAX_MARKS = 2000
MAX_MEASURES = 4
SCALE_RATIO = 20.0
"""Measures whose largest values differ by more share no axis."""

_IS_ID = re.compile(r"(?:^|[_\s.-])(?:id|key|uuid|nr|no)$|[a-z]Id$", re.IGNORECASE)
_IS_YEAR = re.compile(r"(?:^|[^a-z])(?:year|yr|jahr|année|año|anno)s?(?:[^a-z]|$)", re.IGNORECASE)
_ISO = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?")


@dataclass(frozen=True, slots=True)
class Field:
    """A column that is drawn: its place in the result and its name."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart that suits a result.

    Attributes:
        kind: its marks.
        x: category, time or number along which is drawn.
        y: the measures: several for lines of a time without ``series``, else one.
        series: the column that colours tell apart.
        rows: places of the rows that are drawn, in the order of the result.
        notes: what of the result is not drawn, for people.
    """

    kind: Kind
    x: Field
    y: tuple[Field, ...]
    series: Field | None
    rows: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def description(self) -> str:
        """The chart in a sentence, for those who do not see it."""
        names = {"bar": "Bar chart", "line": "Line chart", "point": "Scatter plot"}
        measures = ", ".join(field.name for field in self.y)
        by = f", one colour for each {self.series.name}" if self.series else ""
        return f"{names[self.kind]} of {measures} by {self.x.name}{by}: {len(self.rows)} rows"


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its role: ``time``, ``text`` (a category), ``number`` or ``id``."""

    field: Field
    role: str
    values: tuple[Any, ...]

    @property
    def known(self) -> list[Any]:
        """Without what is missing."""
        return [value for value in self.values if value is not None]

    @property
    def is_key(self) -> bool:
        """No value twice, none missing."""
        return len(set(self.values)) == len(self.values) and None not in self.values


def chart_of(table: pa.Table) -> Chart | str:
    """The chart that suits a result, or why none does (a phrase for people).

    * times or years, and numbers → lines;
    * a category of at most ``MAX_BARS`` values and a number → bars; with a second category of at
      most ``MAX_SERIES`` values → bars in colours;
    * two numbers → points.

    Args:
        table: the result ``[n_rows, n_columns]``; names may repeat.
    """
    if table.num_rows < 2:
        return "a chart needs at least two rows"
    if table.num_rows > MAX_MARKS:
        return f"more than {MAX_MARKS:,} rows are not drawn"
    columns = [column for column in map(column_of, *_numbered(table)) if column is not None]
    by_role: dict[str, list[Column]] = {"time": [], "text": [], "number": [], "id": []}
    for column in columns:
        by_role[column.role].append(column)
    if not by_role["number"]:
        return "no column holds amounts"
    if len(by_role["time"]) == 1 and len(by_role["text"]) <= 1:
        found = _lines(by_role["time"][0], by_role["text"], by_role["number"])
        if found is not None:
            return found
    categories = by_role["text"] + by_role["time"] or by_role["id"]
    if len(categories) in (1, 2):
        found = _bars(categories, by_role["number"])
        if found is not None:
            return found
    numbers = by_role["number"]
    if len(numbers) == 2 and len(categories) <= 1 and table.num_rows > 2:
        found = _made("point", numbers[0], (numbers[1],), None)
        if found is not None:
            return found
    return "neither bars nor lines suit these columns"


def _numbered(table: pa.Table) -> tuple[list[Field], list[Any]]:
    fields = [Field(i, name or f"column {i + 1}") for i, name in enumerate(table.column_names)]
    return fields, list(table.columns)


def column_of(field: Field, array: pa.ChunkedArray) -> Column | None:
    """A column that can be drawn; None for binary, nested and empty ones."""
    import pyarrow as pa

    kind = array.type
    values = tuple(array.to_pylist())
    known = [value for value in values if value is not None]
    if not known:
        return None
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Column(field, "time", values)
    if pa.types.is_boolean(kind):
        return Column(field, "text", tuple(v if v is None else text_value(v) for v in values))
    if pa.types.is_integer(kind) and _IS_YEAR.search(field.name) and _all_years(known):
        return Column(field, "time", tuple(v if v is None else date(v, 1, 1) for v in values))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = tuple(_number(value) for value in values)
        column = Column(field, "number", numbers)
        if not column.known:
            return None
        return Column(field, "id", values) if _IS_ID.search(field.name) else column
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        if all(_ISO.fullmatch(value) for value in known) and (days := _days(values)):
            return Column(field, "time", days)
        return Column(field, "text", values)
    return None


def _all_years(values: Sequence[int]) -> bool:
    return all(1000 <= value <= 2999 for value in values)


def _days(values: Sequence[str | None]) -> tuple[date | None, ...] | None:
    """Texts such as ``2024-03`` and ``2024-03-17`` as dates; None where one is no day."""
    try:
        return tuple(
            v if v is None else date.fromisoformat(v if len(v) == 10 else f"{v}-01") for v in values
        )
    except ValueError:
        return None


def _number(value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _lines(time: Column, texts: list[Column], numbers: list[Column]) -> Chart | None:
    if texts:
        pairs = list(zip(time.values, texts[0].values, strict=True))
        few = len(set(texts[0].known)) <= MAX_SERIES
        if len(set(pairs)) < len(pairs) or not few or len(set(time.known)) < 2:
            return None
        return _made("line", time, numbers[:1], texts[0], _others(numbers, 1))
    if len(set(time.known)) < len(time.known):
        return None
    shown = _of_one_scale(numbers)
    return _made("line", time, shown, None, _others(numbers, len(shown)))


def _bars(categories: list[Column], numbers: list[Column]) -> Chart | None:
    first, second = categories[0], categories[1] if len(categories) == 2 else None
    if second is not None and len(set(second.values)) > len(set(first.values)):
        first, second = second, first
    if second is not None and first.is_key:
        # A second name of the same things, as a store and its city, tells nothing apart.
        second = None
    if len(set(first.values)) > MAX_BARS:
        return None
    keys = list(zip(first.values, second.values if second else first.values, strict=True))
    if len(set(keys)) < len(keys):
        return None
    if second is not None and len(set(second.values)) > MAX_SERIES:
        return None
    return _made("bar", first, numbers[:1], second, _others(numbers, 1))


def _of_one_scale(numbers: list[Column]) -> list[Column]:
    """The first measure and those of its size."""
    largest = [max(map(abs, column.known)) or 1.0 for column in numbers]
    ratio = [max(one, largest[0]) / min(one, largest[0]) for one in largest]
    fits = zip(numbers, ratio, strict=True)
    return [column for column, one in fits if one <= SCALE_RATIO][:MAX_MEASURES]


def _others(numbers: list[Column], drawn: int) -> tuple[str, ...]:
    left = len(numbers) - drawn
    if left <= 0:
        return ()
    return (f"{left} more column{'s' if left > 1 else ''} of numbers not drawn",)


def _made(
    kind: Kind,
    x: Column,
    y: Sequence[Column],
    series: Column | None,
    notes: tuple[str, ...] = (),
) -> Chart | None:
    """The chart of the rows that have a value everywhere (a category may be missing: "NULL")."""
    total = len(x.values)
    rows = tuple(
        i
        for i in range(total)
        if (x.role in ("text", "id") or x.values[i] is not None)
        and any(column.values[i] is not None for column in y)
    )
    if len(rows) < 2:
        return None
    if left := total - len(rows):
        notes = (*notes, f"{left} row{'s' if left > 1 else ''} without a value not drawn")
    measures = tuple(column.field for column in y)
    colours = series.field if series is not None else None
    return Chart(kind, x.field, measures, colours, rows, notes)
