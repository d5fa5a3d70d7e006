"""Does a JSON text follow a schema? The subset of JSON Schema that our prompts use.

Known: ``type``, ``properties``, ``required``, ``additionalProperties: false``,
``items``, ``enum``, ``minItems``, ``maxItems``. Everything else is not checked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def problem_of(text: str, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with ``text``, in a few words; None when it follows ``schema``."""
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"no JSON ({error})"
    except RecursionError:
        return "JSON nested too deeply"
    return _problem(value, schema, "$")


def _problem(value: Any, schema: Mapping[str, Any], where: str) -> str | None:
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{where} is no {' or '.join(kinds)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is none of {schema['enum']!r}"
    if isinstance(value, dict):
        return _problem_of_object(value, schema, where)
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return f"{where} has fewer than {schema['minItems']} items"
        if len(value) > schema.get("maxItems", len(value)):
            return f"{where} has more than {schema['maxItems']} items"
        items = schema.get("items") or {}
        found = (_problem(item, items, f"{where}[{i}]") for i, item in enumerate(value))
        return next((problem for problem in found if problem), None)
    return None


def _problem_of_object(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> str | None:
    properties = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in value:
            return f"{where} has no {name!r}"
    for name, item in value.items():
        if name in properties:
            problem = _problem(item, properties[name], f"{where}.{name}")
            if problem:
                return problem
        elif schema.get("additionalProperties") is False:
            return f"{where} has an unknown {name!r}"
    return None


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, (object,)))
