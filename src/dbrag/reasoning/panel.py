"""The vote on one question: programs are written and run, and what they agree on wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbrag.reasoning import vote
from dbrag.reasoning.attempt import Attempt, Workshop
from dbrag.reasoning.confidence import confidence
from dbrag.reasoning.jury import Jury
from dbrag.reasoning.prompting import Prompter
from dbrag.reasoning.select import Selection
from dbrag.reasoning.steps import write_program
from dbrag.reasoning.variants import plan_votes

Report = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of the vote.

    Attributes:
        attempts: all of them; ``ran``: those with a result (of a dry run, a program).
        tally: None where nothing ran, and in a dry run.
        confidence: p(right) of the winner, None without a tally.
    """

    attempts: tuple[Attempt, ...]
    ran: tuple[Attempt, ...]
    tally: vote.Tally | None = None
    confidence: float | None = None

    @property
    def winner(self) -> Attempt | None:
        """The best program of the winning result; of a dry run the first one."""
        if self.tally is not None:
            return self.ran[self.tally.winners[0]]
        return self.ran[0] if self.ran else None


@dataclass(frozen=True)
class Panel:
    """Has programs written for one question until the vote is decided."""

    shop: Workshop
    prompt: Prompter
    jury: Jury
    report: Report

    def verdict(self, selection: Selection, votes: int) -> Verdict:
        """Write at most ``votes`` programs on the selected tables, and count."""
        attempts: list[Attempt] = []
        ballots: list[vote.Ballot] = []
        variants = plan_votes(selection, votes, self.shop.settings.vote_temperature)
        for number, variant in enumerate(variants, start=1):
            if attempts and not self.shop.budget.allows():
                break
            attempt = write_program(
                self.shop,
                self.prompt(variant.tables),
                variant.tables,
                temperature=variant.temperature,
                seed=variant.seed,
                widen=self.prompt,
            )
            attempts.append(attempt)
            event: dict[str, Any] = {"stage": "vote", "cast": number}
            if attempt.execution is not None:
                ballots.append(self.jury.ballot(attempt))
                event["likelihood"] = round(ballots[-1].likelihood, 4)
            self.report({**event, "valid": len(ballots)})
            if vote.decided(ballots, len(variants) - number):
                break
        return self._counted(attempts, ballots)

    def _counted(self, attempts: list[Attempt], ballots: list[vote.Ballot]) -> Verdict:
        if self.shop.dry_run:
            return Verdict(tuple(attempts), tuple(a for a in attempts if a.program is not None))
        ran = tuple(attempt for attempt in attempts if attempt.execution is not None)
        tally = vote.tally(ballots)
        sure = None
        if tally is not None:
            # all programs of a question read one source
            doubt = self.jury.asked(ran[tally.winners[0]].tables[0]).doubt
            sure = confidence(ballots, tally, doubt)
        return Verdict(tuple(attempts), ran, tally, sure)
