"""What the tools do: calls of :class:`dbrag.Database`, in threads, a bounded number at once.

Searches, statements and look-ups have one lane, questions that a chat model answers another; a
call waits for its turn, and one too many is refused. The index is brought up to date by one thread
for all calls: one that leaves meanwhile leaves it running, since the next one needs it as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures import wait as wait_for
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dbrag.cancel import Cancellation, cancellable, check
from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.ask import tell_remote
from dbrag.interfaces.cli.notices import indexing_text, next_text
from dbrag.interfaces.cli.search import may_rerank
from dbrag.interfaces.http.jobs import Board, Job, Lane, events_of
from dbrag.interfaces.mcp import catalog
from dbrag.interfaces.mcp.pages import KEEP_S, Results, take_rows
from dbrag.interfaces.mcp.shapes import (
    Answered,
    CutCell,
    FoundTables,
    FoundValues,
    Notice,
    OtherReading,
    ResultColumnInfo,
    Rows,
    TableInfo,
)
from dbrag.models.load import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.database import Database
    from dbrag.index.store import Index
    from dbrag.types import Answer, Execution, Program

Listener = Callable[[Mapping[str, Any]], None]
Tell = Callable[[int, str], Awaitable[None]]
Gone = Callable[[], Awaitable[bool]]

AT_ONCE = 4
"""Calls at work in each lane; of questions to a model of this machine one, it has one context."""
WAITING = 32
CALL_S = 900.0
"""Longest time of a call, waiting included, seconds."""
HEARTBEAT_S = 5.0
"""Seconds after which a call that goes on says so again: clients count the time since then."""
_LOOK_S = 0.2
_GONE_S = 1.0
_END_S = 5.0
_EVIDENCE = ("joins", "filters", "groups", "results", "sets", "order")


class Service:
    """The tools over one database; close it at the end.

    Args:
        at_once: calls at work in each lane.
        waiting: calls that may wait in each lane; more are refused.
        call_s: longest time of a call, seconds.
    """

    def __init__(
        self,
        database: Database,
        *,
        at_once: int = AT_ONCE,
        waiting: int = WAITING,
        call_s: float = CALL_S,
    ) -> None:
        self.database = database
        asks = at_once if self.remote_model else 1
        lanes = {"work": Lane("work", at_once, waiting), "ask": Lane("ask", asks, waiting)}
        self.board = Board(lanes, call_s)
        self._results = Results()
        self._indexer = ThreadPoolExecutor(1, thread_name_prefix="dbrag-index")
        self._indexing: list[Future[Index]] = []
        self._lock = threading.Lock()
        self._closing = Cancellation()
        self._told_remote: set[bool] = set()

    @property
    def remote_model(self) -> str | None:
        """The name of the model of ``ask`` where prompts leave this machine, else None."""
        model = self.database.settings.model
        return model if is_remote(model) else None

    async def close(self) -> None:
        """Stop what runs, and wait a little until it has ended; see :attr:`busy`."""
        self._closing.cancel()
        await self.board.stop(0.0)
        self._indexer.shutdown(wait=False, cancel_futures=True)
        end = time.monotonic() + _END_S
        while self.busy and time.monotonic() < end:
            await asyncio.sleep(0.05)

    @property
    def busy(self) -> bool:
        """Whether a thread is at work; after ``close`` one that does not look whether to stop."""
        return bool(self.board.active()) or any(not one.done() for one in self._indexing)

    # ---- the way of a call ----------------------------------------------------------

    async def call(
        self,
        kind: str,
        work: Callable[[Listener], Any],
        tell: Tell,
        lane: str = "work",
        gone: Gone | None = None,
    ) -> Any:
        """The result of ``work``, done in a thread; a caller that is cancelled stops it.

        Args:
            work: given a listener for ``on_event``.
            tell: is told what goes on, with a number that grows; its failures are of no account.
            gone: whether the client has left without a word, where that can be known.

        Raises:
            Busy, Stopping, TimedOut: it was not done, or not in time.
            JobCancelled: the client has left.
            BaseException: whatever ``work`` raises.
        """
        loop = asyncio.get_running_loop()
        said: asyncio.Queue[str] = asyncio.Queue()
        job = self.board.submit(
            kind,
            lane,
            lambda job: work(_listener(events_of(job, loop))),
            listener=lambda event: said.put_nowait(next_text(event)),
        )
        waiter = asyncio.ensure_future(self.board.result(job))
        beside = [asyncio.ensure_future(_tell_all(said, tell))]
        if gone is not None:
            beside.append(asyncio.ensure_future(self._watch(job, gone)))
        try:
            return await waiter
        finally:
            for one in (*beside, waiter):
                one.cancel()

    async def _watch(self, job: Job, gone: Gone) -> None:
        """Give a job up when its client has left; without end else."""
        while True:
            await asyncio.sleep(_GONE_S)
            with contextlib.suppress(OSError, RuntimeError):  # no connection to look at
                if await gone():
                    self.board.cancel(job)

    def index(self, listener: Listener) -> Index:
        """The index, brought up to date first; called in the thread of a job.

        Raises:
            Cancelled: the caller left; what was begun goes on.
            IndexUnusable, SourceError, ModelError: as ``Database.opened_index``.
        """

        self._tell_remote(chat=False)  # the encoder may be one that is sent the texts

        def opened() -> Index:
            with cancellable(self._closing):
                return self.database.opened_index(listener)

        with self._lock:
            future = self._indexer.submit(opened)
            self._indexing = [future, *(one for one in self._indexing if not one.done())]
        while not future.done():
            try:
                check()
            except BaseException:
                future.cancel()  # where it has not begun
                raise
            with contextlib.suppress(FutureTimeout):
                wait_for([future], timeout=_LOOK_S)
        return future.result()

    # ---- the tools ------------------------------------------------------------------

    def search_tables(
        self, question: str, offset: int, limit: int, listener: Listener
    ) -> FoundTables:
        """A page of the tables that fit a question."""
        settings = self.database.settings
        self._tell_remote(chat=may_rerank(settings, None))
        index = self.index(listener)
        found = self.database.search(question, top=settings.k, on_event=listener)
        return catalog.found_tables(index, found, offset, limit)

    def describe_table(self, name: str, offset: int, limit: int, listener: Listener) -> TableInfo:
        """A table with a page of its columns."""
        index = self.index(listener)
        ref = catalog.resolve(self.database, index, name)
        dialect = self.database.source(ref.source).dialect
        return catalog.table_info(index, ref, dialect, offset, limit)

    def find_values(
        self, text: str, tables: Sequence[str], offset: int, limit: int, listener: Listener
    ) -> FoundValues:
        """A page of the places where a text is stored."""
        index = self.index(listener)
        return catalog.found_values(self.database, index, text, tables, offset, limit)

    def table_list(self, offset: int, listener: Listener) -> dict[str, Any]:
        """A page of the list of tables."""
        index = self.index(listener)
        return catalog.table_list(catalog.open_refs(self.database, index), offset)

    def table_names(self, start: str, listener: Listener) -> list[str]:
        """The names of the tables that begin so, letter case ignored."""
        refs = catalog.open_refs(self.database, self.index(listener))
        return [name for name in map(str, refs) if name.casefold().startswith(start.casefold())]

    def run_query(self, sql: str, source: str | None, offset: int, limit: int) -> Rows:
        """A page of the result of a statement: of the kept one for a later page, else run anew."""
        kept = self._results.get(source, sql) if offset else None
        if kept is not None:
            return replace(_rows(kept.answer, offset, limit), paging=_kept_text(kept.at))
        answer = self.database.sql(sql, source=source)
        return self._kept(answer, _rows(answer, offset, limit), {(source, sql)})

    def ask(
        self,
        question: str,
        tables: Sequence[str],
        exclude: Sequence[str],
        limit: int,
        listener: Listener,
    ) -> Answered:
        """The answer to a question, with the first page of its rows."""
        self._tell_remote(chat=True)
        self.index(listener)
        answer = self.database.ask(question, tables=tables, exclude=exclude, on_event=listener)
        if answer.execution is None or answer.program is None:
            return _answered(answer, None)
        page = self._kept(answer, _rows(answer, 0, limit), {(None, answer.program.sql)})
        return _answered(answer, replace(page, warnings=[]))

    def _kept(self, answer: Answer, page: Rows, asked: set[tuple[str | None, str]]) -> Rows:
        """Keep a result of several pages under what was asked and what ran; the page says so."""
        if page.next_offset is None and not page.offset:
            return page
        names = asked | {(page.source, page.sql)}
        kept = self._results.add(names, answer)
        again = "run anew: " if page.offset else ""
        if kept:
            text = f"this run's rows are kept for {KEEP_S / 60:.0f} minutes for other pages"
        else:
            text = (
                "too large to be kept: each page runs the statement anew, and only an ORDER BY "
                "over unique values gives all of them the same order"
            )
        return replace(page, paging=again + text)

    def _tell_remote(self, chat: bool) -> None:
        """Say on standard error what leaves this machine, before it does."""
        if chat not in self._told_remote:
            tell_remote(self.database.settings, chat=chat)
            self._told_remote.add(chat)


async def _tell_all(said: asyncio.Queue[str], tell: Tell) -> None:
    """Pass on what is said, and between that, how long it takes; without end."""
    message, told, started = "waiting …", 0, time.monotonic()
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                message = text = await said.get()
        except TimeoutError:
            text = f"{message} ({time.monotonic() - started:.0f} s)"
        told += 1
        with contextlib.suppress(Exception):  # whoever listened may be gone
            await tell(told, text)


def _listener(pass_on: Listener) -> Listener:
    """Tells on standard error, too, that something is indexed."""

    def told(event: Mapping[str, Any]) -> None:
        if event.get("stage") == "index" and event.get("sources"):
            output.note(indexing_text(event["sources"]))
        pass_on(event)

    return told


def _rows(answer: Answer, offset: int, limit: int) -> Rows:
    execution, program = _parts(answer)
    rows, cut, page = take_rows(execution, offset, limit)
    return Rows(
        source=answer.tables[0].source if answer.tables else None,
        dialect=program.dialect,
        sql=program.sql,
        tables=[str(ref) for ref in answer.tables],
        columns=[ResultColumnInfo(column.name, column.type) for column in execution.columns],
        rows=rows,
        row_count=page.total,
        offset=offset,
        next_offset=page.next_offset,
        shown=page.shown,
        paging="",
        cut=[CutCell(one.row, one.column, one.characters) for one in cut],
        seconds=round(execution.seconds, 4),
        warnings=catalog.notices(answer.warnings),
    )


def _parts(answer: Answer) -> tuple[Execution, Program]:
    assert answer.execution is not None  # noqa: S101 - callers have looked
    assert answer.program is not None  # noqa: S101
    return answer.execution, answer.program


def _kept_text(at: float) -> str:
    when = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
    return f"rows of the run at {when} UTC; offset=0 runs the statement anew"


def _answered(answer: Answer, result: Rows | None) -> Answered:
    error = answer.error
    told = answer.evidence or {}
    words = [text for part in _EVIDENCE for text in told.get(part, ())]
    hint = f"; try: {error['hint']}" if error and error.get("hint") else ""
    return Answered(
        question=answer.question,
        status=answer.status,
        text=answer.text,
        result=result,
        sql=answer.sql,
        agreement=None if answer.agreement is None else round(answer.agreement, 4),
        confidence=None if answer.confidence is None else round(answer.confidence, 4),
        votes_requested=answer.votes_requested,
        votes_valid=answer.votes_valid,
        readings=[
            OtherReading(one.text, one.difference, one.program.sql, one.votes)
            for one in answer.readings
        ],
        evidence=words,
        model=answer.model,
        seconds=round(answer.seconds.get("total", 0.0), 2),
        error=Notice(error["code"], error["message"] + hint) if error else None,
        warnings=catalog.notices(answer.warnings),
    )
