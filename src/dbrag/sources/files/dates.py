"""Dates and times as people write them, many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_TIME = (
    r"(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,](?P<f>\d{1,9}))?)?"
    r" ?(?P<p>[AaPp]\.?[Mm]\.?)?"
)
_ZONE = r" ?(?P<z>Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?"
_AFTER = rf"(?:(?:T|t|,? +){_TIME}{_ZONE})?$"
FORMS = {
    "ymd": r"^(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})" + _AFTER,
    "numbers": r"^(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{4})" + _AFTER,
    "short": r"^(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{2})" + _AFTER,
    "day name": r"^(?P<d>\d{1,2})[-/. ]+(?P<n>[A-Za-z]{3,9})[-/., ]+(?P<y>\d{4})" + _AFTER,
    "name day": r"^(?P<n>[A-Za-z]{3,9})\.? +(?P<d>\d{1,2}),? +(?P<y>\d{4})" + _AFTER,
    "time": rf"^{_TIME}$",
}
"""``2024-12-31``, ``31/12/2024`` or ``12/31/2024``, ``31/12/24``, ``31-Dec-2024``,
``Dec 31, 2024``, each with or without a time; ``23:59:59``."""
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august",
           "september", "october", "november", "december")  # fmt: skip
DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Moments:
    """What texts of one form say.

    Attributes:
        days: since 1970-01-01, [n]; zeros for times alone.
        us: microseconds of the day, [n]; the zone's distance from UTC is taken off.
        rest_ns: nanoseconds beyond them, [n].
        timed, zoned: how many have a time, a zone.
    """

    days: npt.NDArray[np.int64]
    us: npt.NDArray[np.int64]
    rest_ns: npt.NDArray[np.int64]
    timed: int
    zoned: int


def read(texts: Any, form: str, order: str = "dmy") -> Moments | None:
    """All of ``texts`` (an Arrow array, no NULL) as one form; None where one does not fit.

    Args:
        order: of day and month ("dmy" or "mdy"), for the forms of numbers; years of two
            digits are 1969 to 2068, as in POSIX.
    """
    import numpy as np
    import pyarrow.compute as pc

    groups = pc.extract_regex(texts, FORMS[form])
    if groups.null_count:
        return None
    get = {field.name: groups.field(i) for i, field in enumerate(groups.type)}
    n = len(texts)
    days = np.zeros(n, np.int64)
    if form != "time":
        found = _days(get, form, order)
        if found is None:
            return None
        days = found
    clock = _clock(get)
    if clock is None:
        return None
    us, rest, timed = clock
    zoned = 0
    if form != "time":
        offset, zoned = _offsets(get["z"])
        us = us - offset * 60_000_000
    return Moments(days, us, rest, timed, zoned)


def _ints(texts: Any) -> Any:
    """An Arrow array of digits (or nothing: 0) as numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(texts, ""), "0", texts).cast(pa.int64()).to_numpy(False)


def _days(get: dict[str, Any], form: str, order: str) -> npt.NDArray[np.int64] | None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    year = get["y"]
    if form == "ymd":
        month, day = get["m"], get["d"]
    elif form in ("numbers", "short"):
        day, month = (get["a"], get["b"]) if order != "mdy" else (get["b"], get["a"])
    else:
        day, month = get["d"], _month_numbers(get["n"])
        if month is None:
            return None
    if form == "short":
        century = pc.if_else(pc.less(year.cast(pa.int64()), 69), "20", "19")
        year = pc.binary_join_element_wise(century, year, "")
    iso = pc.binary_join_element_wise(
        year, pc.utf8_lpad(month, 2, "0"), pc.utf8_lpad(day, 2, "0"), "-"
    )
    if pc.any(pc.starts_with(iso, "0000")).as_py():
        return None  # there is no year 0
    try:
        dates = iso.cast(pa.date32())
    except pa.ArrowInvalid:
        return None
    result: npt.NDArray[np.int64] = dates.cast(pa.int32()).to_numpy(False).astype(np.int64)
    return result


def _month_numbers(names: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    known = {}
    for number, name in enumerate(_MONTHS, 1):
        known[name] = known[name[:3]] = str(number)
    known["sept"] = "9"
    values = pc.utf8_lower(names).dictionary_encode()
    words = [known.get(word) for word in values.dictionary.to_pylist()]
    if None in words:
        return None
    return pa.array(words, pa.string()).take(values.indices)


def _clock(get: dict[str, Any]) -> tuple[Any, Any, int] | None:
    """(microseconds of the day, nanoseconds beyond, how many have a time)."""
    import pyarrow.compute as pc

    hour, minute, second = (_ints(get[key]) for key in "HMS")
    if (minute > 59).any() or (second > 59).any() or (hour > 23).any():
        return None
    half = pc.utf8_lower(pc.utf8_slice_codeunits(get["p"], 0, 1))
    has_half = pc.not_equal(half, "").to_numpy(False)
    if has_half.any():
        if ((hour < 1) | (hour > 12))[has_half].any():
            return None
        after = pc.equal(half, "p").to_numpy(False)
        hour = hour.copy()
        hour[has_half] = hour[has_half] % 12
        hour[after] += 12
    fraction = _ints(pc.utf8_rpad(get["f"], 9, "0"))
    us = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction // 1000
    timed = int(pc.sum(pc.not_equal(get["H"], "")).as_py() or 0)
    return us, fraction % 1000, timed


def _offsets(zones: Any) -> tuple[Any, int]:
    """(minutes east of UTC, how many texts have a zone)."""
    import numpy as np
    import pyarrow as pa

    coded = zones.dictionary_encode()
    minutes = []
    for zone in coded.dictionary.to_pylist():
        if zone[:1] in ("+", "-"):
            digits = zone[1:].replace(":", "").ljust(4, "0")
            size = int(digits[:2]) * 60 + int(digits[2:])
            minutes.append(-size if zone[0] == "-" else size)
        else:
            minutes.append(0)
    present = [bool(zone) for zone in coded.dictionary.to_pylist()]
    taken = pa.array(minutes, pa.int64()).take(coded.indices).to_numpy(False)
    with_zone = pa.array(present, pa.bool_()).take(coded.indices).to_numpy(False)
    return taken.astype(np.int64), int(with_zone.sum())
