"""The reasoner: select tables, have programs written and run, vote, give evidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbrag.errors import (
    DbragError,
    ModelError,
    Refused,
    Unanswerable,
    UsageError,
)
from dbrag.models.base import ChatModel
from dbrag.reasoning import evidence
from dbrag.reasoning.allowed import EVERYTHING, Allowed
from dbrag.reasoning.answerable import cannot, check_evidence
from dbrag.reasoning.attempt import Attempt, Workshop
from dbrag.reasoning.budget import Usage
from dbrag.reasoning.confidence import doubts_of, with_noise
from dbrag.reasoning.explanation import evidence_of
from dbrag.reasoning.jury import Jury
from dbrag.reasoning.learned import Learned, run_solved
from dbrag.reasoning.losses import losses_of
from dbrag.reasoning.panel import Panel, Verdict
from dbrag.reasoning.prompting import Prompter, RowsOf
from dbrag.reasoning.readings import readings_of
from dbrag.reasoning.select import Selection, select
from dbrag.reasoning.spellings import noise_of
from dbrag.reasoning.token_budget import prompt_budget
from dbrag.retrieval.coverage import SourceVocabulary
from dbrag.retrieval.rerank import Reranked
from dbrag.settings import Settings
from dbrag.sources.base import Source
from dbrag.types import Answer, AnswerWarning, Candidate, Reading

if TYPE_CHECKING:
    from dbrag.index.store import Index


@dataclass
class Outcome:
    """What is known so far while one question is worked on."""

    requested: int
    warnings: list[AnswerWarning]
    usage: Usage = field(default_factory=Usage)
    rerank_s: float = 0.0
    model: str | None = None
    valid: int = 0
    winner: Attempt | None = None
    agreement: float | None = None
    confidence: float | None = None
    doubts: str = ""
    error: DbragError | None = None
    readings: tuple[Reading, ...] = ()


class Reasoner:
    """Answers questions over an open index.

    Args:
        sources: open sources by name.
        vocabulary: the words of each source's names, for telling sources apart.
        model: gives the chat model; called only when a program has to be written.
        listener: told each entry of the trace as it arises.
        learned: verified questions with their programs.
        allowed: the tables that the user allows.
        rows: gives the row context of tables, where the settings want it in program prompts.
    """

    def __init__(
        self,
        index: Index,
        sources: Mapping[str, Source],
        model: Callable[[], ChatModel],
        settings: Settings,
        vocabulary: SourceVocabulary,
        listener: Callable[[Mapping[str, Any]], None] | None = None,
        learned: Learned | None = None,
        allowed: Allowed = EVERYTHING,
        rows: RowsOf | None = None,
    ) -> None:
        self.index = index
        self.joins = allowed.joins(index.joins)
        self.vocabulary = vocabulary
        self.sources = sources
        self.settings = settings
        self._model = model
        self._listener = listener
        self._learned = learned
        self._allowed = allowed
        self._rows = rows if settings.program_rows == "context" else None
        self._trace: list[Mapping[str, Any]] = []

    def answer(
        self,
        question: str,
        candidates: Sequence[Candidate],
        *,
        rerank: Callable[[], Reranked | None] | None = None,
        votes: int,
        dry_run: bool = False,
        max_rows: int | None = None,
        retrieve_s: float = 0.0,
        warnings: Sequence[AnswerWarning] = (),
    ) -> Answer:
        """Turn ranked candidates into an answer; see ``Database.ask``.

        Args:
            rerank: lets the chat model order the candidates anew, if it shall; called only
                where the user chose no tables and no learned program answers.

        Raises:
            UsageError: the tables named by the user lie in several sources.
            ModelError: the model cannot be loaded or fails.
        """
        started = time.perf_counter()
        self._trace = []
        self._tell({"stage": "retrieve", "candidates": _brief(candidates), "seconds": retrieve_s})
        outcome = Outcome(requested=1 if dry_run else votes, warnings=list(warnings))
        try:
            self._work(question, candidates, rerank, dry_run, outcome)
        except DbragError as failure:
            # Usage and model errors are the caller's to see; a program that the guard
            # refuses is the model's fault, and becomes a failed answer.
            if isinstance(failure, UsageError | ModelError) and not isinstance(failure, Refused):
                raise
            outcome.error = failure
        winner, error = outcome.winner, outcome.error
        outcome.warnings += losses_of(winner, self.sources, self.index.catalog, self.settings)
        self._heed_noise(outcome)
        return Answer(
            question=question,
            status=_status(winner, error),
            text=_text(winner, error, outcome, dry_run),
            execution=winner.execution if winner else None,
            program=winner.program if winner else None,
            tables=winner.program.tables if winner and winner.program else (),
            agreement=outcome.agreement,
            confidence=outcome.confidence,
            votes_requested=outcome.requested,
            votes_valid=outcome.valid,
            warnings=tuple(outcome.warnings),
            error=error.to_dict() if error else None,
            exit_code=_exit_code(error),
            seconds=_seconds(outcome, retrieve_s, time.perf_counter() - started),
            tokens=outcome.usage.tokens(),
            model=outcome.model,
            max_rows=max_rows,
            trace=tuple(self._trace),
            evidence=evidence_of(winner.program if winner else None, self.index.catalog.by_ref),
            readings=outcome.readings,
        )

    def _work(
        self,
        question: str,
        candidates: Sequence[Candidate],
        rerank: Callable[[], Reranked | None] | None,
        dry_run: bool,
        outcome: Outcome,
    ) -> None:
        """Select, write, run and vote; what is known goes into ``outcome`` as it arises."""
        if self._from_learned(question, candidates, dry_run, outcome):
            return
        if not self._allowed.only:
            encoder = self.index.manifest.encoder
            check_evidence(candidates, encoder.sha256 if encoder else "")
            candidates = self._reranked(candidates, rerank, outcome)
        selection = select(
            question,
            candidates,
            self.index.catalog,
            self.joins,
            self.vocabulary.coverage(question),
            parts=self.vocabulary.parts,
            only=self._allowed.only,
            settings=self.settings,
        )
        self._tell(_selection_event(selection))
        model = self._model()
        outcome.model = model.name
        self._warn_of_remote(model.name, model.remote, outcome)
        shop = self._workshop(selection, model, outcome.usage, dry_run)
        solved = self._similar(question, shop.source, outcome)
        if solved and model.remote:
            outcome.warnings.append(evidence.learned_sent_warning(model.name))
        prompt = self._prompter(question, candidates, shop.source.dialect, solved, model)
        jury = Jury(question, candidates, selection.strengths, self.vocabulary, self.index.catalog)
        verdict = Panel(shop, prompt, jury, self._tell).verdict(selection, outcome.requested)
        outcome.valid = len(verdict.ran)
        outcome.warnings += shop.warnings(verdict.winner)
        if verdict.winner is None:
            strange = jury.asked(selection.tables[0]).strange
            errors = [attempt.error for attempt in verdict.attempts]
            raise cannot(shop.failure(verdict.attempts), errors, selection.source, strange)
        self._take(verdict, verdict.winner, jury, outcome)
        outcome.warnings += prompt.warnings(verdict.winner.tables)
        outcome.warnings += evidence.warnings_of(
            self.index.catalog,
            self.index.joins,
            selection,
            verdict.winner,
            split=verdict.tally is not None and verdict.tally.split,
        )

    def _prompter(
        self,
        question: str,
        candidates: Sequence[Candidate],
        dialect: str,
        solved: Sequence[tuple[str, str]],
        model: ChatModel,
    ) -> Prompter:
        """With the row context of the settings, nothing else in it is read off the rows."""
        kind = self.settings.row_context if self._rows else "relevant"
        return Prompter(
            question,
            candidates if kind == "relevant" else (),
            self.index.catalog.by_ref,
            self.joins,
            dialect=dialect,
            solved=solved,
            budget_tokens=prompt_budget(self.settings, model),
            report=self._tell,
            rows=self._rows,
            formats=kind != "none",
            hint=self.settings.naming_hint == "on",
        )

    def _take(self, verdict: Verdict, winner: Attempt, jury: Jury, outcome: Outcome) -> None:
        """The winner, how sure it is, and what else as many programs say."""
        outcome.winner, tally = winner, verdict.tally
        if tally is None or verdict.confidence is None:
            return
        outcome.confidence = verdict.confidence
        outcome.agreement = tally.agreement if outcome.requested > 1 else None
        outcome.readings = readings_of(tally, verdict.ran, self.index.catalog.by_ref)
        outcome.doubts = doubts_of(verdict.confidence, tally, jury.asked(winner.tables[0]))

    def _heed_noise(self, outcome: Outcome) -> None:
        """Warn of noise, and be no surer than it allows; a learned program is the user's word."""
        noise = noise_of(outcome.winner, self.sources, self.index, self.settings)
        outcome.warnings += noise
        # Where texts are typed in several ways, rows are entered twice, too, and the like.
        noisy = noise or any(one.code == "matched_spellings" for one in outcome.warnings)
        if noisy and outcome.confidence is not None and outcome.confidence < 1.0:
            outcome.confidence, outcome.doubts = with_noise(outcome.confidence, outcome.doubts)

    def _from_learned(
        self,
        question: str,
        candidates: Sequence[Candidate],
        dry_run: bool,
        outcome: Outcome,
    ) -> bool:
        """Whether the program learned for this very question answers it; else why is told."""
        if self._learned is None:
            return False
        outcome.warnings += self._learned.file_warnings()
        catalog = self.index.catalog
        found = self._learned.exact(question, self.sources, catalog, outcome.warnings)
        # Of several sources the one that the question fits best.
        places = {c.table.source: -place for place, c in enumerate(reversed(candidates))}
        for solved in sorted(found, key=lambda one: places.get(one.source, 1)):
            unused = [ref for ref in solved.admitted.tables if ref not in self._allowed]
            try:
                if unused:
                    raise UsageError(f"{unused[0]} is not among the tables to use")
                source = self.sources[solved.source]
                attempt = run_solved(solved, source, self.settings, dry_run=dry_run)
            except DbragError as error:
                outcome.warnings.append(self._learned.broken(solved.pair, error))
                continue
            outcome.winner, outcome.requested, outcome.valid = attempt, 1, 1
            outcome.confidence = None if dry_run else 1.0  # the user's own word
            outcome.usage.execute_s += attempt.execution.seconds if attempt.execution else 0.0
            self._tell(solved.event())
            selection = Selection(solved.source, solved.admitted.tables, (), ())
            outcome.warnings += evidence.warnings_of(
                catalog, self.index.joins, selection, attempt, False
            )
            outcome.warnings.append(self._learned.used(solved))
            return True
        return False

    def _reranked(
        self,
        candidates: Sequence[Candidate],
        rerank: Callable[[], Reranked | None] | None,
        outcome: Outcome,
    ) -> Sequence[Candidate]:
        """The candidates as the chat model orders them, if it shall."""
        done = rerank() if rerank else None
        if done is None:
            return candidates
        self._tell(done.event())
        self._warn_of_remote(done.model_name, done.remote, outcome)
        outcome.warnings += done.warnings
        outcome.usage.add_tokens(done.tokens)
        outcome.rerank_s = done.seconds
        return done.candidates

    def _warn_of_remote(self, name: str, remote: bool, outcome: Outcome) -> None:
        warning = evidence.remote_warning(name)
        if remote and warning not in outcome.warnings:
            outcome.warnings.append(warning)

    def _similar(
        self, question: str, source: Source, outcome: Outcome
    ) -> tuple[tuple[str, str], ...]:
        """Similar learned questions with their SQL."""
        if self._learned is None:
            return ()
        found = self._learned.similar(question, source, self.index.catalog, outcome.warnings)
        for solved in found:
            self._tell(solved.event())
        return tuple((solved.pair.question, solved.admitted.sql) for solved in found)

    def _workshop(
        self, selection: Selection, model: ChatModel, usage: Usage, dry_run: bool
    ) -> Workshop:
        return Workshop(
            source=self.sources[selection.source],
            tables=self._allowed.tables(self.index.catalog.of_source(selection.source)),
            joins=self.joins,
            model=model,
            settings=self.settings,
            report=self._tell,
            usage=usage,
            dry_run=dry_run,
            values=self.index.values,
        )

    def _tell(self, event: Mapping[str, Any]) -> None:
        self._trace.append(event)
        if self._listener:
            self._listener(event)


def _seconds(outcome: Outcome, retrieve_s: float, work_s: float) -> dict[str, float]:
    """Seconds by stage; a reranking is a part of the retrieval."""
    execute_s, rerank_s = outcome.usage.execute_s, outcome.rerank_s
    return {
        "total": retrieve_s + work_s,
        "retrieve": retrieve_s + rerank_s,
        "reason": work_s - execute_s - rerank_s,
        "execute": execute_s,
    }


def _status(winner: Attempt | None, error: DbragError | None) -> Any:
    if winner is not None:
        return "answered"
    return "unanswerable" if isinstance(error, Unanswerable) else "failed"


def _exit_code(error: DbragError | None) -> int:
    if error is None:
        return 0
    return DbragError.exit_code if isinstance(error, Refused) else error.exit_code


def _text(winner: Attempt | None, error: DbragError | None, outcome: Outcome, dry_run: bool) -> str:
    if winner is None:
        return error.message if error else ""
    if dry_run or winner.execution is None:
        return "Not run (dry run)."
    return evidence.answer_text(winner.execution, outcome.doubts)


def _brief(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    return [
        {"table": str(c.table), "score": round(c.score, 4), "reason": c.reason}
        for c in candidates[:10]
    ]


def _selection_event(selection: Selection) -> dict[str, Any]:
    return {
        "stage": "select",
        "source": selection.source,
        "tables": [str(ref) for ref in selection.tables],
        "alternatives": [[str(ref) for ref in refs] for refs in selection.alternatives],
        "rivals": [str(ref) for ref in selection.rivals],
    }
