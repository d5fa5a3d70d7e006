"""Dates and numbers as people write them in texts: which form a single text has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

_TIME = r"(?:(?:T|,? +)\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?: ?[AaPp]\.?[Mm]\.?)?(?: ?Z)?)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}\Z", re.ASCII)
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_TIME}\Z", re.ASCII)
_DAY_NAME = re.compile(
    rf"(\d{{1,2}})([-. ]{{1,2}})([A-Za-z]{{3,9}})\.?[-, ]{{1,2}}(\d{{4}}|\d{{2}}){_TIME}\Z",
    re.ASCII,
)
_NAME_DAY = re.compile(rf"([A-Za-z]{{3,9}})\.? +(\d{{1,2}}),? +(\d{{4}}){_TIME}\Z", re.ASCII)
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august",
           "september", "october", "november", "december")  # fmt: skip
_SHORT_MONTHS = frozenset({*(name[:3] for name in _MONTHS), "sept"})

_SIGNS = "$€£¥₹₽₩"
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD"
_UNIT_WORDS = """
kg g mg t ton tons tonne tonnes lb lbs oz km m cm mm mi mile miles ft feet in inch inches yd
l ml cl gal mph kph kmh km/h m/s h hr hrs hour hours min mins minute minutes s sec secs second
seconds ms day days week weeks month months yr yrs year years pc pcs piece pieces unit units
mb gb tb kb hz khz mhz ghz w kw mw v a ma hp cc cal kcal °c °f k bn million billion thousand
m² m2 km² km2 sqft euro euros dollar dollars /5 /10 /100
"""
_UNITS = frozenset(_UNIT_WORDS.split())
_NUMBER = re.compile(
    rf"(?P<sign>[-+]?)(?P<before>[{_SIGNS}]|(?:{_CODES}) )? ?(?P<minus>-?)"
    r"(?P<body>\d[\d.,'\u00a0\u202f]{0,30}|\.\d{1,30}) ?"
    rf"(?P<after>%|[{_SIGNS}]|(?:{_CODES})\b|[^\W\d_°][^\W_]{{0,8}}(?:/[^\W\d_]{{1,2}})?|/(?:5|10|100)|°[CF]|m²|km²)?\Z",
    re.ASCII,
)
_BODIES = (
    ("", re.compile(r"\d+(?:\.\d+)?\Z|\.\d+\Z", re.ASCII)),
    (",", re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z", re.ASCII)),
    (".", re.compile(r"\d{1,3}(?:\.\d{3})+,\d+\Z|\d{1,3}(?:\.\d{3}){2,}\Z", re.ASCII)),
    ("", re.compile(r"\d+,(?:\d{1,2}|\d{4,})\Z", re.ASCII)),
    ("'", re.compile(r"\d{1,3}(?:['\u00a0\u202f]\d{3})+(?:[.,]\d+)?\Z", re.ASCII)),
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Attributes:
        value: the number, its unit left aside.
        shape: what texts written in the same way have in common.
        unit: what follows it, as typed; signs of currencies and percent are none.
        marked: whether it is written otherwise than an engine would.
        prefix: whether the longest plain number at the text's start is the value.
        coded: whether zeros stand before it, as in codes.
    """

    value: Decimal
    shape: str
    unit: str
    marked: bool
    prefix: bool
    coded: bool


def number_in(text: str) -> Number | None:
    """The number that a text is, None if it is none or may be read in two ways.

    ``1,234`` has a thousands separator, ``1,23`` and ``1,2345`` a decimal comma.
    """
    match = _NUMBER.match(text.strip())
    if match is None or (match["sign"] and match["minus"]):
        return None
    before, body, after = (match["before"] or "").strip(), match["body"], match["after"] or ""
    is_unit = (
        bool(after) and after not in _SIGNS and after != "%" and after not in _CODES.split("|")
    )
    if (is_unit and after.casefold() not in _UNITS) or (before and after):
        return None
    kind = next((i for i, (_, form) in enumerate(_BODIES) if form.match(body)), None)
    if kind is None:
        return None
    plain = _plain(body, kind)
    sign = "-" if "-" in (match["sign"], match["minus"]) else ""
    return Number(
        value=Decimal(sign + plain),
        shape=f"{before}{kind}{after if is_unit or after == '%' else after[:1]}",
        unit=after if is_unit else "",
        marked=bool(kind or before or after),
        prefix=kind == 0 and not before,
        coded=kind == 0 and re.match(r"0\d", body) is not None,
    )


def _plain(body: str, kind: int) -> str:
    thousands = _BODIES[kind][0]
    for mark in {"'": "'\u00a0\u202f"}.get(thousands, thousands):
        body = body.replace(mark, "")
    return body.replace(",", ".")


def date_forms(texts: Iterable[str]) -> list[tuple[str, int]]:
    """The forms of those texts that are dates, with how many there are of each.

    Whether the day or the month comes first in ``1/2/2024`` is settled by the texts
    together: by one with a number beyond 12. Without one days come first before points, and
    otherwise both readings are named, as they are where both orders occur.
    """
    found: Counter[tuple[str, str]] = Counter()
    hints: dict[tuple[str, str], set[str]] = {}
    for text in texts:
        form = _date_form(text.strip())
        if form is not None:
            kind, mark, said = form
            found[kind, mark] += 1
            hints.setdefault((kind, mark), set()).update(said)
    named: Counter[str] = Counter()
    for (kind, mark), n in found.items():
        named[_form_name(kind, mark, hints[kind, mark])] += n
    return sorted(named.items(), key=lambda one: (-one[1], one[0]))


def _date_form(text: str) -> tuple[str, str, str] | None:
    """(kind, mark between, hints): hints of letters "s" for a day or month of one digit,
    "d" or "m" for what must come first, "n" for a month's whole name."""
    if match := _YEAR_FIRST.match(text):
        _, mark, month, day = match.groups()
        return ("ymd", mark, _single(month, day)) if _valid(day, month) else None
    if match := _YEAR_LAST.match(text):
        a, mark, b, year = match.groups()
        if mark == "-" and len(year) == 2:
            return None  # a score, a size
        day_first, month_first = _valid(a, b), _valid(b, a)
        if not (day_first or month_first):
            return None
        order = "" if day_first and month_first else "d" if day_first else "m"
        return f"y{len(year)}", mark, order + _single(a, b)
    if match := _DAY_NAME.match(text):
        day, mark, month, year = match.groups()
        if _is_month(month) and _valid(day, "1"):
            return f"dn{len(year)}", mark[-1:], _whole(month)
    elif (match := _NAME_DAY.match(text)) and _is_month(match[1]) and _valid(match[2], "1"):
        return "nd", "," if "," in text else "", _whole(match[1])
    return None


def _form_name(kind: str, mark: str, hints: set[str]) -> str:
    day, month = ("D", "M") if "s" in hints else ("DD", "MM")
    named = "Month" if "n" in hints else "Mon"
    year = "YYYY" if kind.endswith(("d", "4")) else "YY"
    if kind == "ymd":
        return mark.join((year, month, day))
    if kind.startswith("dn"):
        return mark.join(("D", named, year))
    if kind == "nd":
        return f"{named} D{mark} YYYY"
    days, months = mark.join((day, month, year)), mark.join((month, day, year))
    order = hints & {"d", "m"}
    if len(order) == 1:
        return days if "d" in order else months
    return days if not order and mark == "." else f"{days} or {months}"


def _single(*numbers: str) -> str:
    return "s" if any(len(number) == 1 for number in numbers) else ""


def _whole(month: str) -> str:
    return "n" if len(month) > 4 else ""


def _valid(day: str, month: str) -> bool:
    return 1 <= int(day) <= 31 and 1 <= int(month) <= 12


def _is_month(name: str) -> bool:
    return name.casefold() in _MONTHS or name.casefold() in _SHORT_MONTHS
