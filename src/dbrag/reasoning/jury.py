"""The jury: what the programs of one question are worth, and which result wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbrag.catalog.catalog import Catalog
from dbrag.reasoning import vote
from dbrag.reasoning.attempt import Attempt
from dbrag.reasoning.program_signs import Asked, ProgramSigns, asked, signs_of
from dbrag.reasoning.source_doubt import source_doubt
from dbrag.reasoning.verify import likelihood
from dbrag.retrieval.coverage import SourceVocabulary
from dbrag.types import Candidate, TableRef


class Jury:
    """Turns attempts into ballots.

    Args:
        candidates: the ranked tables, with the values that the question mentions.
        strengths: how well each home, a source or a part of one, fits the question
            (``select.source_strengths``).
        vocabulary: knows where a table belongs, and the words there.
    """

    def __init__(
        self,
        question: str,
        candidates: Sequence[Candidate],
        strengths: Mapping[str, float],
        vocabulary: SourceVocabulary,
        catalog: Catalog,
    ) -> None:
        self._question = question
        self._candidates = candidates
        self._catalog = catalog
        self._strengths = strengths
        self._vocabulary = vocabulary
        self._asked: dict[str, Asked] = {}

    def signs(self, attempt: Attempt) -> ProgramSigns | None:
        """The signs of a program that ran."""
        program, execution = attempt.program, attempt.execution
        assert program is not None  # noqa: S101 - callers pass executed attempts only
        assert execution is not None  # noqa: S101
        by_ref = self._catalog.by_ref
        read = [by_ref[ref] for ref in program.tables if ref in by_ref]
        return signs_of(
            self.asked(attempt.tables[0]),
            program,
            execution,
            read,
            logprob=attempt.logprob,
            repaired=attempt.rounds,
            mended=len(attempt.changes),
        )

    def ballot(self, attempt: Attempt) -> vote.Ballot:
        """The vote of a program that ran."""
        assert attempt.execution is not None  # noqa: S101 - callers pass executed attempts only
        key, hollow = vote.result_key(attempt.execution), vote.is_hollow(attempt.execution)
        return vote.Ballot(key, hollow, likelihood(self.signs(attempt)))

    def asked(self, ref: TableRef) -> Asked:
        """What the question says of the home of this table."""
        home = self._home(ref)
        if home not in self._asked:
            own = [c for c in self._candidates if self._home(c.table) == home]
            self._asked[home] = asked(
                self._question,
                self._vocabulary.words(home),
                [match for candidate in own for match in candidate.matches],
                similarity=max((c.similarity for c in own), default=0.0),
                doubt=source_doubt(self._strengths, home),
            )
        return self._asked[home]

    def _home(self, ref: TableRef) -> str:
        return self._vocabulary.parts.get(ref, ref.source)
