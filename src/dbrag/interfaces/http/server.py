"""uvicorn with what it lacks: limits on slow and damaged heads, and a stop that is no failure."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dbrag.errors import UsageError
from dbrag.interfaces.http.app import create_app
from dbrag.interfaces.http.errors import body_of
from dbrag.interfaces.http.options import ServeOptions

if TYPE_CHECKING:
    from dbrag.interfaces.http.service import Service

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


class Server(uvicorn.Server):
    """A server that ends its jobs with itself, and does not raise a signal again at the end.

    Args:
        service: stopped as soon as no more connections are taken.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let running jobs end while their connections are waited for."""
        stopping = asyncio.ensure_future(self._service.stop())
        await super().shutdown(sockets)
        if self.force_exit:
            self._service.board.cancel_all()
        await stopping

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM while it runs; afterwards they are whose they were."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        taken = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in taken}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal lets running jobs end, a second one does not."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True


def bind(options: ServeOptions) -> socket.socket:
    """A listening socket, so that the port is known and taken before anything else is done.

    Raises:
        UsageError: the address cannot be taken.
    """
    try:
        found = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        try:
            if hasattr(socket, "SO_REUSEADDR") and not hasattr(signal, "CTRL_C_EVENT"):
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise UsageError(
            f"cannot listen on {options.host!r}, port {options.port}: {error.strerror or error}",
            "choose another: --port 0 takes a free one",
        ) from error
    return listening


def url_of(listening: socket.socket, options: ServeOptions) -> str:
    """``http://127.0.0.1:8321`` for people and programs."""
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"http://{host}:{listening.getsockname()[1]}"


def make_server(service: Service) -> Server:
    """The server of a service; ``run`` it with ``sockets=[bind(options)]``."""
    options = service.options
    config = uvicorn.Config(
        create_app(service),
        http=protocol_of(options.body_s),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # what a client says of itself is not believed
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        # A little more than jobs get: those that were cancelled still answer.
        timeout_graceful_shutdown=int(options.grace_s) + 6,
    )
    return Server(config, service)
