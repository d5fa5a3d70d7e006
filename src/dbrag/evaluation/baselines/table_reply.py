"""Answers that a chat model writes as a table: their form, how they are read, their vote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dbrag.errors import InvalidReply
from dbrag.models.base import Reply

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "columns": {"type": "array", "items": {"type": "string"}},
        "rows": {
            "type": "array",
            "items": {
                "type": "array",
                "items": {"type": ["string", "number", "boolean", "null"]},
            },
        },
    },
    "required": ["columns", "rows"],
    "additionalProperties": False,
}

Columns = tuple[str, ...]
Rows = tuple[tuple[Any, ...], ...]
Answered = tuple[Columns, Rows]


def voted(replies: Sequence[Reply], votes: int) -> tuple[Answered, float, int]:
    """The answer that was given most often, the first of several; its share of the votes; and
    how many replies were tables. Empty tables win only where there are no others.

    Raises:
        InvalidReply: none is a table.
    """
    answers: list[Answered] = []
    for reply in replies:
        try:
            answers.append(read_answer(reply))
        except InvalidReply as error:
            problem = error
    if not answers:
        raise problem
    # as text: 1 and true are one key of a dictionary, and so are 1 and 1.0
    keys = [json.dumps(answer, ensure_ascii=False) for answer in answers]
    full = [key for key, (_, rows) in zip(keys, answers, strict=True) if rows]
    key, count = Counter(full or keys).most_common(1)[0]
    return answers[keys.index(key)], count / votes, len(answers)


def read_answer(reply: Reply) -> Answered:
    """The table that a reply is: names ``[n_columns]`` and rows ``[n_rows][n_columns]``.

    Nothing but the JSON that was asked for is taken: no fence, no prose, no other key.

    Raises:
        InvalidReply: it is something else, or was cut.
    """
    if reply.finish == "length":
        raise InvalidReply("the answer was cut: it is longer than a reply may be")
    try:
        value = json.loads(reply.text, parse_constant=_no_number, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        shown = " ".join(reply.text.split())[:120]
        raise InvalidReply(f"the model wrote no table but {shown!r}") from error
    if not isinstance(value, dict) or value.keys() != {"columns", "rows"}:
        raise InvalidReply("the answer is no object of columns and rows")
    columns, rows = value["columns"], value["rows"]
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise InvalidReply("the columns of the answer are no list of names")
    if not columns:
        raise InvalidReply("the answer has no column")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise InvalidReply("the rows of the answer are no list of lists")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(columns):
            raise InvalidReply(
                f"row {number} of the answer has {len(row)} values for {len(columns)} columns"
            )
        if any(isinstance(cell, list | dict) for cell in row):
            raise InvalidReply(f"row {number} of the answer holds more than plain values")
    return tuple(columns), tuple(tuple(row) for row in rows)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found
