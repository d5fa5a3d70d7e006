"""A pool of programs under today's code: what runs, what is right, and the signs of it.

Stored replies go through today's parsing, mending, guard and repair rounds in place of the
model's; where these ask for a round that was not written, what there is stands. Signs are
those that the jury takes (``reasoning/jury.py``), which is checked for every program.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from common import SPIDER, Desk, Found, read_pool
from wrong_database import databases

import dbrag
from dbrag.errors import LimitReached
from dbrag.evaluation.datasets import Question, load_questions, with_answers
from dbrag.evaluation.methods import Prediction
from dbrag.evaluation.metrics import EX
from dbrag.models.base import Prompt, Reply
from dbrag.reasoning.attempt import Attempt
from dbrag.reasoning.jury import Jury
from dbrag.reasoning.program_signs import ProgramSigns, signs_of
from dbrag.reasoning.variants import VOTE_TEMPERATURE
from dbrag.reasoning.verify import likelihood
from dbrag.types import TableRef


@dataclass(frozen=True)
class Written:
    """One program: its result, None where it has none, and whether it is right.

    ``first_ran`` and ``first_right`` are those of the first reply, before any repair.
    ``unwritten`` tells that today's code would have asked for a repair that is not stored.
    """

    key: str | None = None
    hollow: bool = True
    signs: ProgramSigns | None = None
    right: bool = False
    first_ran: bool = False
    first_right: bool = False
    unwritten: bool = False


@dataclass(frozen=True)
class Case:
    """One question with the programs of each variant.

    ``other`` is the wrong database that it was put to, where no program is right.
    ``same_tables`` tells whether today's selection is that of the pool, ``right_source``
    whether it is from the database of the question; ``doubt`` is the product's of that.
    """

    id: str
    db_id: str
    other: str | None = None
    same_tables: bool = True
    programs: Mapping[str, Written] = field(default_factory=dict)
    right_source: bool = True
    doubt: float = 0.0

    @property
    def wrong(self) -> bool:
        return self.other is not None


class Recorded:
    """A chat model that gives out stored replies, then no more."""

    name, remote, context_tokens = "stored:replies", False, 1_000_000

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = list(replies)
        self.exhausted = False

    def sample(self, prompt: Prompt, n: int, **options: Any) -> list[Reply]:
        """The next reply.

        Raises:
            LimitReached: all were given out.
        """
        if not self._replies:
            self.exhausted = True
            raise LimitReached("no further reply is stored")
        return [self._replies.pop(0)]


def replies_in(attempt: Mapping[str, Any], program_tokens: int) -> list[Reply]:
    """The replies of all rounds; one as long as may be was cut."""
    return [
        Reply(
            event["reply"],
            logprob=event.get("logprob"),
            finish="length"
            if (event.get("tokens") or {}).get("completion", 0) >= program_tokens
            else "stop",
        )
        for event in attempt.get("events") or ()
    ]


class Replay:
    """Replays the programs of one question.

    Args:
        gold: the question with its answer; None for a wrong database.
    """

    def __init__(self, desk: Desk, found: Found, gold: Question | None) -> None:
        self.desk, self.found, self.gold = desk, found, gold
        self.jury = Jury(
            question=found.question,
            candidates=found.candidates,
            strengths=found.selection.strengths,
            vocabulary=desk.vocabulary,
            catalog=desk.catalog,
        )

    def written(self, stored: Mapping[str, Any]) -> Written:
        tables = refs(self.desk, stored["tables"])
        replies = replies_in(stored, self.desk.db.settings.program_tokens)
        if not replies:
            return Written()
        model = Recorded(replies)
        temperature = VOTE_TEMPERATURE if stored["v"].startswith("S") else 0.0
        done, first_ran = self.attempt(model, tables, temperature)
        right = self.right(done)
        first_right = right
        if done.rounds > 0:
            first_right = self.right(self.attempt(Recorded(replies[:1]), tables)[0])
        seen = {"first_ran": first_ran, "first_right": first_right, "unwritten": model.exhausted}
        if done.execution is None:
            return Written(**seen)
        ballot, signs = self.jury.ballot(done), self.signs(done)
        if ballot.likelihood != likelihood(signs):
            raise SystemExit("the jury takes other signs than this script: bring it up to date")
        return Written(ballot.key, ballot.hollow, signs, right, **seen)

    def attempt(
        self, model: Recorded, tables: tuple[TableRef, ...], temperature: float = 0.0
    ) -> tuple[Attempt, bool]:
        """An attempt with these replies, and whether the first one ran."""
        events: list[Mapping[str, Any]] = []
        shop = self.desk.workshop(tables[0].source, model, events.append)

        def prompt(tables: tuple[TableRef, ...]) -> Prompt:
            return Prompt("", " ".join(map(str, tables)), "")

        done = shop.attempt(prompt(tables), tables, temperature=temperature, widen=prompt)
        return done, events[0]["error"] is None

    def right(self, done: Attempt) -> bool:
        if done.execution is None or self.gold is None or self.gold.answer is None:
            return False
        columns = tuple(column.name for column in done.execution.columns)
        predicted = Prediction("answered", columns, done.execution.rows)
        return EX(predicted, self.gold.answer, self.gold.ordered) == 1.0

    def signs(self, done: Attempt) -> ProgramSigns | None:
        """As in ``Jury.ballot``, which tells their likelihood only."""
        assert done.program is not None
        assert done.execution is not None
        by_ref = self.desk.catalog.by_ref
        return signs_of(
            self.jury.asked(done.tables[0]),
            done.program,
            done.execution,
            [by_ref[ref] for ref in done.program.tables if ref in by_ref],
            logprob=done.logprob,
            repaired=done.rounds,
            mended=len(done.changes),
        )


def refs(desk: Desk, names: Sequence[str]) -> tuple[TableRef, ...]:
    """The tables that a pool names."""
    known = {str(ref): ref for ref in desk.catalog.refs if ref.source in desk.sources}
    missing = [name for name in names if name not in known]
    if missing:
        raise SystemExit(f"the pool names a table {missing[0]!r} that the index does not hold")
    return tuple(known[name] for name in names)


def case(desk: Desk, line: Mapping[str, Any], gold: Question | None) -> Case:
    """One line of a pool, replayed."""
    candidates = desk.candidates(line["q"])
    other = line["other"] if gold is None else None
    if other is not None and desk.refused(candidates):
        return Case(line["id"], line["db"], other)
    found = desk.found(line["q"], candidates)
    replay = Replay(desk, found, gold)
    attempts = {stored["v"]: stored for stored in line["attempts"]}
    selected = {str(ref) for ref in found.selection.tables}
    return Case(
        line["id"],
        line["db"],
        other,
        "A" not in attempts or set(attempts["A"]["tables"]) == selected,
        {name: replay.written(stored) for name, stored in attempts.items()},
        other is None and found.selection.source == line["db"],
        replay.jury.asked(found.selection.tables[0]).doubt,
    )


def merged(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The lines of several pools, those on one question (and database) as one.

    Raises:
        SystemExit: a pool is missing or empty.
    """
    lines: dict[Any, dict[str, Any]] = {}
    for path in paths:
        found = read_pool(path)
        if not found:
            raise SystemExit(f"no pool {str(path)!r}: python bench/program_pool.py writes one")
        for line in found:
            known = lines.setdefault((line["id"], line.get("other")), {**line, "attempts": []})
            known["attempts"] += line["attempts"]
    return list(lines.values())


def replayed(index: Path, paths: Sequence[Path], **models: Any) -> list[Case]:
    """The cases of pools of all databases; questions without a gold answer are left out."""
    lines = merged(paths)
    with dbrag.connect(SPIDER / "database", index=index, **models) as db:
        desk = Desk(db)
        names = {line["id"].rpartition("-")[0] for line in lines}
        known = {
            question.id: question
            for name in sorted(names)
            for question in load_questions(SPIDER / f"{name}.json", desk.catalog)
        }
        for line in lines:
            if line["id"] not in known or known[line["id"]].question != line["q"]:
                raise SystemExit(f"the question {line['id']!r} of the pool is not that of the pack")
        questions, failures = with_answers([known[line["id"]] for line in lines], db.run_sql)
        for name, reason in failures.items():
            print(f"left out: the gold SQL of {name} fails: {reason}", file=sys.stderr)
        cases = []
        for line, question in zip(lines, questions, strict=True):
            if question.answer is not None:
                cases.append(case(desk, line, question))
                progress(len(cases), len(lines))
    return cases


def replayed_wrong(paths: Sequence[Path], alone: Path | None, **models: Any) -> list[Case]:
    """The cases of pools of databases opened alone.

    Args:
        alone: keeps their indexes; None for a temporary folder.
    """
    lines = sorted(merged(paths), key=lambda line: line["other"])
    files = databases(SPIDER / "database")
    cases: list[Case] = []
    with tempfile.TemporaryDirectory(prefix="dbrag-alone-") as folder:
        for name, group in groupby(lines, key=lambda line: line["other"]):
            index = (alone or Path(folder)) / name
            with dbrag.connect(files[name], index=index, **models) as db:
                desk = Desk(db)
                for line in group:
                    cases.append(case(desk, line, None))
                    progress(len(cases), len(lines))
                models = {**models, "embedder": db.embedder()}
    return cases


def progress(done: int, of: int) -> None:
    if done % 25 == 0 or done == of:
        print(f"{done} of {of} questions replayed", file=sys.stderr)
