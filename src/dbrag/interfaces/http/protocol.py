"""uvicorn's HTTP/1.1 with limits on slow and damaged heads; needs uvicorn only."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from dbrag.interfaces.http.errors import body_of

HEAD_BYTES = 32_768
KEEP_ALIVE_S = 15
MAX_CONNECTIONS = 1000
"""More are closed at once: each costs a descriptor and some memory."""


def protocol_of(head_s: float) -> type[H11Protocol]:
    """A protocol that closes a connection whose request head takes longer than ``head_s``."""

    class Protocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > MAX_CONNECTIONS:
                transport.abort()
                return
            self._wait_for_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                self._stop_waiting()
            elif self._timer is None:
                self._wait_for_head()

        def _wait_for_head(self) -> None:
            self._stop_waiting()
            self._timer = self.loop.call_later(head_s, self._too_slow)

        def _stop_waiting(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _too_slow(self) -> None:
            self._timer = None
            if not self.transport.is_closing():
                self._answer(408, "slow", "the head of the request did not arrive in time")

        def send_400_response(self, msg: str) -> None:
            self._answer(400, "http", "this is no valid HTTP request")

        def _answer(self, status: int, code: str, message: str) -> None:
            body = body_of(code, message)
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ]
            events: tuple[Any, ...] = (
                h11.Response(status_code=status, headers=headers),
                h11.Data(data=body),
                h11.EndOfMessage(),
            )
            with contextlib.suppress(h11.LocalProtocolError):  # the response has begun
                for event in events:
                    self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return Protocol
