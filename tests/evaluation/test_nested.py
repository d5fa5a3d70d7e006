"""Files and SQL nested deeper than Python can follow: an error that names the file, no crash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import UsageError
from dbrag.evaluation import pack
from dbrag.evaluation.baselines.jar_questions import ask_concepts, read_sub_questions
from dbrag.evaluation.datasets import is_ordered, load_questions, tables_in
from dbrag.evaluation.records import read_json, read_records
from dbrag.evaluation.reports import diff
from dbrag.models.testing import ScriptedModel

from .conftest import make_catalog

DEEP = "[" * 100_000
READERS: dict[str, Callable[[Path], Any]] = {
    "questions": lambda file: load_questions(file, make_catalog()),
    "questions of a pack": pack.read_asked,
    "questions of a comparison": diff.read_asked,
    "records": read_records,
    "summary": read_json,
    "sub-questions": lambda file: read_sub_questions(file, {}),
}


@pytest.mark.parametrize("kind", READERS)
def test_json_nested_without_end(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "deep.json"
    file.write_text(f"{DEEP}\n{DEEP}\n")
    with pytest.raises(UsageError, match=r"deep\.json"):
        READERS[kind](file)


def test_a_reply_nested_without_end_names_no_concept() -> None:
    found, _ = ask_concepts(ScriptedModel(['{"concepts": ' + DEEP + "}"]), "Who?")
    assert found == ()


def test_gold_sql_nested_without_end() -> None:
    sql = "SELECT " + "(" * 5000 + "1" + ")" * 5000 + " FROM a ORDER BY 1"
    assert not is_ordered(sql)
    with pytest.raises(UsageError, match="does not parse"):
        tables_in(sql)
