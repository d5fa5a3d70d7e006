"""The type of a column, from all its texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dbrag.sources.files import dates

NULL_WORDS = frozenset(
    {"", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "--", "\\n", "?", "."}
)
"""In lower case: NULL in a column whose other cells are of one type."""
DATE_FORMS = ("ymd", "numbers", "day name", "name day", "time")
_SPACES = r"[ \x{00A0}\x{202F}]"
_GROUPS = {",": ",", ".": r"\.", " ": _SPACES, "'": "['’]"}
_LOOK, _LEAST, _FEW = 1000, 20, 0.05
"""Cells looked at, and when a column is told to be nearly of one type."""
MAX_SCALE = 9
"""Digits after the point of amounts; numbers with more of them are measurements."""


def number_pattern(decimal: str, thousands: str) -> str:
    """A regular expression of numbers; digits are grouped by ``thousands`` or not at all."""
    point = r"\." if decimal == "." else ","
    plain = rf"(?:(?:0|[1-9]\d*)(?:{point}\d+)?|{point}\d+)(?:[eE][+-]?\d{{1,3}})?"
    if not thousands:
        return rf"^-?{plain}$"
    group = _GROUPS.get(thousands) or "[" + thousands.replace("\\", r"\\") + "]"
    return rf"^-?(?:{plain}|[1-9]\d{{0,2}}(?:{group}\d{{3}})+(?:{point}\d+)?)$"


FORMATS = ((".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"),
           (",", "'"))  # fmt: skip
"""(decimal mark, separator of thousands) that are tried, simplest first."""


@dataclass(slots=True)
class Size:
    """The digits that numbers of one format need."""

    whole: int = 0
    scale: int = 0
    digits: int = 0
    exponent: bool = False


@dataclass(slots=True)
class Evidence:
    """What all cells of one column have in common; ``add`` it batch by batch.

    Attributes:
        numbers: False where texts are never numbers: quoted ones of JSON and Excel.
        words: texts read as NULL if the rest is of one type, in lower case.
        formats: number formats that fit all cells so far.
        forms: forms of dates that fit, and for forms of numbers the orders that do.
        spoiled: "numbers" or "dates" where nearly all cells are such, with some that are not.
    """

    words: frozenset[str] = NULL_WORDS
    numbers: bool = True
    allowed: tuple[tuple[str, str], ...] = FORMATS
    seen: bool = False
    found: set[str] = field(default_factory=set)
    formats: dict[tuple[str, str], Size] = field(default_factory=dict)
    integers: bool = True
    int64: bool = True
    dotted: bool = True
    zeros: bool = False
    bools: set[str] | None = field(default_factory=set)
    forms: dict[str, set[str]] = field(default_factory=dict)
    same_in_both: bool = True
    timed: int = 0
    zoned: int = 0
    cells: int = 0
    nanoseconds: bool = False
    spoiled: tuple[str, tuple[str, ...]] = ("", ())

    def __post_init__(self) -> None:
        self.formats = {one: Size() for one in self.allowed}
        self.forms = {form: {"dmy", "mdy"} for form in (*DATE_FORMS, "short")}

    @property
    def open(self) -> bool:
        """Whether anything but text is still possible."""
        return bool(self.formats or self.forms or self.bools is not None)

    def add(self, texts: Any) -> None:
        """Take an Arrow array of texts into account; NULL says nothing."""
        import pyarrow.compute as pc

        if not self.open:
            return
        values = pc.utf8_trim_whitespace(pc.unique(texts).drop_null())
        isnull = pc.is_in(pc.utf8_lower(values), value_set=_array(sorted(self.words)))
        if pc.any(isnull).as_py():
            self.found |= set(values.filter(isnull).to_pylist())
            values = values.filter(pc.invert(isnull))
        if not len(values):
            return
        self.seen = True
        self.cells += len(values)
        formats, forms = [*self.formats], [*self.forms]
        self._bools(values)
        self._dates(values)
        if self.formats and self.numbers:
            self._numbers(values)
        elif not self.numbers:
            self.formats = {}
        if self.numbers and not self.formats and not self.zeros:
            self._spoil("numbers", values, [number_pattern(*one) for one in formats])
        if not self.forms:
            self._spoil("dates", values, [dates.FORMS[one] for one in forms])

    def _spoil(self, kind: str, values: Any, patterns: list[str]) -> None:
        """Remember which few cells keep a column from being of a type."""
        import pyarrow.compute as pc

        def fits(some: Any, pattern: str) -> int:
            return int(pc.sum(pc.match_substring_regex(some, pattern)).as_py() or 0)

        head = values[:_LOOK]
        best = max(patterns, key=lambda one: fits(head, one), default=None)
        if best is None or self.spoiled[0] or 2 * fits(head, best) < len(head):
            return
        bad = values.filter(pc.invert(pc.match_substring_regex(values, best)))
        if len(bad) and self.cells >= _LEAST and len(bad) <= _FEW * self.cells:
            self.spoiled = kind, tuple(bad[:3].to_pylist())

    def _bools(self, values: Any) -> None:
        if self.bools is None:
            return
        words = {str(one).lower() for one in values[:7].to_pylist()}
        self.bools |= words
        if len(values) > 6 or not (self.bools <= {"true", "false"} or self.bools <= {"yes", "no"}):
            self.bools = None

    def _numbers(self, values: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        whole = pc.match_substring_regex(values, r"^-?(?:0|[1-9]\d*)$")
        if not pc.all(whole).as_py():
            self.integers = False
            rest = values.filter(pc.invert(whole))
            self.zeros = self.zeros or bool(
                pc.any(pc.match_substring_regex(rest, r"^-?0\d+$")).as_py()
            )
            for one, size in list(self.formats.items()):
                if pc.all(pc.match_substring_regex(rest, number_pattern(*one))).as_py():
                    measure(rest, *one, size)
                else:
                    del self.formats[one]
        integers = values.filter(whole)
        if len(integers):
            minus = pc.starts_with(integers, "-").cast(pa.int32())
            digits = int(pc.max(pc.subtract(pc.binary_length(integers), minus)).as_py())
            for size in self.formats.values():
                size.whole, size.digits = max(size.whole, digits), max(size.digits, digits)
            if digits > 18 and self.int64:
                try:
                    integers.cast(pa.int64())
                except pa.ArrowInvalid:
                    self.int64 = False

    def _dates(self, values: Any) -> None:
        import pyarrow.compute as pc

        moments = None
        for form, orders in list(self.forms.items()):
            if not pc.all(pc.match_substring_regex(values, dates.FORMS[form])).as_py():
                del self.forms[form]
                continue
            if form not in ("numbers", "short"):
                moments = dates.read(values, form)
                if moments is None:
                    del self.forms[form]
                continue
            self.dotted = self.dotted and bool(
                pc.all(pc.match_substring_regex(values, r"^\d+\.\d+\.")).as_py()
            )
            both = {order: dates.read(values, form, order) for order in sorted(orders)}
            fitting = {order: one for order, one in both.items() if one is not None}
            self.forms[form] = set(fitting)
            if not fitting:
                del self.forms[form]
                continue
            moments = next(iter(fitting.values()))
            if len(fitting) == 2:
                days = [one.days for one in fitting.values()]
                self.same_in_both = self.same_in_both and bool((days[0] == days[1]).all())
        if moments is not None:
            self.timed += moments.timed
            self.zoned += moments.zoned
            self.nanoseconds = self.nanoseconds or bool(moments.rest_ns.any())


def measure(values: Any, decimal: str, thousands: str, size: Size) -> None:
    """Widen ``size`` to the digits of ``values``, numbers of that format."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = plain_numbers(values, decimal, thousands)
    exponent = pc.match_substring_regex(plain, "[eE]")
    if pc.any(exponent).as_py():
        size.exponent = True
        plain = plain.filter(pc.invert(exponent))
    if not len(plain):
        return
    plain = pc.replace_substring_regex(plain, "^-", "")
    length = pc.binary_length(plain)
    point = pc.find_substring(plain, ".")
    has = pc.greater_equal(point, 0)
    zero = pa.scalar(0, pa.int32())
    scale = pc.if_else(has, pc.subtract(pc.subtract(length, point), pa.scalar(1, pa.int32())), zero)
    whole = pc.if_else(has, point, length)
    size.scale = max(size.scale, int(pc.max(scale).as_py()))
    size.whole = max(size.whole, int(pc.max(whole).as_py()))
    zeros = pc.match_substring_regex(plain, r"^0\.").cast(pa.int32())
    digits = pc.subtract(pc.add(whole, scale), zeros)
    size.digits = max(size.digits, int(pc.max(digits).as_py()))


def plain_numbers(values: Any, decimal: str, thousands: str) -> Any:
    """Numbers of one format as ``-1234.5``."""
    import pyarrow.compute as pc

    if thousands:
        pattern = _GROUPS.get(thousands) or "[" + thousands.replace("\\", r"\\") + "]"
        values = pc.replace_substring_regex(values, pattern, "")
    if decimal != ".":
        values = pc.replace_substring(values, decimal, ".")
    return values


def _array(words: list[str]) -> Any:
    import pyarrow as pa

    return pa.array(words, pa.string())
