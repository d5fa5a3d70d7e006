"""Programs written step by step.

The model writes one named SELECT. It is admitted as a part of the chain, looked at where
that is cheap, and what the look shows goes back to the model, which writes the next step or
says that this one is the answer. Looks are for the model alone: what runs at the end is the
whole chain as one statement (``reasoning.chain``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dbrag.errors import DbragError, ExecutionError, LimitReached, PromptTooLong, UnknownName
from dbrag.execution.guard import Admitted
from dbrag.models.base import Prompt, Reply
from dbrag.reasoning import looks, step_prompts
from dbrag.reasoning.attempt import REWRITE_TEMPERATURE, Attempt, Workshop, problem_of, tokens_of
from dbrag.reasoning.chain import Chain
from dbrag.reasoning.looks import Look
from dbrag.reasoning.program import LAST_STEP, parse_step, says_done
from dbrag.reasoning.widen import tables_meant
from dbrag.types import AnswerWarning, TableRef

Widen = Callable[[tuple[TableRef, ...]], Prompt]


def write_program(
    shop: Workshop,
    prompt: Prompt,
    tables: tuple[TableRef, ...],
    *,
    temperature: float = 0.0,
    seed: int = 0,
    widen: Widen | None = None,
) -> Attempt:
    """One attempt at a program, written as ``settings.program`` says.

    Args:
        prompt: of ``prompts``; asks for the whole program.
        widen: see ``Workshop.attempt``.

    Raises:
        ModelError: the model itself fails (a first prompt too long included).
    """
    if shop.settings.program == "query":
        return shop.attempt(prompt, tables, temperature=temperature, seed=seed, widen=widen)
    return _Writer(shop, prompt, tables, widen).written(temperature, seed)


class _Writer:
    """Writes one program.

    ``chain`` holds the steps that are sound, ``turns`` the dialogue that led to them: an
    exchange that went wrong is kept only until it is put right.
    """

    def __init__(
        self, shop: Workshop, prompt: Prompt, tables: tuple[TableRef, ...], widen: Widen | None
    ) -> None:
        self._shop = shop
        self._dialect = shop.source.dialect
        self._most = shop.settings.max_steps
        self._prompt = step_prompts.first_step(prompt, only=self._most == 1)
        self._tables = tables
        self._widen = widen
        self._chain = Chain.over(self._dialect, shop.tables)
        self._turns: list[tuple[str, str]] = []
        self._written = 0
        self._rounds = 0
        self._changes: tuple[str, ...] = ()
        self._looking = looks.are_wanted(shop.settings, shop.source) and not shop.dry_run
        self._best: Attempt | None = None

    def written(self, temperature: float, seed: int) -> Attempt:
        """The program and its result, or the error that remained."""
        failed: tuple[tuple[str, str], ...] = ()
        heat = temperature
        while True:
            prompt = replace(self._prompt, turns=(*self._turns, *failed))
            try:
                reply = self._shop.sample(prompt, heat, seed)
            except LimitReached as error:
                return self._best or Attempt(self._tables, error=error, rounds=self._rounds)
            except PromptTooLong as error:
                if not prompt.turns:
                    raise
                return self._best or Attempt(self._tables, error=error, rounds=self._rounds)
            if failed and self._best is not None and says_done(reply.text):
                return self._best  # asked about its result, the model stands by it
            done, problem = self._take(reply)
            if done is None:
                failed, heat = (), temperature
                continue
            if done.program is not None and (self._best is None or done.execution is not None):
                self._best = done
            if problem is None:
                return self._best or done
            self._rounds += 1
            again = ((reply.text, problem),)
            ran = done.error is None
            if self._rounds > self._shop.settings.rounds or (again == failed and (ran or heat > 0)):
                return self._best or done
            # what failed twice the same way is written more freely
            heat = REWRITE_TEMPERATURE if again == failed else 0.0
            failed = again

    def _take(self, reply: Reply) -> tuple[Attempt | None, str | None]:
        """What a reply leads to: an attempt where it ends the program or fails, and what to
        tell the model where that cannot stand."""
        name = ""
        try:
            self._shop.check_whole(reply)
            if says_done(reply.text):
                return self._finished(self._chain, reply, ())
            chain, count = self._chain, 0
            for step in parse_step(reply.text, self._dialect, f"step{self._written + 1}"):
                name = step.name
                chain = chain.plus(step)
                count += 1
            said = name.casefold() == LAST_STEP or self._most == 1
            if said or self._written + count >= self._most:
                told = () if said else (f"step {name}, the last of {self._most}, taken as answer",)
                return self._finished(chain, reply, told, name)
            self._add(chain, count, reply)
        except DbragError as error:
            self._tell_step(name, None, Look(), reply, (), error)
            done = Attempt(self._tables, error=error, rounds=self._rounds, logprob=reply.logprob)
            problem = problem_of(done)
            if problem is None:
                return done, None
            self._show_more(error, reply)
            return done, step_prompts.step_again(problem, name, self._dialect)
        return None, None

    def _add(self, chain: Chain, count: int, reply: Reply) -> None:
        """Admit one more step, look at it, and ask for the next.

        Raises:
            DbragError: it is not admitted, or fails.
        """
        admitted, changes = self._admitted(chain)
        chain = chain.mended(admitted.sql)
        look = Look(missing="steps are not run before the whole program")
        if self._looking:
            look, execution = looks.look(
                admitted, self._shop.source, self._shop.settings, self._shop.allowed
            )
            if execution is not None:
                self._shop.usage.execute_s += execution.seconds
                chain = chain.told([column.name for column in execution.columns])
            # what took too long once would do so again under every later step
            self._looking = execution is not None
        if not look.columns:
            look = replace(look, columns=tuple((name, "") for name in chain.columns() if name))
        self._tell_step(chain.name(), chain, look, reply, changes, None)
        self._chain = chain
        self._changes += changes
        self._written += count
        last = self._written >= self._most - 1
        told = step_prompts.next_step(chain.name(), look, self._dialect, last=last)
        self._turns.append((reply.text, told))
        if look.rows and self._shop.model.remote:
            said = f"the first rows of the steps were sent to {self._shop.model.name}, too"
            self._shop.told.append(AnswerWarning("remote_model", said))

    def _finished(
        self, chain: Chain, reply: Reply, told: tuple[str, ...], name: str = ""
    ) -> tuple[Attempt, str | None]:
        """Run the whole chain.

        Args:
            told: changes to tell beside those of the names and values.
            name: of the step that the reply brings; empty where it only ends the program.

        Raises:
            DbragError: there is no step, or it is not admitted.
        """
        if not chain.links:
            raise ExecutionError("there is no step yet")
        admitted, changes = self._admitted(chain)
        done = Attempt(
            self._tables,
            self._shop.program(admitted),
            changes=tuple(dict.fromkeys((*self._changes, *changes, *told))),
            rounds=self._rounds,
            logprob=reply.logprob,
            ordered=admitted.ordered,
        )
        try:
            if not self._shop.dry_run:
                done = replace(done, execution=self._shop.run(admitted))
        except DbragError as error:
            done = replace(done, error=error)
        if name:
            result = done.execution
            look = looks.seen(result, len(result.rows)) if result else Look(missing="not run")
            self._tell_step(name, chain.mended(admitted.sql), look, reply, changes, done.error)
            # its tokens are told once
            reply = replace(reply, prompt_tokens=0, cached_tokens=0, completion_tokens=0)
        self._shop.tell(done, reply)
        problem = self._shop.problem(done)
        if problem is None:
            return done, None
        ran = done.error is None
        return done, step_prompts.step_again(problem, chain.name(), self._dialect, ran=ran)

    def _admitted(self, chain: Chain) -> tuple[Admitted, tuple[str, ...]]:
        sql = self._shop.restored(chain.statement(whole=False), self._tables)
        return self._shop.admit(sql)

    def _show_more(self, error: DbragError, reply: Reply) -> None:
        """Show the tables, too, that a step with unknown names means."""
        if self._widen is None or not isinstance(error, UnknownName):
            return
        try:
            chain = self._chain
            for step in parse_step(reply.text, self._dialect, "step"):
                chain = chain.plus(step)
            shop = self._shop
            sql = chain.statement(whole=False)
            more = tables_meant(sql, self._tables, shop.tables, shop.joins, self._dialect)
        except ExecutionError:
            return
        if more:
            self._tables = (*self._tables, *more)
            self._prompt = step_prompts.first_step(self._widen(self._tables), only=self._most == 1)

    def _tell_step(
        self,
        name: str,
        chain: Chain | None,
        look: Look,
        reply: Reply,
        changes: tuple[str, ...],
        error: DbragError | None,
    ) -> None:
        event: Mapping[str, Any] = {
            "stage": "step",
            "tables": [str(ref) for ref in self._tables],
            "number": self._written + 1,
            "round": self._rounds,
            "name": name,
            "reply": reply.text,
            "from_cache": reply.cached,
            "sql": chain.last_sql() if chain is not None else None,
            "changes": list(changes),
            **look.event(),
            "error": error.to_dict() if error else None,
            "tokens": tokens_of(reply),
            "logprob": reply.logprob,
        }
        self._shop.report(event)
