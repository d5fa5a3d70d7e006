"""The questions of a benchmark pack as texts: for what needs no gold and no catalog."""

from __future__ import annotations

import json
from pathlib import Path

from dbrag.errors import UsageError
from dbrag.evaluation.datasets import Question, read_text


def read_asked(file: Path) -> list[Question]:
    """The questions of a JSON list of ``{db_id, question, …}``; gold tables are left empty.

    Their ids are those of ``datasets.load_questions``.

    Raises:
        UsageError: it cannot be read, or is no such list.
    """
    try:
        records = json.loads(read_text(file))
        if not isinstance(records, list) or not records:
            raise ValueError("no list")
        return [
            Question(f"{file.stem}-{i}", one["db_id"], one["question"].strip(), ())
            for i, one in enumerate(records)
        ]
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"{str(file)!r} is not a JSON list of {{db_id, question}}", "check --questions"
        ) from error
