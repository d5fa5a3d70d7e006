"""Texts to values of a planned type, exactly or not at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dbrag.sources.files import dates
from dbrag.sources.files.guess import number_pattern, plain_numbers

if TYPE_CHECKING:
    from dbrag.sources.files.plan import Plan

_TRUE = ("true", "yes", "t", "y", "1")
_FALSE = ("false", "no", "f", "n", "0")


class Misfit(Exception):
    """A text that the planned type does not take.

    Args:
        row: its place in the batch.
        text: as it is in the file.
    """

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row
        self.text = text


def arrow_type(plan: Plan) -> Any:
    """The Arrow type of a planned column."""
    import pyarrow as pa

    if plan.type.startswith("decimal"):
        digits, scale = (int(part) for part in re.findall(r"\d+", plan.type))
        return pa.decimal128(digits, scale)
    return {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp(plan.unit),
        "timestamptz": pa.timestamp(plan.unit, "UTC"),
        "time": pa.time64(plan.unit),
    }[plan.type]


def cast(texts: Any, plan: Plan) -> Any:
    """An Arrow array of texts as the planned type; NULL stays NULL.

    Raises:
        Misfit: the first text that does not fit.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if plan.exact_nulls:
        mask = pc.is_in(texts, value_set=pa.array(plan.exact_nulls, pa.string()))
        texts = pc.if_else(mask, pa.scalar(None, pa.string()), texts)
    if plan.type == "string":
        return texts
    kind = arrow_type(plan)
    trimmed = pc.utf8_trim_whitespace(texts)
    words = pa.array(sorted(plan.nulls), pa.string())
    keep = pc.and_(trimmed.is_valid(), pc.invert(pc.is_in(pc.utf8_lower(trimmed), words)))
    present = trimmed.filter(keep)
    values = _cast(present, plan, kind)
    if values is None:
        rows = pc.indices_nonzero(keep).to_pylist()
        row = rows[_first_misfit(present, plan, kind)]
        raise Misfit(row, texts[row].as_py())
    if len(values) == len(texts):
        return values
    places = pc.if_else(
        keep, pc.subtract(pc.cumulative_sum(keep.cast(pa.int64())), 1), pa.scalar(None, pa.int64())
    )
    return values.take(places)


def _first_misfit(texts: Any, plan: Plan, kind: Any) -> int:
    low, high = 0, len(texts)  # the first one is in [low, high)
    while high - low > 1:
        middle = (low + high) // 2
        if _cast(texts[low:middle], plan, kind) is None:
            high = middle
        else:
            low = middle
    return low


def _cast(texts: Any, plan: Plan, kind: Any) -> Any:
    """All of ``texts``, none of them NULL; None where one does not fit."""
    import pyarrow as pa

    if not len(texts):
        return pa.array([], kind)
    try:
        if plan.type == "bool":
            return _bools(texts)
        if plan.type == "int64" or plan.type == "double" or plan.type.startswith("decimal"):
            return _numbers(texts, plan, kind)
        return _moments(texts, plan, kind)
    except (pa.ArrowInvalid, OverflowError):
        return None


def _bools(texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    lower = pc.utf8_lower(texts)
    true = pc.is_in(lower, pa.array(_TRUE))
    known = pc.or_(true, pc.is_in(lower, pa.array(_FALSE)))
    return true if pc.all(known).as_py() else None


def _numbers(texts: Any, plan: Plan, kind: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if plan.forced:  # the user knows that 007 and +5 are numbers
        texts = pc.replace_substring_regex(texts, r"^\+", "")
        texts = pc.replace_substring_regex(texts, r"^(-?)0+(\d)", r"\1\2")
    if plan.forced or plan.thousands:
        fits = pc.match_substring_regex(texts, number_pattern(plan.decimal, plan.thousands))
        if not pc.all(fits).as_py():
            return None
    plain = plain_numbers(texts, plan.decimal, plan.thousands)
    if plan.type == "int64":
        plain = pc.replace_substring_regex(plain, r"\.0*$", "")
    values = plain.cast(kind)
    if plan.type == "double" and not pc.all(pc.is_finite(values)).as_py():
        return None
    if plan.type.startswith("decimal") and not pa.types.is_decimal(values.type):
        return None
    return values


def _moments(texts: Any, plan: Plan, kind: Any) -> Any:
    import pyarrow as pa

    if plan.form == "ymd":  # as most programs write them
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            pass
    found = None
    if plan.form is not None:
        found = dates.read(texts, plan.form, plan.order)
        return None if found is None else _built(found, plan, kind)
    if plan.type == "time":
        forms = ["time"]
    else:
        forms = ["ymd", "day name", "name day"]
        if plan.order in ("dmy", "mdy"):
            forms += ["numbers", "short"]
    for form in forms:
        found = dates.read(texts, form, plan.order)
        if found is not None:
            return _built(found, plan, kind)
    if len(texts) == 1:
        return None
    parts = [_moments(texts[i : i + 1], plan, kind) for i in range(len(texts))]
    return None if any(part is None for part in parts) else pa.concat_arrays(parts)


def _built(found: dates.Moments, plan: Plan, kind: Any) -> Any:
    import pyarrow as pa

    if plan.type == "date":
        # Midnight is no time of the day: a date of the spreadsheet kind.
        return None if found.us.any() else pa.array(found.days, pa.int32(), safe=False).cast(kind)
    if plan.type == "timestamp" and found.zoned:
        return None
    if plan.type == "timestamptz" and found.zoned < len(found.days):
        return None
    us = found.us if plan.type == "time" else found.days * dates.DAY_US + found.us
    if plan.unit == "ns":
        if abs(us).max() > 9_223_372_036_854_774:
            return None
        us = us * 1000 + found.rest_ns
    return pa.array(us, pa.int64()).cast(kind)
