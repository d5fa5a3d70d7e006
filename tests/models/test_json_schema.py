from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.models.json_schema import problem_of

PROGRAM = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "items": {"type": "object", "required": ["sql"]},
            "minItems": 1,
            "maxItems": 2,
        },
        "n": {"type": ["integer", "null"]},
        "kind": {"enum": ["a", "b"]},
    },
    "required": ["steps"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"steps": [{"sql": "x"}]}, None),
        ({"steps": [{"sql": "x", "more": 1}], "n": None, "kind": "a"}, None),
        ([], "$ is no object"),
        ({}, "$ has no 'steps'"),
        ({"steps": []}, "$.steps has fewer than 1 items"),
        ({"steps": [{"sql": 1}] * 3}, "$.steps has more than 2 items"),
        ({"steps": [{}]}, "$.steps[0] has no 'sql'"),
        ({"steps": [{"sql": "x"}], "n": True}, "$.n is no integer or null"),
        ({"steps": [{"sql": "x"}], "n": 1.5}, "$.n is no integer or null"),
        ({"steps": [{"sql": "x"}], "kind": "c"}, "$.kind is none of ['a', 'b']"),
        ({"steps": [{"sql": "x"}], "other": 1}, "$ has an unknown 'other'"),
    ],
)
def test_problems(value: Any, problem: str | None) -> None:
    assert problem_of(json.dumps(value), PROGRAM) == problem


def test_no_json() -> None:
    assert (problem_of("SELECT 1", PROGRAM) or "").startswith("no JSON")


def test_json_of_any_depth_is_read_or_refused() -> None:
    assert problem_of("[" * 100_000, PROGRAM) == "JSON nested too deeply"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_anything_follows_the_empty_schema(value: Any) -> None:
    assert problem_of(json.dumps(value), {}) is None
