"""uvicorn with what it lacks: a stop that is no failure, and the protocol of ``protocol``."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from dbrag.errors import UsageError
from dbrag.interfaces.http.app import create_app
from dbrag.interfaces.http.options import ServeOptions
from dbrag.interfaces.http.protocol import HEAD_BYTES, KEEP_ALIVE_S, protocol_of

if TYPE_CHECKING:
    from dbrag.interfaces.http.service import Service


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
