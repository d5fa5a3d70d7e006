"""The server on standard input and output, or over streamable HTTP behind ``http.front``.

Over HTTP the rules of ``dbrag serve`` hold for every path: Host, Origin, token, rate, size and time
of requests. Standard output is used by nothing but the protocol: the SDK keeps it for itself and
lets whatever else is written there go to standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
from typing import TYPE_CHECKING, Any

from dbrag.errors import UsageError
from dbrag.interfaces.http.options import ServeOptions, is_loopback_host, read_token

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from mcp.server.mcpserver import MCPServer

    from dbrag.interfaces.http.front import Receive, Scope, Send
    from dbrag.interfaces.mcp.service import Service

DEFAULT_HOST = "127.0.0.1"
PATH = "/mcp"
BODY_BYTES = 1_048_576
MAX_SESSIONS = 200
IDLE_S = 1800.0
_ADDRESS = re.compile(r"(?:(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]]+)):)?(?P<port>\d{1,5})")
_GUARDED = "/api/mcp"
"""Before every path, for the rules of ``http.access``: they ask for the token there."""


def http_options(
    address: str, token_file: str | None, hosts: tuple[str, ...], timeout_s: float
) -> ServeOptions:
    """Where and for whom to listen, for ``--http HOST:PORT``.

    Raises:
        UsageError: no address, or one that others reach without a token; a token that is none.
    """
    match = _ADDRESS.fullmatch(address.strip())
    if match is None:
        raise UsageError(
            f"--http must be HOST:PORT or PORT, not {address!r}", "for example --http 8322"
        )
    host = match["v6"] or match["name"] or DEFAULT_HOST
    token = read_token(token_file, os.environ)
    if token is None and not is_loopback_host(host):
        raise UsageError(
            f"without a token nothing but this machine may be served, not {host!r}",
            f"set DBRAG_API_TOKEN or --token-file FILE, or use --http {match['port']}",
        )
    return ServeOptions(
        host=host,
        port=int(match["port"]),
        token=token,
        hosts=hosts,
        timeout_s=timeout_s,
        body_bytes=BODY_BYTES,
    )


def run_stdio(server: MCPServer[Any], service: Service) -> int:
    """Serve the process that started this one, until it closes standard input: 0.

    After Ctrl-C or SIGTERM the service is closed and 130 or 143 given back, but a thread goes on
    waiting for standard input: nothing but the end of the process ends it.

    Raises:
        BrokenPipeError: that process does not read any more.
    """
    runner = asyncio.Runner()
    try:
        code = runner.run(_until_signal(server.run_stdio_async, service))
    except BaseExceptionGroup as group:
        if group.split(BrokenPipeError)[1] is None:
            raise BrokenPipeError("nobody reads standard output any more") from group
        raise
    if not code:
        runner.close()  # waits for all threads
    return code


def run_http(
    server: MCPServer[Any],
    service: Service,
    options: ServeOptions,
    ready: Callable[[str], None],
) -> None:
    """Serve over HTTP until Ctrl-C or SIGTERM, which are no failure.

    Args:
        ready: is told the URL once it is listened on.

    Raises:
        UsageError: the address cannot be taken.
    """
    import uvicorn

    from dbrag.interfaces.http.protocol import HEAD_BYTES, KEEP_ALIVE_S, protocol_of

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # they are looked at in _until_signal

    listening = _listen(options)
    config = uvicorn.Config(
        http_app(server, options),
        http=protocol_of(options.body_s),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # what a client says of itself is not believed
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,  # streams of idle clients never end by themselves
    )
    serving = Server(config)

    def stop() -> None:
        serving.should_exit = True

    host = f"[{options.host}]" if ":" in options.host else options.host
    ready(f"http://{host}:{listening.getsockname()[1]}{PATH}")
    with listening, asyncio.Runner() as runner:
        runner.run(_until_signal(lambda: serving.serve(sockets=[listening]), service, stop))


def _listen(options: ServeOptions) -> socket.socket:
    """A listening socket, so that the port is known before anything is served.

    Raises:
        UsageError: the address cannot be taken.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family, backlog=128)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {options.host!r}, port {options.port}: {error.strerror or error}",
            "choose another: --http 0 takes a free port",
        ) from error


def http_app(
    server: MCPServer[Any], options: ServeOptions
) -> Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]:
    """The ASGI application with the rules of access before it."""
    from mcp.server.transport_security import TransportSecuritySettings

    from dbrag.interfaces.http.front import Front

    app = server.streamable_http_app(
        streamable_http_path=_GUARDED + PATH,
        max_request_body_size=options.body_bytes,
        session_idle_timeout=IDLE_S,
        max_sessions=MAX_SESSIONS,
        # Host and Origin have been looked at by the front.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    front = Front(app, options, _Unmeasured())  # type: ignore[arg-type]

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = _GUARDED + scope["path"]
            scope = {**scope, "path": path, "raw_path": path.encode("utf-8", "surrogatepass")}
        await front(scope, receive, send)

    return guarded


class _Unmeasured:
    """No metrics are kept."""

    def response(self, route: str, method: str, status: int, seconds: float) -> None:
        """Forget it."""


async def _until_signal(
    serve: Callable[[], Coroutine[Any, Any, None]],
    service: Service,
    stop: Callable[[], None] | None = None,
) -> int:
    """Serve until it ends by itself (0) or a signal comes: 128 and its number.

    Args:
        stop: makes it end after a signal; None: nothing can.
    """
    loop = asyncio.get_running_loop()
    signalled: asyncio.Future[int] = loop.create_future()

    def stopped(number: int) -> None:
        if not signalled.done():
            signalled.set_result(128 + number)

    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, a thread
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped, int(number))
    serving = asyncio.ensure_future(serve())
    try:
        waited: set[asyncio.Future[Any]] = {serving, signalled}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if stop is not None:
            stop()
        await service.close()
    if serving.done() or stop is not None:
        await serving
    return signalled.result() if signalled.done() else 0
