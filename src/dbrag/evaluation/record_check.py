"""What a line of ``records.jsonl`` and a ``summary.json`` must look like, so that a wrong one is
told by its place.

Published records are exchanged, and edited by hand: every key that a summary or a report reads
is checked, others may hold anything.
"""

from __future__ import annotations

import math
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
    return _first(summary, SUMMARY_CHECKS)


def _first(value: Mapping[str, Any], checks: Mapping[str, Check]) -> str | None:
    found = (check(key, value[key]) for key, check in checks.items() if key in value)
    return next((told for told in found if told), None)


def _is(wanted: str, test: Callable[[Any], bool]) -> Check:
    return lambda key, value: None if test(value) else f"{key!r} is {value!r:.60}, not {wanted}"


def _finite(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value)


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


_text = _is("a text", lambda value: isinstance(value, str) and value != "")
_amount = _is("a number from 0 up", lambda value: _finite(value) and value >= 0)
_share = _is("a number from 0 to 1", lambda value: _finite(value) and 0 <= value <= 1)
_count = _is(
    "a whole number from 0 up",
    lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
)
_list = _is("a list", lambda value: isinstance(value, list))
_object = _is("an object", lambda value: isinstance(value, Mapping))
_error = _is(
    "an error with its code",
    lambda value: isinstance(value.get("code") if isinstance(value, Mapping) else value, str),
)
_answer = _or_null(
    _with(
        status=_text,
        sql=_or_null(_is("a text", lambda value: isinstance(value, str))),
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
    "gold": _or_null(_with(tables=_or_null(_list))),
    "seconds": _amount,
    "stages": _or_null(_each(_amount)),
    "tokens": _or_null(_each(_count)),
    "error": _or_null(_error),
}
_task = _is("'retrieval' or 'answers'", lambda value: value in ("retrieval", "answers"))
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
    "not_run": _object,
}
