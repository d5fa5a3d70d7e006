"""One attempt: from a prompt to an executed program, with repairs on the way.

Whatever the model writes is parsed, mended by rule, admitted by the guard, run by
the engine under the limits. What fails goes back to the model with the reason, a few
rounds at most. The model's text never becomes an answer: only the engine's rows do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from dbrag.catalog.joins import JoinGraph
from dbrag.errors import (
    DbragError,
    ExecutionError,
    LimitReached,
    PromptTooLong,
    Refused,
    UnknownName,
)
from dbrag.execution import guard
from dbrag.execution import run as running
from dbrag.models.base import ChatModel, Prompt, Reply
from dbrag.reasoning import names, prompts, repair
from dbrag.reasoning.all_spellings import Matched, matched_warnings, with_all_spellings
from dbrag.reasoning.budget import Budget, Usage
from dbrag.reasoning.chain import compose
from dbrag.reasoning.doubts import doubt_of
from dbrag.reasoning.missing_join import add_missing_joins
from dbrag.reasoning.noise import Look
from dbrag.reasoning.program import has_ended, parse_reply, split
from dbrag.reasoning.spellings import StoredSpellings, looked_up_once
from dbrag.reasoning.vote import is_hollow
from dbrag.reasoning.widen import tables_meant
from dbrag.settings import Settings
from dbrag.sources.base import Source
from dbrag.types import AnswerWarning, Execution, Program, Step, Table, TableRef

if TYPE_CHECKING:
    from dbrag.index.values import ValueIndex

REWRITE_TEMPERATURE = 0.7
"""Of a round after one that repeated the failed statement."""

Report = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of one sampled program: a result, or the error that remained."""

    tables: tuple[TableRef, ...]
    program: Program | None = None
    execution: Execution | None = None
    error: DbragError | None = None
    changes: tuple[str, ...] = ()
    rounds: int = 0
    logprob: float | None = None
    ordered: bool = False


@dataclass(frozen=True)
class Workshop:
    """What every attempt at one question shares: where programs are written and run.

    Attributes:
        tables: all of the source: a program may use one that was not shown.
        told: warnings that arose on the way.
        matched: spellings that comparisons were widened by.
        values: says in which columns a text occurs.
    """

    source: Source
    tables: Sequence[Table]
    joins: JoinGraph
    model: ChatModel
    settings: Settings
    report: Report
    usage: Usage = field(default_factory=Usage)
    dry_run: bool = False
    told: list[AnswerWarning] = field(default_factory=list)
    matched: list[Matched] = field(default_factory=list)
    values: ValueIndex | None = None

    def warnings(self, winner: Attempt | None = None) -> tuple[AnswerWarning, ...]:
        """What the reader of an answer has to know of how the programs were written."""
        program = winner.program if winner else None
        matched = matched_warnings(self.matched, program) if program else ()
        return (*dict.fromkeys(self.told), *matched, *self.budget.warnings())

    def failure(self, attempts: Sequence[Attempt]) -> DbragError:
        """Why there is no answer, where no attempt came to a result."""
        first = attempts[0].error if attempts else None
        return self.budget.refused or first or ExecutionError("no program could be written")

    def attempt(
        self,
        prompt: Prompt,
        tables: tuple[TableRef, ...],
        *,
        temperature: float = 0.0,
        seed: int = 0,
        widen: Callable[[tuple[TableRef, ...]], Prompt] | None = None,
    ) -> Attempt:
        """Sample one program and bring it to a result, repairing it at most
        ``settings.rounds`` times.

        Args:
            widen: the prompt with other tables: where a failed statement means one that was
                not shown, the next round shows it.

        Raises:
            ModelError: the model itself fails (a prompt too long included).
        """
        best: Attempt | None = None
        current = prompt
        for round_ in range(self.settings.rounds + 1):
            try:
                reply = self.sample(current, temperature, seed)
            except LimitReached as error:
                best = best or Attempt(tables, error=error)
                break
            except PromptTooLong:
                if best is None:
                    raise
                break  # no room for a repair: what there is stands
            done = replace(self._try(reply, tables), rounds=round_)
            self.tell(done, reply)
            if best is None or done.execution is not None or best.execution is None:
                best = done
            problem = self.problem(done)
            if problem is None or self._is_final(done):
                break
            if widen and (more := self._meant(done, reply, tables)):
                tables = (*tables, *more)
                prompt = widen(tables)
            # only the last exchange is kept: a small model drowns in its own mistakes
            again = replace(prompt, turns=((reply.text, prompts.repair_request(problem)),))
            if again == current and (done.error is None or temperature > 0):
                break  # the model repeats itself: another round would bring the same
            # what failed twice the same way is written more freely
            temperature = REWRITE_TEMPERATURE if again == current else 0.0
            current = again
        assert best is not None  # noqa: S101 - every way out of the first round gave one
        return best

    def problem(self, done: Attempt) -> str | None:
        """What to tell the model of an attempt, or None when the result can stand."""
        if done.program is not None and done.execution is not None:
            doubt = doubt_of(
                done.program, done.execution, self.tables, self.source, self.settings, self.values
            )
            if doubt is not None:
                return doubt
        return problem_of(done)

    @cached_property
    def budget(self) -> Budget:
        """What the question may cost."""
        return Budget(self.usage, self.settings.answer_s, self.settings.answer_tokens)

    def sample(self, prompt: Prompt, temperature: float, seed: int) -> Reply:
        """One reply of the model, its cost counted.

        Raises:
            LimitReached: the budget of the question is used up.
            ModelError: the model fails (a prompt too long included).
        """
        if not self.budget.allows():
            assert self.budget.refused is not None  # noqa: S101 - just set
            raise self.budget.refused
        (reply,) = self.model.sample(
            prompt,
            1,
            temperature=temperature,
            max_tokens=self.settings.program_tokens,
            seed=seed,
        )
        self.usage.add(reply)
        return reply

    def check_whole(self, reply: Reply) -> None:
        """Refuse a reply that was cut within its statement.

        Raises:
            ExecutionError: it was.
        """
        if reply.finish == "length" and not has_ended(reply.text, self.source.dialect):
            raise ExecutionError(
                f"the statement is longer than {self.settings.program_tokens:,} tokens",
                "raise program_tokens (DBRAG_PROGRAM_TOKENS)",
            )

    def _try(self, reply: Reply, tables: tuple[TableRef, ...]) -> Attempt:
        changes: tuple[str, ...] = ()
        program = None
        try:
            self.check_whole(reply)
            steps = parse_reply(reply.text, self.source.dialect)
            admitted, changes = self.admit(self._composed(steps, tables))
            program = self.program(admitted)
            execution = None if self.dry_run else self.run(admitted)
        except DbragError as error:
            return Attempt(tables, program, None, error, changes, logprob=reply.logprob)
        return Attempt(
            tables,
            program,
            execution,
            None,
            changes,
            logprob=reply.logprob,
            ordered=admitted.ordered,
        )

    def _meant(
        self, done: Attempt, reply: Reply, tables: tuple[TableRef, ...]
    ) -> tuple[TableRef, ...]:
        """Tables that a failed statement means and that were not shown."""
        dialect = self.source.dialect
        if done.error is None:
            return ()
        try:
            sql = compose(parse_reply(reply.text, dialect), dialect)
        except ExecutionError:
            return ()  # there is no statement
        return tables_meant(sql, tables, self.tables, self.joins, dialect)

    def _composed(self, steps: tuple[Step, ...], tables: tuple[TableRef, ...]) -> str:
        """One statement, with the real names of what the prompt had to show otherwise."""
        return self.restored(compose(steps, self.source.dialect, self.tables), tables)

    def restored(self, sql: str, tables: tuple[TableRef, ...]) -> str:
        """A statement with the real names of what the prompt had to show otherwise."""
        seen = [table for table in self.tables if table.ref in tables]
        return names.restore_names(sql, seen, self.source.dialect)

    def allowed(self, sql: str) -> guard.Admitted:
        """What may run of a statement, as it stands.

        Raises:
            Refused, UnknownName: it may not.
        """
        return guard.admit(sql, self.source.dialect, self.tables, functions=self.source.functions())

    def admit(self, sql: str) -> tuple[guard.Admitted, tuple[str, ...]]:
        """What may run of a statement, names and values put right; the changes in words.

        Raises:
            Refused, UnknownName: it may not, or not even then.
        """
        dialect = self.source.dialect
        changes: tuple[str, ...] = ()
        try:
            admitted = self.allowed(sql)
        except UnknownName as error:
            mended = self._mended(sql) if self.settings.mend == "on" else None
            if mended is None:
                raise
            try:
                admitted = self.allowed(mended.sql)
            except DbragError:
                raise error from None  # what the model wrote is what it has to hear of
            changes = mended.changes
        if self.settings.mend == "off":
            return admitted, changes
        literals = repair.mend_literals(admitted.sql, self.tables, dialect, self._spelling)
        if literals is not None:
            admitted = self.allowed(literals.sql)
            changes += literals.changes
        return self._in_all_spellings(admitted), changes

    def _in_all_spellings(self, admitted: guard.Admitted) -> guard.Admitted:
        if self._look is None:
            return admitted
        dialect = self.source.dialect
        sql, matched = with_all_spellings(admitted.sql, self.tables, dialect, self._look)
        with suppress(Refused):  # too long by now: it runs as it was written
            admitted = self.allowed(sql) if matched else admitted
            self.matched.extend(matched)
        return admitted

    @cached_property
    def _look(self) -> Look | None:
        """Finds the spellings of a compared text; each is looked up once for a question."""
        if self.values is None:
            return None
        return looked_up_once(StoredSpellings(self.values, self.source, self.settings))

    def _mended(self, sql: str) -> repair.Mended | None:
        """The statement with misplaced or misspelt names and a forgotten join put right."""
        dialect = self.source.dialect
        names = repair.mend_names(sql, self.tables, dialect)
        joined = add_missing_joins(names.sql if names else sql, self.tables, self.joins, dialect)
        if joined is None:
            return names
        return repair.Mended(joined.sql, (names.changes if names else ()) + joined.changes)

    def program(self, admitted: guard.Admitted) -> Program:
        """An admitted statement as a program of this source."""
        dialect = self.source.dialect
        return Program(split(admitted.sql, dialect), admitted.sql, dialect, admitted.tables)

    def run(self, admitted: guard.Admitted) -> Execution:
        """The whole result, its seconds counted.

        Raises:
            LimitReached, ExecutionError, SourceError: see ``execution.run``.
        """
        execution = running.run_admitted(self.source, admitted, self.settings)
        self.usage.execute_s += execution.seconds
        return execution

    def _spelling(self, table: Table, column: str, value: str) -> str | None:
        """The data's one spelling of a text that occurs there only in another case or
        with other blanks; asked of the engine, because the index may be sampled."""
        cell = exp.column(column, quoted=True)
        same, alike = (
            query.from_(exp.table_(table.ref.name, db=table.ref.schema, quoted=True))
            for query in (exp.select("1"), exp.select(cell).distinct())
        )
        same = same.where(cell.eq(value)).limit(1)
        alike = alike.where(_folded(cell).eq(_folded(exp.Literal.string(value)))).limit(2)
        try:
            if self._lookup(same):
                return None
            found = self._lookup(alike)
        except DbragError:
            return None  # too slow or not comparable: the statement stays as written
        return found[0][0] if len(found) == 1 and isinstance(found[0][0], str) else None

    def _lookup(self, query: exp.Select) -> tuple[tuple[Any, ...], ...]:
        admitted = self.allowed(query.sql(self.source.dialect))
        timeout_s = min(2.0, self.settings.timeout_s)
        return running.run(
            self.source, admitted.sql, timeout_s=timeout_s, max_rows=10, max_mb=16
        ).rows

    def _is_final(self, done: Attempt) -> bool:
        # a program that ran out of time would do so again; that is for the user to decide
        return isinstance(done.error, LimitReached)

    def tell(self, done: Attempt, reply: Reply) -> None:
        """Report what became of a program, with the reply that completed it."""
        self.report(
            {
                "stage": "program",
                "tables": [str(ref) for ref in done.tables],
                "round": done.rounds,
                "reply": reply.text,
                "from_cache": reply.cached,
                "sql": done.program.sql if done.program else None,
                "changes": list(done.changes),
                "row_count": len(done.execution.rows) if done.execution else None,
                "error": done.error.to_dict() if done.error else None,
                "tokens": tokens_of(reply),
                "logprob": reply.logprob,
            }
        )


def tokens_of(reply: Reply) -> dict[str, int]:
    """What a reply cost, for the trace."""
    return {
        "prompt": reply.prompt_tokens,
        "cached": reply.cached_tokens,
        "completion": reply.completion_tokens,
    }


def _folded(cell: exp.Expr) -> exp.Expr:
    """The text without regard to letter case and blanks around it."""
    return exp.func("LOWER", exp.func("TRIM", cell.copy()))


def problem_of(done: Attempt) -> str | None:
    """What to tell the model, or None when the result can stand."""
    if done.error is not None:
        if isinstance(done.error, UnknownName | ExecutionError) or done.error.code == "refused":
            return f"That statement failed: {done.error.message}."
        return None
    if done.execution is not None and not done.execution.rows:
        return (
            "That statement gave no rows. Check the compared values, the joins and the filters; "
            "if they are right, repeat the statement."
        )
    if done.execution is not None and is_hollow(done.execution) and _all_null(done.execution):
        return "That statement gave only NULL. Check the compared values and the joins."
    return None


def _all_null(execution: Execution) -> bool:
    return all(value is None for row in execution.rows for value in row)
