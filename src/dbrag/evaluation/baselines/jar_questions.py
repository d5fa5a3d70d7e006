"""The sub-questions of JAR: the concepts and attributes that a question asks for.

From a file of JSON lines, ``{"id": …, "sub_questions": […]}`` or with "question" (its text)
instead of the id; or from the chat model, one call a question. Without either the question
itself is the only one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dbrag.errors import UsageError
from dbrag.evaluation.baselines.names import FROM_MODEL
from dbrag.evaluation.datasets import read_text
from dbrag.models.base import Prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from dbrag.models.base import ChatModel, Reply

_MOST = 8
_REPLY_TOKENS = 200
_SCHEMA = {
    "type": "object",
    "properties": {
        "concepts": {
            "type": "array",
            "items": {"type": "string", "maxLength": 80},
            "minItems": 1,
            "maxItems": _MOST,
        }
    },
    "required": ["concepts"],
    "additionalProperties": False,
}
_SYSTEM = (
    "A question is asked of a database. List the columns it needs, each as concept:attribute "
    "in the question's own words, as in customer:city or flight:departure time. Name an "
    "attribute alone where it is not clear whose it is. List nothing twice. Reply with JSON "
    'only: {"concepts": ["…", "…"]}.'
)
_EXAMPLE = (
    "Question: Which teachers over 40 give a course with more than 20 students?\n"
    '{"concepts": ["teacher:name", "teacher:age", "course:students"]}'
)


def concept_prompt(question: str) -> Prompt:
    """Asks for the concepts and attributes of a question."""
    return Prompt(_SYSTEM, _EXAMPLE, f"Question: {question}")


def ask_concepts(model: ChatModel, question: str) -> tuple[tuple[str, ...], Reply]:
    """Concepts as the chat model sees them, and its reply; none where it cannot be read.

    Raises:
        ModelError: the model fails.
    """
    reply = model.sample(
        concept_prompt(question), 1, temperature=0.0, max_tokens=_REPLY_TOKENS, schema=_SCHEMA
    )[0]
    start, end = reply.text.find("{"), reply.text.rfind("}")
    try:
        listed = json.loads(reply.text[start : end + 1])["concepts"]
        return _clean(listed), reply
    except (ValueError, RecursionError, KeyError, TypeError):
        return (), reply


def read_sub_questions(path: Path, asked: Mapping[str, str]) -> Callable[[str], tuple[str, ...]]:
    """Sub-questions by the question's text.

    Args:
        asked: texts of the questions to be asked, by id.

    Raises:
        UsageError: the file cannot be read, is not of the form, or lacks a question.
    """
    known: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            text = record["question"] if "question" in record else asked.get(record["id"])
            found = _clean(record["sub_questions"])
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            found, text = (), None
        else:
            if text is None:
                continue  # of a question that is not asked
        if not found or not isinstance(text, str):
            raise UsageError(
                f"line {number} of {path.name!r} is not a question with its sub-questions",
                'expected JSON lines: {"id": "dev-0", "sub_questions": ["concert:year", …]}',
            )
        known[text.strip()] = found
    missing = [id_ for id_, text in asked.items() if text not in known]
    if missing:
        raise UsageError(
            f"{path.name!r} lacks {len(missing):,} of {len(asked):,} questions, "
            f"the first is {missing[0]!r}",
            f"add them, or use --sub-questions {FROM_MODEL}",
        )
    return known.__getitem__


def _clean(listed: Any) -> tuple[str, ...]:
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise TypeError("not a list of texts")
    return tuple(dict.fromkeys(text for one in listed if (text := " ".join(one.split()))))
