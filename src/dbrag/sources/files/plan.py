"""How each column of a file is read: its type and the way its texts are written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dbrag.errors import UsageError
from dbrag.options import FileOptions
from dbrag.sources.files.guess import FORMATS, MAX_SCALE, NULL_WORDS, Evidence, Size

_TYPES = re.compile(
    r"string|int64|double|date|timestamp|timestamptz|time|bool|decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How one column is read.

    Attributes:
        type: "string", "int64", "double", "decimal(p,s)", "date", "timestamp",
            "timestamptz", "time" or "bool".
        decimal, thousands: of its numbers.
        form, order: of its dates; ``form`` is None where the user named the type.
        unit: "us", or "ns" where there are nanoseconds.
        nulls: texts that mean NULL, in lower case, for types other than "string".
        exact_nulls: texts that mean NULL as they are, for every type.
        forced: the type is the user's.
    """

    type: str = "string"
    decimal: str = "."
    thousands: str = ""
    form: str | None = None
    order: str = "ymd"
    unit: str = "us"
    nulls: frozenset[str] = frozenset({""})
    exact_nulls: tuple[str, ...] = ()
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of a file's columns, and what to tell people of them."""

    columns: tuple[Plan, ...]
    guessed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def evidence_for(options: FileOptions, *, numbers: bool = True) -> Evidence:
    """Empty evidence for one column under the user's settings."""
    words = NULL_WORDS
    if options.nulls is not None:
        words = frozenset({"", *(word.lower() for word in options.nulls)})
    return Evidence(words=words, numbers=numbers, allowed=_formats(options))


def _formats(options: FileOptions) -> tuple[tuple[str, str], ...]:
    decimal, thousands = options.decimal, options.thousands
    if decimal is None and thousands is None:
        return FORMATS
    if decimal is None:
        decimals = [one for one in (".", ",") if one != thousands]
    else:
        decimals = [decimal]
    allowed = []
    for one in decimals:
        groups = sorted({group for mark, group in FORMATS if mark == one})
        allowed += [(one, group) for group in (groups if thousands is None else ["", thousands])]
    return tuple(dict.fromkeys(allowed))


def check_options(options: FileOptions, where: str) -> None:
    """Refuse settings that mean nothing.

    Args:
        where: the table of ``dbrag.toml``, for the message.

    Raises:
        UsageError: names the setting.
    """

    def refuse(name: str, value: object, takes: str) -> None:
        raise UsageError(f"{name} in [{where}] must not be {value!r}", f"it takes {takes}")

    if options.decimal not in (None, ".", ","):
        refuse("decimal", options.decimal, '"." or ","')
    if options.thousands is not None and (
        len(options.thousands) > 1 or options.thousands.isalnum() or options.thousands == "-"
    ):
        refuse("thousands", options.thousands, 'one mark, or ""')
    if options.thousands and options.thousands == options.decimal:
        refuse("thousands", options.thousands, "another mark than decimal")
    if options.dates not in (None, "dmy", "mdy", "ymd"):
        refuse("dates", options.dates, '"dmy", "mdy" or "ymd"')
    if options.delimiter is not None and (
        len(options.delimiter) != 1 or options.delimiter in '"\r\n\0'
    ):
        refuse("delimiter", options.delimiter, "one character")
    if options.header is not None and options.header < 0:
        refuse("header", options.header, "the line of the names, or 0")
    for column, kind in options.types.items():
        match = _TYPES.fullmatch(kind.strip().lower())
        if not match:
            refuse(
                f"types.{column}",
                kind,
                '"string", "int64", "double", "decimal(p,s)", "date", "timestamp", "time", "bool"',
            )
        elif match[1] and not (0 < int(match[1]) <= 38 and int(match[2]) <= int(match[1])):
            refuse(f"types.{column}", kind, "1 to 38 digits, at most that many after the point")


def decide(
    names: Sequence[str],
    evidence: Sequence[Evidence],
    options: FileOptions,
    *,
    delimiter: str | None = None,
) -> Plans:
    """The plans of all columns of one table; undecided ones follow the others.

    Args:
        delimiter: of the file's cells: where it is ``;``, a comma may be a decimal mark.
    """
    types = _types_of(names, options.types)
    marks = _decimal_marks(evidence)
    mark = options.decimal or (next(iter(marks)) if len(marks) == 1 else None)
    strict = options.decimal is None and delimiter != ";" and marks == {".", ","}
    order = options.dates if options.dates in ("dmy", "mdy") else _date_order(evidence)
    plans, guessed, warnings = [], [], []
    for name, one in zip(names, evidence, strict=True):
        plan, odd = _of_column(name, one, options, mark, order, delimiter)
        if strict and plan.decimal == ",":
            plan, odd = (
                Plan(),
                (
                    f"column {name!r} holds numbers with commas, others with points: kept as text; "
                    'set decimal = "," to read them'
                ),
            )
        kind = types.get(name)
        if kind is not None:
            plan, odd = _forced(kind, one, plan, options, mark, order), ""
        if options.nulls is not None:
            plan = replace(plan, exact_nulls=options.nulls)
        plans.append(plan)
        guessed += _said(name, plan, one)
        warnings += [odd] if odd else []
        words = sorted(word for word in one.found if word)
        if plan.type != "string" and words and options.nulls is None:
            warnings.append(f"column {name!r}: {', '.join(map(repr, words))} read as NULL")
    known = {name.casefold() for name in names}
    for column in options.types:
        if column.casefold() not in known:
            warnings.append(f"types names {column!r}, which is no column")
    return Plans(tuple(plans), tuple(guessed), tuple(warnings))


def _types_of(names: Sequence[str], types: Mapping[str, str]) -> dict[str, str]:
    folded = {name.casefold(): name for name in names}
    found = {}
    for column, kind in types.items():
        name = column if column in names else folded.get(column.casefold())
        if name is not None:
            found[name] = re.sub(r"\s", "", kind.lower())
    return found


def _decimal_marks(evidence: Sequence[Evidence]) -> set[str]:
    """The decimal marks that columns of the file prove."""
    numbers = [one for one in evidence if one.seen and not one.integers and one.formats]
    return {_simple(one) for one in numbers} - {"both"}


def _simple(one: Evidence) -> str:
    """The decimal mark of a column of numbers that are not all whole; "both": may be either."""
    marks = {decimal for decimal, _ in one.formats}
    return marks.pop() if len(marks) == 1 else "both"


def _date_order(evidence: Sequence[Evidence]) -> str | None:
    orders = set()
    for one in evidence:
        found = one.forms.get("numbers", set()) if one.seen else set()
        if len(found) == 1:
            orders |= found
        elif len(found) == 2 and one.dotted:
            orders.add("dmy")
    return orders.pop() if len(orders) == 1 else None


def _of_column(
    name: str,
    one: Evidence,
    options: FileOptions,
    mark: str | None,
    order: str | None,
    delimiter: str | None,
) -> tuple[Plan, str]:
    """The plan of one column, and what is odd about it or ""."""
    if not one.seen:
        return Plan(), ""
    nulls = one.words
    if one.bools is not None and _is_bool(one):
        return Plan("bool", nulls=nulls), ""
    if one.formats:
        return _number(name, one, mark, delimiter)
    if "time" in one.forms:
        return Plan("time", form="time", nulls=nulls, unit=_unit(one)), ""
    form = next((form for form in one.forms if form != "short"), None)
    if form is None and "short" in one.forms:
        if options.dates in ("dmy", "mdy"):
            return _date(one, "short", options.dates), ""
        return Plan(), (
            f"column {name!r} holds dates with years of two digits: kept as text; "
            'set dates = "dmy" or "mdy" to read them'
        )
    if form is None:
        return Plan(), _spoiled(name, one)
    if one.zoned and one.zoned < one.cells:
        return Plan(), f"column {name!r} holds times with and without a zone: kept as text"
    if form != "numbers":
        return _date(one, form, "ymd"), ""
    orders = one.forms[form]
    if options.dates in orders:
        return _date(one, form, options.dates or ""), ""
    if len(orders) == 1:
        return _date(one, form, next(iter(orders))), ""
    if order in orders or one.dotted or one.same_in_both:
        return _date(one, form, order or "dmy"), ""
    return Plan(), (
        f"column {name!r} holds dates that may be day/month or month/day: kept as text; "
        'set dates = "dmy" or "mdy" to read them'
    )


def _spoiled(name: str, one: Evidence) -> str:
    kind, cells = one.spoiled
    if not kind:
        return ""
    shown = ", ".join(repr(cell if len(cell) <= 40 else cell[:39] + "…") for cell in cells)
    return (
        f"column {name!r} is kept as text: nearly all cells are {kind}, but not {shown}; where "
        "that means NULL, name it in nulls"
    )


def _is_bool(one: Evidence) -> bool:
    """``true`` and ``false``; ``yes`` and ``no`` only together: ``NO`` may be Norway."""
    return bool(one.bools) and (one.bools <= {"true", "false"} or one.bools == {"yes", "no"})  # type: ignore[operator]


def _unit(one: Evidence) -> str:
    return "ns" if one.nanoseconds else "us"


def _date(one: Evidence, form: str, order: str) -> Plan:
    kind = "timestamptz" if one.zoned else "timestamp" if one.timed else "date"
    return Plan(kind, form=form, order=order, nulls=one.words, unit=_unit(one))


def _number(name: str, one: Evidence, mark: str | None, delimiter: str | None) -> tuple[Plan, str]:
    if one.integers:
        digits = next(iter(one.formats.values())).digits
        kind = "int64" if one.int64 else "decimal(38,0)" if digits <= 38 else "string"
        odd = "" if kind != "string" else f"column {name!r} holds numbers of {digits} digits: text"
        return Plan(kind, nulls=one.words), odd
    decimal = _simple(one)
    if decimal == "both":
        pointed = (".", "") in one.formats  # 1.234, else 1,234
        if mark is not None:
            decimal = mark
        elif delimiter == ";":
            return Plan(), (
                f"column {name!r} holds numbers like 1.234 whose mark may separate decimals or "
                'thousands: kept as text; set decimal = "." or ","'
            )
        else:
            decimal = "."
        if (decimal, "") not in one.formats and pointed is (decimal == "."):
            return Plan(), ""
    fitting = [thousands for sign, thousands in one.formats if sign == decimal]
    if not fitting:
        return Plan(), ""
    thousands = fitting[0]
    size = one.formats[(decimal, thousands)]
    kind = number_type(size, one.int64)
    odd = ""
    if kind == "string":
        odd = f"column {name!r} holds numbers of {size.digits} digits: kept as text"
    return Plan(kind, decimal, thousands, nulls=one.words), odd


def number_type(size: Size, int64: bool = True) -> str:
    """The narrowest type that holds numbers of that size exactly.

    Amounts are decimals. Numbers with more than ``MAX_SCALE`` digits after the point that a
    double holds (17 digits) are measurements, as are those with an exponent: double.
    """
    if size.exponent:
        return "double" if size.digits <= 17 else "string"
    if not size.scale:
        if size.whole <= 18 or (int64 and size.whole == 19):
            return "int64"
        return "decimal(38,0)" if size.whole <= 38 else "string"
    if size.scale > MAX_SCALE and size.digits <= 17:
        return "double"
    digits = size.whole + size.scale
    if digits > 38:
        return "double" if size.digits <= 17 else "string"
    return f"decimal({18 if digits <= 18 else 38},{size.scale})"


def _forced(
    kind: str,
    one: Evidence,
    plan: Plan,
    options: FileOptions,
    mark: str | None,
    order: str | None,
) -> Plan:
    """The user's type, with what is known of how the column is written."""
    decimal = options.decimal or (plan.decimal if plan.type != "string" else None) or mark or "."
    thousands = options.thousands
    if thousands is None:
        thousands = plan.thousands or ("," if decimal == "." else ".")
    if kind == "timestamp" and one.zoned and one.zoned == one.cells:
        kind = "timestamptz"
    orders = one.forms.get("numbers", set())
    own = next(iter(orders)) if len(orders) == 1 else None
    return Plan(
        kind,
        decimal,
        thousands,
        None,
        options.dates or own or order or "?",
        "ns" if one.nanoseconds else "us",
        one.words,
        (),
        True,
    )


def _said(name: str, plan: Plan, one: Evidence) -> list[str]:
    """Short phrases on what was guessed and may be otherwise."""
    said: list[str] = []
    if plan.forced:
        return said
    if plan.type == "string" and one.zeros:
        said.append(f"column {name!r}: leading zeros, kept as text")
    elif plan.type in ("double", "int64") or plan.type.startswith("decimal"):
        if plan.decimal == ",":
            said.append(f"column {name!r}: decimal comma")
        if plan.thousands:
            said.append(f"column {name!r}: thousands separator {plan.thousands!r}")
    elif plan.form in ("numbers", "short"):
        readable = "day/month/year" if plan.order != "mdy" else "month/day/year"
        said.append(f"column {name!r}: dates as {readable}")
    return said
