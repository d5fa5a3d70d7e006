"""Responses that arrive in pieces and end when their client leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from dbrag.errors import DbragError
from dbrag.interfaces.http.errors import retry_after
from dbrag.interfaces.http.front import log_bug
from dbrag.values import json_value

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from dbrag.interfaces.http.jobs import Job
    from dbrag.interfaces.http.service import Service

HEARTBEAT_S = 15.0
"""Between two signs of life, so that no proxy takes a waiting stream for a dead one."""


class Pieces(Response):
    """A response of unknown length; its pieces are no longer asked for when the client left.

    Args:
        pieces: what is sent, in order.
        at_end: called however it ends.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        *,
        media_type: str,
        headers: Mapping[str, str] | None = None,
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self.body = b""
        self._pieces = pieces
        self._at_end = at_end
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces."""
        headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        watch = asyncio.ensure_future(_left(receive))
        work = asyncio.ensure_future(self._send_all(send, headers))
        try:
            await asyncio.wait({watch, work}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
        finally:
            watch.cancel()
            work.cancel()
            if self._at_end is not None:
                self._at_end()
            await asyncio.gather(watch, work, return_exceptions=True)

    async def _send_all(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def in_threads(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Pieces that are made in threads, one after the other."""
    loop = asyncio.get_running_loop()
    while (piece := await loop.run_in_executor(None, next, pieces, None)) is not None:
        yield piece


async def events(
    service: Service, job: Job, queue: asyncio.Queue[Mapping[str, Any]]
) -> AsyncIterator[bytes]:
    """The events of a job as they arise, then its ``answer`` or its ``error``.

    Args:
        queue: gets what the job's listener is told.
    """
    number = 0
    place = service.board.position(job)
    yield event_bytes(number, "job", {"id": job.id, "state": job.state, "position": place})
    done = asyncio.ensure_future(service.board.result(job))
    try:
        while not (done.done() and queue.empty()):
            getting = asyncio.ensure_future(queue.get())
            await asyncio.wait(
                {getting, done}, timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED
            )
            if getting.done():
                entry = dict(getting.result())
                number += 1
                yield event_bytes(number, str(entry.pop("stage", "event")), entry)
                continue
            getting.cancel()
            if not done.done():
                yield b": waiting\n\n"
        try:
            yield event_bytes(number + 1, "answer", await done)
        except DbragError as error:
            told: dict[str, Any] = {"error": error.to_dict(), **_retry(error)}
            yield event_bytes(number + 1, "error", told)
        except Exception as error:
            log_bug(job.id, error, service.options.log_questions)
            text = f"this is a bug in dbrag ({type(error).__name__})"
            hint = f"the server's log has more under {job.id}"
            bug = {"code": "bug", "message": text, "hint": hint}
            yield event_bytes(number + 1, "error", {"error": bug})
    finally:
        done.cancel()


def event_bytes(number: int, name: str, value: Any) -> bytes:
    """One server-sent event; JSON has no raw line break, so one ``data`` line holds it."""
    text = json.dumps(json_value(value), allow_nan=False, separators=(",", ":"))
    return f"id: {number}\nevent: {name}\ndata: {text}\n\n".encode("ascii")


def _retry(error: DbragError) -> dict[str, int]:
    seconds = retry_after(error).get("retry-after")
    return {} if seconds is None else {"retry_s": int(seconds)}
