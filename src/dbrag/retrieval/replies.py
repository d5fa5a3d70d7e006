"""What a reranking reply says: the numbers of tables, wherever they stand in it."""

from __future__ import annotations

import json
import re
from typing import Any

_LIST = re.compile(r"\[([^\[\]]*)(\]?)")
_NUMBER = re.compile(r"(?<![\w.-])\d{1,9}(?![\w.])")


def reply_schema(m: int, k: int, *, strict: bool) -> dict[str, Any]:
    """``{"tables": [3, 1, …]}``.

    Args:
        strict: exactly ``m`` of the numbers 1 to ``k``: for a model that writes under a
            grammar. Another one would only be made to answer again for a number too many.
    """
    numbers: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
    if strict:
        numbers["items"] = {"type": "integer", "enum": list(range(1, k + 1))}
        numbers |= {"minItems": m, "maxItems": m}
    return {
        "type": "object",
        "properties": {"tables": numbers},
        "required": ["tables"],
        "additionalProperties": False,
    }


def read_order(text: str, k: int, *, cut: bool = False) -> tuple[int, ...]:
    """The positions (numbers less 1) that a reply names, best first; empty where it names none.

    JSON as asked for, a bare list, a list inside of prose or a fence, and a list that was
    cut off are all read. Numbers that repeat or are beyond ``k`` are dropped.

    Args:
        cut: the reply was cut: a number at its very end may lack digits.
    """
    numbers = _from_json(text)
    if numbers is None:
        numbers = _from_text(text, cut)
    known = [number - 1 for number in numbers if 1 <= number <= k]
    return tuple(dict.fromkeys(known))


def _from_json(text: str) -> list[int] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        named = value.get("tables")
        value = named if isinstance(named, list) else next(iter(lists), None)
    if not isinstance(value, list):
        return None
    return [number for item in value if (number := _number(item)) is not None]


def _number(item: Any) -> int | None:
    """``3``, ``3.0``, ``"3"``, ``"[3]"``, ``{"id": 3}``."""
    if isinstance(item, dict):
        item = next((item[key] for key in ("id", "number", "table") if key in item), None)
    if isinstance(item, bool) or item is None:
        return None
    if isinstance(item, int):
        return item
    if isinstance(item, float):
        return int(item) if item.is_integer() and abs(item) < 1e9 else None
    found = _NUMBER.findall(item) if isinstance(item, str) else []
    return int(found[0]) if len(found) == 1 else None


def _from_text(text: str, cut: bool) -> list[int]:
    """The first list that holds a number; else single numbers in brackets, in order."""
    single: list[int] = []
    for found in _LIST.finditer(text):
        inner, closed = found.groups()
        numbers = [int(number) for number in _NUMBER.findall(inner)]
        if cut and not closed and inner[-1:].isdigit():
            numbers = numbers[:-1]
        if len(numbers) > 1 or (numbers and not closed):
            return numbers
        single += numbers
    return single
