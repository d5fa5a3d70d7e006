"""What changed between two runs, question by question."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbrag.errors import UsageError
from dbrag.evaluation.calibration import told_in
from dbrag.evaluation.datasets import read_text
from dbrag.evaluation.records import Record
from dbrag.evaluation.reports.document import (
    DASH,
    Block,
    Code,
    Document,
    Heading,
    Paragraph,
    plain,
    table,
)
from dbrag.evaluation.reports.paired import Pair, compared, pair_blocks, pair_json
from dbrag.evaluation.reports.runs import ANSWERS, RETRIEVAL, Run, read_runs
from dbrag.evaluation.summary import score
from dbrag.types import SCHEMA_VERSION

WON, LOST, OTHER = "won", "lost", "both wrong, differently"
SAME_WRONG, BOTH_RIGHT = "both wrong, alike", "both right"
CHANGES = (WON, LOST, OTHER, SAME_WRONG, BOTH_RIGHT)
SHOWN = (WON, LOST, OTHER)
"""What is listed; the others are counted."""
LEAD = {ANSWERS: "EX", RETRIEVAL: "CR@5"}
_TOP = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question file tells of a question."""

    question: str
    sql: str | None


@dataclass(frozen=True)
class Change:
    """One question in both runs; ``kind`` is one of ``CHANGES``, seen from the first run."""

    id: str
    kind: str
    a: Record
    b: Record


@dataclass(frozen=True)
class Diff:
    """Two runs: the changes in the order of the first, what only one has, and the comparison."""

    a: Run
    b: Run
    metric: str
    changes: tuple[Change, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    pairs: tuple[Pair, ...]
    asked: Mapping[str, Asked]

    @property
    def counts(self) -> dict[str, int]:
        """Questions of each kind, in the order of ``CHANGES``."""
        found = Counter(change.kind for change in self.changes)
        return {kind: found[kind] for kind in CHANGES}

    def to_dict(self, kinds: Sequence[str] = SHOWN) -> dict[str, Any]:
        """JSON; ``kinds`` are the changes that are listed, all are counted."""
        return {
            "schema": SCHEMA_VERSION,
            "a": self.a.name,
            "b": self.b.name,
            "metric": self.metric,
            "n": len(self.changes),
            "counts": self.counts,
            "questions": [self._json(c) for c in self.changes if c.kind in kinds],
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
            "comparisons": [pair_json(pair) for pair in self.pairs],
        }

    def _json(self, change: Change) -> dict[str, Any]:
        asked = self.asked.get(change.id)
        return {
            "id": change.id,
            "change": change.kind,
            "db_id": change.a["db_id"],
            "n_tables": change.a["n_tables"],
            "question": asked.question if asked else None,
            "gold_sql": asked.sql if asked else None,
            "gold_tables": _gold_tables(change),
            "a": _side(change.a, self.metric),
            "b": _side(change.b, self.metric),
        }


def make_diff(a: str, b: str, metric: str | None = None, questions: Path | None = None) -> Diff:
    """Compare two runs, each a folder or a file of records, ``PATH`` or ``NAME=PATH``.

    Args:
        metric: decides what is right (a score of 1) and what is better; default: EX of
            answers, CR@5 of rankings.
        questions: the question file, to tell the questions and their gold SQL.

    Raises:
        UsageError: a run or the questions cannot be read, the runs share no question, are of
            two tasks, of another question file, or have no such metric.
    """
    left, right = read_runs([a, b])
    for run in (left, right):
        if run.not_run is not None:
            raise UsageError(
                f"{run.name!r} was not run: {run.not_run['reason']}", run.not_run["command"]
            )
    if left.task != right.task:
        raise UsageError(
            f"{left.name!r} is of {left.task}, {right.name!r} of {right.task}",
            f"name two runs of one task: dbrag eval {left.task} --out DIR makes one",
        )
    known_files = left.file[1] and right.file[1]
    if known_files and left.file[1] != right.file[1]:
        raise UsageError(
            f"the two runs are of other questions: {left.file[0]!r} and {right.file[0]!r}",
            "run both on the same question file",
        )
    key = metric or LEAD[left.task]
    ours = {str(record["id"]): record for record in left.records}
    theirs = {str(record["id"]): record for record in right.records}
    found = compared(left, right, [key])
    shared = [id_ for id_ in ours if id_ in theirs]
    return Diff(
        left,
        right,
        key,
        tuple(_change(id_, ours[id_], theirs[id_], key) for id_ in shared),
        tuple(id_ for id_ in ours if id_ not in theirs),
        tuple(id_ for id_ in theirs if id_ not in ours),
        tuple(found),
        _asked(questions, shared, left.file[0]) if questions else {},
    )


def _asked(file: Path, shared: Sequence[str], name: str) -> dict[str, Asked]:
    """The questions of the runs; ``name`` is what their file was called, if that is known."""
    asked = read_asked(file)
    if not asked.keys() & set(shared):
        raise UsageError(
            f"{str(file)!r} holds no question of the runs: theirs are {shared[0]!r} and so on",
            f"--questions {name or 'FILE'}: the file that they asked",
        )
    return asked


def _change(id_: str, a: Record, b: Record, key: str) -> Change:
    x, y = score(a, key), score(b, key)
    if x != y:
        return Change(id_, WON if y > x else LOST, a, b)
    if x == 1:
        return Change(id_, BOTH_RIGHT, a, b)
    return Change(id_, SAME_WRONG if _trace(a) == _trace(b) else OTHER, a, b)


def _trace(record: Record) -> Any:
    """What a wrong answer is known by: its program or ranking, its scores, its error.

    Published records hold no program; then their scores and errors decide.
    """
    prediction = record.get("prediction") or {}
    sql, tables = prediction.get("sql"), prediction.get("tables")
    top = None if sql or not isinstance(tables, list) else tables[:_TOP]
    scores = None if prediction else {k: v for k, v in record["scores"].items() if k != "BestEX"}
    return (" ".join(sql.split()) if sql else None, top, scores, _error(record))


def _error(record: Record) -> str | None:
    error = record.get("error")
    return str(error["code"]) if isinstance(error, Mapping) else error


def _gold_tables(change: Change) -> list[str] | None:
    for record in (change.a, change.b):
        gold = record.get("gold") or {}
        if gold.get("tables"):
            return list(gold["tables"])
    return None


def _side(record: Record, key: str) -> dict[str, Any]:
    prediction = record.get("prediction") or {}
    error = record.get("error")
    tables = prediction.get("tables")
    told = told_in(record)
    return {
        "score": score(record, key),
        "status": told.get("status"),
        "confidence": told.get("confidence"),
        "sql": prediction.get("sql"),
        "tables": tables[:_TOP] if tables and not prediction.get("sql") else tables,
        "error": error.get("message") if isinstance(error, Mapping) else error,
    }


def read_asked(path: Path) -> dict[str, Asked]:
    """Questions and gold SQL of a question file by id, read as ``datasets`` numbers them.

    Raises:
        UsageError: it cannot be read, or is neither a JSON list nor a CSV of questions.
    """
    text = read_text(path)
    try:
        if path.suffix.lower() == ".csv":
            reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
            reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
            found = [Asked(row["question"].strip(), row.get("sql") or None) for row in reader]
        else:
            records = json.loads(text)
            if not isinstance(records, list):
                raise ValueError("no list")
            found = [Asked(one["question"].strip(), one.get("query")) for one in records]
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError, csv.Error) as error:
        raise UsageError(f"{str(path)!r} holds no questions", "check --questions") from error
    return {f"{path.stem}-{i}": one for i, one in enumerate(found)}


# ---- as a document ------------------------------------------------------------------


def diff_document(diff: Diff, kinds: Sequence[str] = SHOWN) -> Document:
    """The changes for people: counts, the paired comparison, then the questions one by one."""
    a, b = plain(diff.a.name), plain(diff.b.name)
    counts = [[kind, f"{n:,}"] for kind, n in diff.counts.items()]
    blocks: list[Block] = [table([f"{diff.metric} of {b} against {a}", "questions"], counts)]
    blocks += pair_blocks(diff.pairs)
    if not all(
        change.a.get("prediction") and change.b.get("prediction") for change in diff.changes
    ):
        blocks.append(Paragraph(_SLIM))
    for name, ids in ((a, diff.only_a), (b, diff.only_b)):
        if ids:
            blocks.append(Paragraph(f"Only in {name}: {len(ids):,} questions, not compared."))
    for kind in kinds:
        found = [change for change in diff.changes if change.kind == kind]
        if found:
            blocks += [Heading(2, f"{kind.capitalize()}: {len(found):,}"), *_listed(diff, found)]
    return Document(f"{b} against {a}", tuple(blocks))


_SLIM = (
    "Some records hold no program or ranking (published ones do not, nor failed questions): "
    "whether two wrong answers are alike is told by their scores and errors there."
)


def _listed(diff: Diff, changes: Sequence[Change]) -> list[Block]:
    """A table of the questions, then the programs of both where they are known."""
    header = ["question", "database", "tables", diff.a.name, diff.b.name]
    rows = [
        [c.id, plain(str(c.a["db_id"])), str(c.a["n_tables"]), *(_told(r) for r in (c.a, c.b))]
        for c in changes
    ]
    blocks: list[Block] = [table([plain(one) for one in header], rows)]
    for change in changes:
        lines = _lines(diff, change)
        if lines:
            asked = diff.asked.get(change.id)
            title = plain(f"{change.id}: {asked.question}" if asked else change.id)
            blocks += [Paragraph(f"**{title}**"), Code(tuple(lines), "text")]
    return blocks


def _told(record: Record) -> str:
    """In a word or two what came of it."""
    error = _error(record)
    if error:
        return f"failed: {plain(error)}"
    told = told_in(record)
    sure = told.get("confidence")
    if sure is not None:
        return f"{told.get('status')}, {100 * sure:.0f}% sure"
    return str(told.get("status") or DASH)


def _lines(diff: Diff, change: Change) -> list[str]:
    """Gold and both programs or rankings, each on a line."""
    asked, found = diff.asked.get(change.id), []
    if asked and asked.sql:
        found.append(f"gold: {' '.join(asked.sql.split())}")
    gold = _gold_tables(change)
    for run, record in ((diff.a, change.a), (diff.b, change.b)):
        side = _side(record, diff.metric)
        if side["sql"]:
            found.append(f"{run.name}: {' '.join(str(side['sql']).split())}")
        elif side["tables"] and gold:
            lost = [one for one in gold if one not in side["tables"]]
            without = f"; without {', '.join(lost)}" if lost else ""
            found.append(f"{run.name}: {', '.join(side['tables'])}{without}")
    return found
