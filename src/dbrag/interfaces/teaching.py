"""Keeping, listing and forgetting learned pairs: what ``dbrag learn`` and the API share."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag.database import Database
    from dbrag.execution.guard import Admitted
    from dbrag.reasoning.learned import Learned
    from dbrag.reasoning.learned_file import Pair
    from dbrag.types import Execution


class NotLearned(UsageError):
    """The question is not among the learned ones."""


@dataclass(frozen=True, slots=True)
class Taught:
    """A pair that was kept, what its statement gave, and the pair it replaced."""

    pair: Pair
    admitted: Admitted
    result: Execution
    old: Pair | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``dbrag learn``, without the file."""
        return {
            "question": self.pair.question,
            "source": self.pair.source,
            "sql": self.admitted.sql,
            "tables": [table.to_dict() for table in self.admitted.tables],
            "row_count": len(self.result.rows),
            "replaced": self.old is not None,
        }


def opened(database: Database) -> tuple[Learned, Path]:
    """The learned pairs and their file.

    Raises:
        UsageError: learning is off, or the file cannot be read.
    """
    from dbrag.reasoning.learned import Learned

    learned = Learned.of(database.settings, database.index_dir, database.embedder)
    if learned.unreadable is not None:
        raise learned.unreadable
    if learned.path is None:
        raise UsageError('learned is "off"', "name a file: learned in dbrag.toml, or DBRAG_LEARNED")
    return learned, learned.path


def teach(
    database: Database, path: Path, question: str, statement: str, source: str | None = None
) -> Taught:
    """Run a statement once, read-only, and keep it as the answer to a question.

    Args:
        source: the source, where the caller knows it.

    Raises:
        DbragError: the guard refuses it, it does not run, or the file cannot be written.
    """
    from dbrag import scope
    from dbrag.reasoning.learned_file import Pair, write_pair

    question = " ".join(scope.checked_question(question).split())
    among = database.sources if source is None else (database.source(source),)
    place, admitted = scope.admit_anywhere(statement, among)
    result = database.run_sql(place.name, statement)
    pair = Pair(question, statement, place.name)
    return Taught(pair, admitted, result, write_pair(path, pair))


def listed(database: Database, learned: Learned) -> list[dict[str, Any]]:
    """All pairs as JSON, each with the tables it reads or with the reason it is not used."""
    from dbrag.reasoning.learned import admit

    sources = {source.name: source for source in database.sources}
    catalog = database.opened_index().catalog
    pairs = []
    for pair in learned.pairs:
        entry: dict[str, Any] = {
            "question": pair.question,
            "source": pair.source or None,
            "sql": pair.sql,
            "line": pair.line,
            "tables": [],
            "problem": None,
        }
        try:
            solved = admit(pair, sources, catalog)
            entry["source"] = solved.source
            entry["tables"] = [table.to_dict() for table in solved.admitted.tables]
        except DbragError as error:
            entry["problem"] = error.message
        pairs.append(entry)
    return pairs


def forget(learned: Learned, path: Path, question: str) -> int:
    """Take the pairs of a question out of the file; how many there were.

    Raises:
        NotLearned: there is none.
        UsageError: the file cannot be written.
    """
    from dbrag.reasoning.learned_file import fold, remove_pairs

    gone = [pair for pair in learned.pairs if fold(pair.question) == fold(question)]
    if not gone:
        questions = [pair.question for pair in learned.pairs]
        near = difflib.get_close_matches(question, questions, n=1)
        raise NotLearned(
            f"the question {question[:200]!r} is not among the learned ones",
            f'dbrag learn --forget "{near[0]}"' if near else "dbrag learn --list",
        )
    remove_pairs(path, gone)
    return len(gone)
