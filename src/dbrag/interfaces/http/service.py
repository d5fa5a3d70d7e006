"""What all routes share: one database, its jobs, results, history and counters."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dbrag.cancel import Cancellation, Cancelled, cancellable, check
from dbrag.errors import DbragError
from dbrag.interfaces.http import logs
from dbrag.interfaces.http.errors import Starting
from dbrag.interfaces.http.front import ClientLeft
from dbrag.interfaces.http.history import History
from dbrag.interfaces.http.jobs import Board, Job, Lane, events_of
from dbrag.interfaces.http.metrics import Metrics
from dbrag.interfaces.http.results import Results

if TYPE_CHECKING:
    from starlette.requests import Request

    from dbrag.database import Database
    from dbrag.index.store import Index
    from dbrag.interfaces.http.options import ServeOptions
    from dbrag.types import Answer

ASKS_AT_ONCE = 4
"""With a remote model; one of this machine answers one question at a time."""
LOOK_UP, ASK = "look-up", "ask"
_WAIT_S = 0.2
INDEX_STOP_S = 10.0
"""How long a stopping server waits for the indexing to notice."""

Listener = Callable[[Mapping[str, Any]], None]


class Service:
    """One database behind one server.

    Args:
        database: closed by whoever opened it.
        options: bounds of queues, results and history.

    Raises:
        UsageError: the file of the history cannot be used, or the model has no such name.
    """

    def __init__(self, database: Database, options: ServeOptions) -> None:
        self.database = database
        self.options = options
        self.metrics = Metrics()
        self.results = Results(options.results, options.results_mb)
        self.history = History(options.history, options.history_file)
        self.lanes = {
            LOOK_UP: Lane(LOOK_UP, options.workers, options.queue),
            ASK: Lane(ASK, options.asks or _asks_at_once(database), options.queue),
        }
        self.board = Board(self.lanes, options.timeout_s, self.metrics.job)
        self.learning = threading.Lock()
        self._refreshing = threading.Lock()
        self._building = True
        self._stopping = Cancellation()
        self._builder = threading.Thread(target=self._build, name="dbrag-index", daemon=True)
        self.metrics.watch(self.lanes, lambda: self.ready, self.results.size)

    # ---- life -----------------------------------------------------------------------

    async def start(self) -> None:
        """Make the index ready beside the first requests, which are told to come again."""
        self._builder.start()

    async def stop(self) -> None:
        """Let running jobs end, then cancel them, and what is being indexed."""
        stopping = asyncio.ensure_future(self.board.stop(self.options.grace_s))
        await asyncio.wait({stopping}, timeout=0 if self._building else self.options.grace_s)
        self._stopping.cancel()
        await stopping
        if self._builder.ident is not None:
            await asyncio.to_thread(self._builder.join, INDEX_STOP_S)

    @property
    def ready(self) -> bool:
        """Whether requests are taken: the first look at the index is over, no stop is on."""
        return not self._building and not self.board.stopping

    def check_ready(self) -> None:
        """Raises:
        Starting: the index is being made for the first time.
        """
        if self._building:
            raise Starting("the index is still being made", "try again in some seconds")

    def _build(self) -> None:
        started = time.monotonic()
        try:
            self.index()
            logs.event("ready", seconds=round(time.monotonic() - started, 2))
        except Cancelled:
            logs.event("index_given_up")
        except DbragError as error:  # requests meet it again, and say so
            logs.event("index_failed", logging.ERROR, code=error.code, message=error.message)
        except Exception as error:
            logs.event("index_failed", logging.ERROR, code="bug", message=type(error).__name__)
        finally:
            self._building = False

    def index(self, listener: Listener | None = None) -> Index:
        """The open index, brought up to date first by one thread; others wait for it.

        Raises:
            DbragError: it cannot be made or opened.
            Cancelled: this job was cancelled while another refreshes the index.
        """
        while not self._refreshing.acquire(timeout=_WAIT_S):
            check()
        try:
            # A refresh serves all clients: it is given up when the server stops, not
            # because one of them leaves.
            with cancellable(self._stopping):
                return self.database.opened_index(listener)
        finally:
            self._refreshing.release()

    # ---- jobs -----------------------------------------------------------------------

    def submit(
        self,
        request: Request,
        kind: str,
        lane: str,
        work: Callable[[Listener, str], Any],
        *,
        job_id: str | None = None,
        listener: Listener | None = None,
    ) -> Job:
        """Take on work for a request.

        Args:
            work: gets a listener for events, which also raises when cancelled, and the id.

        Raises:
            Starting, Stopping, Busy, UsageError: it cannot be taken on.
        """
        self.check_ready()
        loop = asyncio.get_running_loop()
        job = self.board.submit(
            kind,
            lane,
            lambda job: work(events_of(job, loop), job.id),
            job_id=job_id,
            listener=listener,
        )
        request.scope["state"]["job"] = job.id
        return job

    async def run(
        self,
        request: Request,
        kind: str,
        lane: str,
        work: Callable[[Listener, str], Any],
        *,
        job_id: str | None = None,
    ) -> Any:
        """The result of some work; when the client leaves, the work is cancelled.

        Raises:
            ClientLeft: it left.
            DbragError: whatever the work raised, and what ``submit`` and the board raise.
        """
        job = self.submit(request, kind, lane, work, job_id=job_id)
        gone = asyncio.ensure_future(left(request))
        done = asyncio.ensure_future(self.board.result(job))
        try:
            await asyncio.wait({gone, done}, return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                raise ClientLeft
            return await done
        finally:
            gone.cancel()
            done.cancel()
            if not job.future.done():
                self.board.cancel(job)

    async def look_up(self, request: Request, kind: str, work: Callable[[], Any]) -> Any:
        """Run something short that needs no events."""
        return await self.run(request, kind, LOOK_UP, lambda _listener, _id: work())

    # ---- answers --------------------------------------------------------------------

    def finished(self, kind: str, job_id: str, answer: Answer) -> dict[str, Any]:
        """Keep an answer and its entry in the history; its JSON with its ``id``."""
        self.results.keep(job_id, answer)
        self.metrics.answer(answer)
        rows = answer.execution.rows if answer.execution else ()
        self.history.add(
            {
                "id": job_id,
                "at": time.time(),
                "kind": kind,
                "question": answer.question,
                "status": answer.status,
                "sql": answer.sql,
                "source": answer.tables[0].source if answer.tables else None,
                "tables": [str(table) for table in answer.tables],
                "row_count": len(rows),
                "agreement": answer.agreement,
                "error": answer.error["code"] if answer.error else None,
                "warnings": [warning.code for warning in answer.warnings],
                "seconds": round(answer.seconds.get("total", 0.0), 3),
                "model": answer.model,
            }
        )
        return {"id": job_id, **answer.to_dict()}


async def left(request: Request) -> None:
    """Wait until the client of a request leaves."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _asks_at_once(database: Database) -> int:
    from dbrag.models.load import is_remote

    return ASKS_AT_ONCE if is_remote(database.settings.model) else 1
