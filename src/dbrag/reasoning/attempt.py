"""One attempt: from a prompt to an executed program, with repairs on the way.

Whatever the model writes is parsed, mended by rule, admitted by the guard, run by
the engine under the limits. What fails goes back to the model with the reason, a few
rounds at most. The model's text never becomes an answer: only the engine's rows do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dbrag.catalog.joins import JoinGraph
from dbrag.errors import DbragError, ExecutionError, LimitReached, PromptTooLong, UnknownName
from dbrag.execution import guard
from dbrag.execution.run import run, run_admitted
from dbrag.models.base import ChatModel, Prompt, Reply
from dbrag.reasoning import names, prompts, repair
from dbrag.reasoning.missing_join import add_missing_joins
from dbrag.reasoning.program import compose, parse_reply, split
from dbrag.reasoning.vote import is_hollow
from dbrag.reasoning.widen import tables_meant
from dbrag.settings import Settings
from dbrag.sources.base import Source
from dbrag.types import Execution, Program, Step, Table, TableRef

MAX_PROGRAM_TOKENS = 300

REWRITE_TEMPERATURE = 0.7
"""Of a round after one that repeated the failed statement."""

Report = Callable[[Mapping[str, Any]], None]


@dataclass
class Usage:
    """Tokens and seconds spent so far; ``cache_hits`` replies cost none."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    cache_hits: int = 0
    execute_s: float = 0.0

    def add(self, reply: Reply) -> None:
        """Count one reply."""
        self.prompt += reply.prompt_tokens
        self.cached += reply.cached_tokens
        self.completion += reply.completion_tokens
        self.cache_hits += reply.cached

    def add_tokens(self, tokens: Mapping[str, int]) -> None:
        """Count the replies of another stage, told as by ``tokens``."""
        for name in self.tokens():
            setattr(self, name, getattr(self, name) + tokens.get(name, 0))

    def tokens(self) -> dict[str, int]:
        """The ``tokens`` of the JSON contract."""
        return {
            "prompt": self.prompt,
            "cached": self.cached,
            "completion": self.completion,
            "cache_hits": self.cache_hits,
        }


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

    ``tables`` are all tables of the source: a program may use one that was not shown.
    """

    source: Source
    tables: Sequence[Table]
    joins: JoinGraph
    model: ChatModel
    settings: Settings
    report: Report
    usage: Usage = field(default_factory=Usage)
    dry_run: bool = False

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
            reply = self._sample(current, temperature, seed, best)
            if reply is None:
                break
            done = replace(self._try(reply, tables), rounds=round_)
            self._tell(done, reply)
            if best is None or done.execution is not None or best.execution is None:
                best = done
            problem = _problem(done)
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
        assert best is not None  # noqa: S101 - the first sample either raised or gave a reply
        return best

    def _sample(
        self, prompt: Prompt, temperature: float, seed: int, best: Attempt | None
    ) -> Reply | None:
        try:
            (reply,) = self.model.sample(
                prompt, 1, temperature=temperature, max_tokens=MAX_PROGRAM_TOKENS, seed=seed
            )
        except PromptTooLong:
            if best is None:
                raise
            return None  # no room for a repair: what there is stands
        self.usage.add(reply)
        return reply

    def _try(self, reply: Reply, tables: tuple[TableRef, ...]) -> Attempt:
        changes: tuple[str, ...] = ()
        program = None
        try:
            if reply.finish == "length":
                raise ExecutionError(f"the statement is longer than {MAX_PROGRAM_TOKENS} tokens")
            steps = parse_reply(reply.text, self.source.dialect)
            admitted, changes = self._admit(self._composed(steps, tables))
            program = Program(
                steps=split(admitted.sql, self.source.dialect),
                sql=admitted.sql,
                dialect=self.source.dialect,
                tables=admitted.tables,
            )
            execution = None if self.dry_run else self._run(admitted)
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
        sql = compose(steps, self.source.dialect)
        seen = [table for table in self.tables if table.ref in tables]
        return names.restore_names(sql, seen, self.source.dialect)

    def _allowed(self, sql: str) -> guard.Admitted:
        return guard.admit(sql, self.source.dialect, self.tables, functions=self.source.functions())

    def _admit(self, sql: str) -> tuple[guard.Admitted, tuple[str, ...]]:
        dialect = self.source.dialect
        changes: tuple[str, ...] = ()
        try:
            admitted = self._allowed(sql)
        except UnknownName as error:
            mended = self._mended(sql)
            if mended is None:
                raise
            try:
                admitted = self._allowed(mended.sql)
            except DbragError:
                raise error from None  # what the model wrote is what it has to hear of
            changes = mended.changes
        literals = repair.mend_literals(admitted.sql, self.tables, dialect, self._spelling)
        if literals is not None:
            admitted = self._allowed(literals.sql)
            changes += literals.changes
        return admitted, changes

    def _mended(self, sql: str) -> repair.Mended | None:
        """The statement with misplaced or misspelt names and a forgotten join put right."""
        dialect = self.source.dialect
        names = repair.mend_names(sql, self.tables, dialect)
        joined = add_missing_joins(names.sql if names else sql, self.tables, self.joins, dialect)
        if joined is None:
            return names
        return repair.Mended(joined.sql, (names.changes if names else ()) + joined.changes)

    def _run(self, admitted: guard.Admitted) -> Execution:
        execution = run_admitted(self.source, admitted, self.settings)
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
        admitted = self._allowed(query.sql(self.source.dialect))
        timeout_s = min(2.0, self.settings.timeout_s)
        return run(self.source, admitted.sql, timeout_s=timeout_s, max_rows=10, max_mb=16).rows

    def _is_final(self, done: Attempt) -> bool:
        # a program that ran out of time would do so again; that is for the user to decide
        return isinstance(done.error, LimitReached)

    def _tell(self, done: Attempt, reply: Reply) -> None:
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
                "tokens": {
                    "prompt": reply.prompt_tokens,
                    "cached": reply.cached_tokens,
                    "completion": reply.completion_tokens,
                },
                "logprob": reply.logprob,
            }
        )


def _folded(cell: exp.Expr) -> exp.Expr:
    """The text without regard to letter case and blanks around it."""
    return exp.func("LOWER", exp.func("TRIM", cell.copy()))


def _problem(done: Attempt) -> str | None:
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
