"""Functions that build huge values from short statements: ``repeat('x', 3000000000)``.

DuckDB's memory limit does not count a single value, and a constant one is computed while
the statement is bound, where nothing can cancel it (seen: 5.8 GB and 90 s for the above).
"""

from __future__ import annotations

import math
import re
from typing import Any

from dbrag.errors import Refused

MAX_VALUE = 2**20
"""Bytes that constants may make of one value; DuckDB holds up to 2,048 of them at a time."""

_GROWING = frozenset(
    {
        "array_resize",
        "bitstring",
        "generate_series",
        "left_pad",
        "list_resize",
        "lpad",
        "range",
        "repeat",
        "rpad",
    }
)
_ELEMENT_BYTES = {"generate_series": 8, "range": 8, "list_resize": 8, "array_resize": 8}
_SERIES = frozenset({"generate_series", "range"})
_FORMATTING = frozenset({"format", "printf"})
_WIDTH = re.compile(r"\d{6,}")


def check_growth(tree: Any) -> None:
    """Refuse a statement whose constants make a value of more than 1 MB.

    Args:
        tree: of DuckDB's parser; functions in a FROM give rows, not values.

    Raises:
        Refused: it does.
    """
    stack: list[tuple[Any, float]] = [(tree, 1.0)]
    while stack:
        node, size = stack.pop()
        if isinstance(node, list):
            stack += [(part, size) for part in node]
        elif isinstance(node, dict):
            if node.get("type") == "TABLE_FUNCTION":
                stack.append((node["function"].get("arguments", []), size))
                continue
            if node.get("class") == "FUNCTION":
                size *= _factor(node)
                if size > MAX_VALUE:
                    name = node.get("function_name")
                    raise Refused(
                        f"{name}(…) would build a value of more than {MAX_VALUE // 2**20} MB",
                        "build less; write numbers as they are, not computed",
                    )
            stack += [(part, size) for part in node.values()]


def _factor(call: dict[str, Any]) -> float:
    """How many times larger than its arguments the value of a call may be."""
    name = str(call.get("function_name", "")).casefold()
    arguments = [one.get("expression", one) for one in call.get("arguments", ())]
    if name in _FORMATTING:
        texts = [str(a["literal"].get("text", "")) for a in arguments if "literal" in a]
        return math.inf if any(map(_WIDTH.search, texts[:1])) else 1.0
    if name not in _GROWING:
        return 1.0
    numbers = [_number(argument) for argument in arguments]
    if name in _SERIES and len(numbers) > 1 and math.isfinite(numbers[0]):
        numbers = [abs(numbers[1] - numbers[0])]  # from a start to a stop
    return max(1.0, *numbers, 0.0) * _ELEMENT_BYTES.get(name, 1)


def _number(node: dict[str, Any]) -> float:
    """The constant, infinite where it is computed; 0 for what depends on data, or is text."""
    while node.get("class") == "CAST":
        node = node["child"]
    literal = node.get("literal")
    if literal is not None:
        try:
            return 0.0 if literal.get("kind") == "STRING" else float(literal.get("text", 0))
        except ValueError:
            return 0.0
    return math.inf if _is_computed(node) else 0.0


def _is_computed(node: dict[str, Any]) -> bool:
    """True when a number is calculated from numbers alone: ``1000 * 1000 * 1000``."""
    calculates = False
    stack: list[Any] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack += part
        elif isinstance(part, dict):
            if part.get("class") in ("COLUMN_REF", "SUBQUERY", "WINDOW", "LAMBDA_REF"):
                return False
            if part.get("class") == "FUNCTION":
                name = str(part.get("function_name", ""))
                calculates = calculates or name in ("*", "**", "^", "<<", "pow", "power")
            stack += part.values()
    return calculates
