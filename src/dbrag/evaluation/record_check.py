"""What a line of ``records.jsonl`` and a ``summary.json`` must look like, so that a wrong one is
told by its place.

Published records are exchanged, and edited by hand: every key that a summary or a report reads
is checked, others may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[str, Any], str | None]
"""Of a key and its value: what is wrong, for people; None where nothing is."""


def fault(record: Any) -> str | None:
    """What is wrong with a record, for people; None where it can be used."""
    if not isinstance(record, Mapping):
        return f"{record!r:.60} is not an object"
    lacking = [key for key in REQUIRED if key not in record]
    if lacking:
        return f"{lacking[0]!r} is missing"
    return _first(record, CHECKS)


def summary_fault(summary: Mapping[str, Any]) -> str | None:
    """The same of what ``summary.json`` or ``config.json`` tells of a run."""
    return _first(summary, SUMMARY_CHECKS) or _figures(summary)


def _figures(summary: Mapping[str, Any]) -> str | None:
    """The metrics of a summary, of its groups, and the macro figures: what a table shows of it."""
    known = summary.get("interval") or ()
    checks = {**dict.fromkeys(known, _or_null(_share)), "macro": _each(_each(_share)), "n": _count}
    groups = [one for key in ("by_tables", "by_where") for one in (summary.get(key) or {}).values()]
    found = (_first(one, checks) for one in [summary, *groups])
    return next((told for told in found if told), None)


def _first(value: Mapping[str, Any], checks: Mapping[str, Check]) -> str | None:
    found = (check(key, value[key]) for key, check in checks.items() if key in value)
    return next((told for told in found if told), None)


def _is(wanted: str, test: Callable[[Any], bool]) -> Check:
    return lambda key, value: None if test(value) else f"{key!r} is {value!r:.60}, not {wanted}"


def _number(value: Any, most: float) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= most  # neither NaN nor what no float can hold


def _or_null(check: Check) -> Check:
    return lambda key, value: None if value is None else check(key, value)


def _each(check: Check) -> Check:
    """An object all of whose values pass."""

    def checked(key: str, value: Any) -> str | None:
        return _object(key, value) or _first(value, dict.fromkeys(value, check))

    return checked


def _with(**checks: Check) -> Check:
    """An object in which these keys pass, where they are."""
    return lambda key, value: _object(key, value) or _first(value, checks)


def _holding(**checks: Check) -> Check:
    """An object in which these keys are, and pass."""

    def checked(key: str, value: Any) -> str | None:
        lacking = [name for name in checks if name not in value] if _is_object(value) else []
        return f"{key!r} lacks {lacking[0]!r}" if lacking else _with(**checks)(key, value)

    return checked


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


_text = _is("a text", lambda value: isinstance(value, str) and value != "")
_MOST = 10**15
"""Beyond what any run counts, and far from where sums of floats overflow."""
_amount = _is("a number from 0 up to 1e15", lambda value: _number(value, _MOST))
_share = _is("a number from 0 to 1", lambda value: _number(value, 1))
_count = _is(
    "a whole number from 0 up to 1e15",
    lambda value: isinstance(value, int) and _number(value, _MOST),
)
_texts = _is(
    "a list of texts",
    lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
)
_object = _is("an object", _is_object)
_string = _is("a text", lambda value: isinstance(value, str))
_error = _is(
    "an error with its code",
    lambda value: isinstance(value.get("code") if isinstance(value, Mapping) else value, str),
)
_answer = _or_null(
    _with(
        status=_text,
        sql=_or_null(_string),
        tables=_or_null(_texts),
        agreement=_or_null(_share),
        confidence=_or_null(_share),
    )
)
REQUIRED = ("id", "db_id", "scores")
CHECKS: Mapping[str, Check] = {
    "id": _text,
    "db_id": _text,
    "n_tables": _count,
    "scores": _each(_share),
    "orders": _or_null(_each(_each(_share))),
    "rerank": _or_null(_with(k=_count, votes=_count, valid=_count)),
    "prediction": _answer,
    "told": _answer,
    "gold": _or_null(_with(tables=_or_null(_texts))),
    "seconds": _amount,
    "stages": _or_null(_each(_amount)),
    "tokens": _or_null(_each(_count)),
    "error": _or_null(_error),
}
_task = _is("'retrieval' or 'answers'", lambda value: value in ("retrieval", "answers"))
_numbered = _is(
    "an object by whole numbers",
    lambda value: _is_object(value) and all(map(str.isdecimal, value)),
)
_groups = _each(_holding(n=_count))
_config = _with(
    task=_or_null(_task),
    data=_or_null(_with(tables=_count, sources=_count)),
    questions=_or_null(_with(n=_or_null(_count))),
    settings=_or_null(_with(rerank_k=_or_null(_count), context_rows=_or_null(_count))),
)
SUMMARY_CHECKS: Mapping[str, Check] = {
    "task": _or_null(_task),
    "config": _or_null(_config),
    "versions": _or_null(_object),
    "not_run": _holding(reason=_string, command=_string),
    "n": _count,
    "failed": _count,
    "interval": _or_null(_object),
    "by_tables": _or_null(lambda key, value: _numbered(key, value) or _groups(key, value)),
    "by_where": _or_null(_groups),
    "seconds": _or_null(_holding(median=_amount, p95=_amount)),
    "tokens": _or_null(_holding(median=_amount)),
}
