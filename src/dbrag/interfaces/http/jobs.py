"""Work in threads, bounded: lanes of so many jobs at once, with so many waiting.

A job belongs to a request. Its slot is free again when its thread has really ended: a
client that leaves cancels the job, the engine's statement or the model's call is stopped,
and only then does the next job start.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from dbrag.cancel import Cancellation, Cancelled, cancellable, check
from dbrag.errors import DbragError, UsageError

State = Literal["queued", "running", "done", "failed", "cancelled"]
KEPT = 500
"""Finished jobs that are remembered by their state, so that cancelling twice is no error."""
MAX_RETRY_S = 60


class Busy(DbragError):
    """The queue is full; ``retry_s`` is when to come again, seconds."""

    code = "busy"

    def __init__(self, message: str, hint: str, retry_s: int) -> None:
        super().__init__(message, hint)
        self.retry_s = retry_s


class Stopping(DbragError):
    """The server is going down and takes no new jobs."""

    code = "stopping"


class TimedOut(DbragError):
    """The job took longer than a job may."""

    code = "timeout"


class JobNotFound(UsageError):
    """No job of that id."""

    code = "job_not_found"


class JobCancelled(DbragError):
    """Somebody cancelled the job."""

    code = "cancelled"
    default_hint = "send the request again"


@dataclass(eq=False)
class Job:
    """One piece of work; times are of ``time.monotonic``, ``created_at`` is Unix time.

    ``listener`` is told each event on the event loop, in order.
    """

    id: str
    kind: str
    lane: str
    created: float = field(default_factory=time.monotonic)
    created_at: float = field(default_factory=time.time)
    state: State = "queued"
    started: float | None = None
    ended: float | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)
    future: asyncio.Future[Any] = field(default_factory=lambda: asyncio.Future())
    listener: Callable[[Mapping[str, Any]], None] | None = None

    @property
    def waited_s(self) -> float:
        """Seconds in the queue."""
        return (self.started or self.ended or time.monotonic()) - self.created

    @property
    def ran_s(self) -> float:
        """Seconds of work, 0 before it."""
        if self.started is None:
            return 0.0
        return (self.ended or time.monotonic()) - self.started

    def to_dict(self) -> dict[str, Any]:
        """What a client may know of it: no question, no value."""
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "waited_s": round(self.waited_s, 3),
            "ran_s": round(self.ran_s, 3),
        }


class Lane:
    """So many jobs at once, so many waiting; used on the event loop only.

    Args:
        name: for threads and metrics.
        slots: jobs at once.
        queue: jobs that may wait.
    """

    def __init__(self, name: str, slots: int, queue: int) -> None:
        self.name = name
        self.slots = slots
        self.queue = queue
        self.waiting: deque[tuple[Job, Callable[[], None]]] = deque()
        self.running: set[Job] = set()
        self.mean_s = 1.0
        self.pool = ThreadPoolExecutor(slots, thread_name_prefix=f"dbrag-{name}")

    @property
    def retry_s(self) -> int:
        """Seconds after which a place in the queue should be free, by what jobs took lately."""
        return max(1, min(MAX_RETRY_S, math.ceil(self.mean_s / self.slots)))

    def took(self, seconds: float) -> None:
        """Learn how long jobs take (mean with exponential weights)."""
        self.mean_s += 0.2 * (seconds - self.mean_s)


class Board:
    """All jobs; its methods are called on the event loop of :meth:`start`.

    Args:
        lanes: by name.
        timeout_s: longest time of a job, waiting included.
        on_end: told each finished job.
    """

    def __init__(
        self,
        lanes: Mapping[str, Lane],
        timeout_s: float,
        on_end: Callable[[Job], None] | None = None,
    ) -> None:
        self.lanes = dict(lanes)
        self._timeout_s = timeout_s
        self._on_end = on_end
        self._jobs: dict[str, Job] = {}
        self._finished: OrderedDict[str, Job] = OrderedDict()
        self.stopping = False

    def submit(
        self,
        kind: str,
        lane_name: str,
        work: Callable[[Job], Any],
        *,
        job_id: str | None = None,
        listener: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> Job:
        """Take on work; ``job.future`` gets its result or its error.

        Args:
            work: called in a thread with the job; ``check()`` there raises when cancelled.
            job_id: the client's own; else one that cannot be guessed.

        Raises:
            Busy: as many jobs as may are waiting.
            Stopping: the server is going down.
            UsageError: the id is in use.
        """
        lane = self.lanes[lane_name]
        if self.stopping:
            raise Stopping("the server is going down", "try again when it is back")
        if len(lane.running) >= lane.slots and len(lane.waiting) >= lane.queue:
            raise Busy(
                f"{len(lane.waiting):,} requests are waiting already",
                f"try again in {lane.retry_s} s",
                lane.retry_s,
            )
        if job_id is not None and (job_id in self._jobs or job_id in self._finished):
            raise UsageError(f"the id {job_id!r} is in use", "choose another, or leave it out")
        job = Job(job_id or secrets.token_urlsafe(16), kind, lane_name, listener=listener)
        loop = asyncio.get_running_loop()
        self._jobs[job.id] = job
        lane.waiting.append((job, lambda: self._start(loop, lane, job, work)))
        self._next(lane)
        return job

    def get(self, job_id: str) -> Job:
        """A job that waits, runs, or ended not long ago.

        Raises:
            JobNotFound: there is none.
        """
        job = self._jobs.get(job_id) or self._finished.get(job_id)
        if job is None:
            raise JobNotFound(f"there is no job {job_id!r}", "GET /api/v1/jobs lists them")
        return job

    def active(self) -> list[Job]:
        """The jobs that wait or run, oldest first."""
        return list(self._jobs.values())

    def position(self, job: Job) -> int:
        """How many jobs are before it in the queue; 0 for one that is not waiting."""
        lane = self.lanes[job.lane]
        return next((i for i, (one, _) in enumerate(lane.waiting) if one is job), 0)

    def cancel(self, job: Job) -> None:
        """Give a job up: it leaves the queue at once, or its thread as soon as it looks."""
        job.cancellation.cancel()
        lane = self.lanes[job.lane]
        for entry in lane.waiting:
            if entry[0] is job:
                lane.waiting.remove(entry)
                self._end(job, "cancelled", error=JobCancelled("the job was cancelled"))
                return

    def cancel_all(self) -> None:
        """Give every job up."""
        for job in self.active():
            self.cancel(job)

    async def result(self, job: Job) -> Any:
        """Wait for a job, no longer than a job may take; one that is left is cancelled.

        Raises:
            TimedOut: it took too long.
            JobCancelled: somebody cancelled it.
            BaseException: whatever its work raised.
        """
        left = self._timeout_s - (time.monotonic() - job.created)
        try:
            async with asyncio.timeout(max(0.0, left)):
                return await asyncio.shield(job.future)
        except TimeoutError:
            if job.future.done():
                raise
            raise TimedOut(
                f"stopped after {self._timeout_s:g} s, the time limit of a request",
                "ask for less, or start the server with a longer --request-timeout",
            ) from None
        finally:
            if not job.future.done():
                self.cancel(job)

    async def stop(self, grace_s: float) -> None:
        """Take no more jobs, give those that run ``grace_s``, then cancel them."""
        self.stopping = True
        for job in self.active():
            if job.state == "queued":
                self.cancel(job)
        end = time.monotonic() + grace_s
        while self._jobs and time.monotonic() < end:
            await asyncio.sleep(0.05)
        self.cancel_all()
        end = time.monotonic() + 5.0
        while self._jobs and time.monotonic() < end:
            await asyncio.sleep(0.05)
        for lane in self.lanes.values():
            lane.pool.shutdown(wait=False, cancel_futures=True)

    # ---- the way of a job -----------------------------------------------------------

    def _next(self, lane: Lane) -> None:
        while lane.waiting and len(lane.running) < lane.slots:
            job, start = lane.waiting.popleft()
            lane.running.add(job)
            job.state, job.started = "running", time.monotonic()
            start()

    def _start(
        self,
        loop: asyncio.AbstractEventLoop,
        lane: Lane,
        job: Job,
        work: Callable[[Job], Any],
    ) -> None:
        def done(value: Any, error: BaseException | None) -> None:
            lane.running.discard(job)
            if error is None:
                self._end(job, "done", value)
            elif isinstance(error, Cancelled):
                self._end(job, "cancelled", error=JobCancelled("the job was cancelled"))
            else:
                self._end(job, "failed", error=error)
            lane.took(job.ran_s)
            self._next(lane)

        def call() -> None:
            value: Any = None
            error: BaseException | None = None
            try:
                with cancellable(job.cancellation):
                    check()
                    value = work(job)
            except (Exception, Cancelled) as raised:  # handed over to the request below
                error = raised
            except BaseException as raised:  # would end the event loop
                error = RuntimeError(f"{type(raised).__name__} in a job")
            _tell(loop, done, value, error)

        lane.pool.submit(contextvars.Context().run, call)

    def _end(
        self, job: Job, state: State, value: Any = None, error: BaseException | None = None
    ) -> None:
        job.state, job.ended = state, time.monotonic()
        self._jobs.pop(job.id, None)
        # Remembered by its state only: no result and no listener stays alive through it.
        past = Job(job.id, job.kind, job.lane, job.created, job.created_at, state)
        past.started, past.ended = job.started, job.ended
        self._finished[job.id] = past
        while len(self._finished) > KEPT:
            self._finished.popitem(last=False)
        if not job.future.done():
            if error is None:
                job.future.set_result(value)
            else:
                job.future.set_exception(error)
                job.future.exception()  # nobody may be waiting any more
        if self._on_end is not None:
            self._on_end(job)


def events_of(job: Job, loop: asyncio.AbstractEventLoop) -> Callable[[Mapping[str, Any]], None]:
    """A listener for ``Database.ask`` in the job's thread: passes events on, and gives up."""

    def told(event: Mapping[str, Any]) -> None:
        check()
        if job.listener is not None:
            _tell(loop, job.listener, event)

    return told


def _tell(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *values: Any) -> None:
    try:
        loop.call_soon_threadsafe(call, *values)
    except RuntimeError:
        return  # the loop is closed: the server is gone, and with it whoever was waiting
