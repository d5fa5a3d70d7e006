"""What stands before the application: access, sizes and times, headers, log, metrics.

Plain ASGI, so that nothing of a refused request is parsed and no response is buffered.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from dbrag.interfaces.http import logs
from dbrag.interfaces.http.access import API, Access, Refusal
from dbrag.interfaces.http.errors import body_of

if TYPE_CHECKING:
    from dbrag.interfaces.http.metrics import Metrics
    from dbrag.interfaces.http.options import ServeOptions

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SEND_S = 30.0
"""A client that takes no byte for so long is given up."""
_COMMON = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
API_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)


class ClientLeft(Exception):
    """Nobody reads the response any more."""


class Front:
    """The server's outermost layer.

    Args:
        app: the application; it gets requests that are let in, bodies already read.
        options: sizes, times, and what may be logged.
        metrics: is told each response.
    """

    def __init__(self, app: App, options: ServeOptions, metrics: Metrics) -> None:
        self.app = app
        self._options = options
        self._access = Access(options)
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; everything but HTTP passes (the lifespan) or ends (WebSockets)."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        await _Exchange(self, scope, receive, send).run()

    # What an exchange asks of it.

    @property
    def options(self) -> ServeOptions:
        """As given."""
        return self._options

    @property
    def access(self) -> Access:
        """The rules."""
        return self._access

    @property
    def metrics(self) -> Metrics:
        """As given."""
        return self._metrics


class _Exchange:
    """One request and its response."""

    def __init__(self, front: Front, scope: Scope, receive: Receive, send: Send) -> None:
        self._front = front
        self._scope = scope
        self._receive = receive
        self._send = send
        self._started = time.perf_counter()
        self._status = 0
        self._bytes = 0
        self._replay: list[Message] = []
        self.id = secrets.token_hex(8)
        self._headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            self._headers.setdefault(name.decode("latin-1").lower(), []).append(
                value.decode("latin-1").strip()
            )
        scope.setdefault("state", {})["request_id"] = self.id

    async def run(self) -> None:
        scope = self._scope
        client = scope.get("client") or ("", 0)
        code: str | None = None
        try:
            refusal = self._front.access.refusal(
                scope["method"], scope["path"], self._headers, str(client[0])
            )
            refusal = refusal or await self._body_refusal()
            if refusal is not None:
                code = refusal.code
                await self._refuse(refusal)
            elif scope["method"] == "OPTIONS" and self._front.access.cors(self._headers):
                await self._preflight()
            else:
                await self._front.app(scope, self._again, self._out)
        except (ClientLeft, ConnectionError):
            code = "client_left"
        except asyncio.CancelledError:
            code = "stopping"
            raise
        except Exception as error:
            code = "bug"
            log_bug(self.id, error, self._front.options.log_questions)
            if not self._status:
                await self._refuse(
                    Refusal(
                        500,
                        "bug",
                        f"this is a bug in dbrag ({type(error).__name__})",
                        f"the server's log has more under the request {self.id}",
                    )
                )
        finally:
            self._tell(code)

    # ---- the request ----------------------------------------------------------------

    async def _body_refusal(self) -> Refusal | None:
        """Read the body, within its limits; kept to be read again by the application."""
        lengths = self._headers.get("content-length", [])
        if not lengths and "transfer-encoding" not in self._headers:
            return None
        limit = self._front.options.body_bytes
        too_large = Refusal(
            413, "too_large", f"the body has more than {limit:,} bytes", "send less"
        )
        if lengths and (not lengths[0].isdigit() or int(lengths[0][:20]) > limit):
            return too_large
        body = bytearray()
        end = time.monotonic() + self._front.options.body_s
        more = True
        while more:
            try:
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    message = await self._receive()
            except TimeoutError:
                return Refusal(408, "slow", "the body did not arrive in time")
            if message["type"] == "http.disconnect":
                raise ClientLeft
            body += message.get("body", b"")
            if len(body) > limit:
                return too_large
            more = message.get("more_body", False)
        self._replay.append({"type": "http.request", "body": bytes(body), "more_body": False})
        kind = self._headers.get("content-type", [""])[0].partition(";")[0].strip().casefold()
        if body and self._scope["path"].startswith(API) and kind != "application/json":
            return Refusal(
                415, "media_type", "the body is not sent as JSON", "Content-Type: application/json"
            )
        return None

    @property
    def _has_unread_body(self) -> bool:
        told = self._headers.get("content-length", ["0"])[0]
        return not self._replay and (told != "0" or "transfer-encoding" in self._headers)

    async def _again(self) -> Message:
        return self._replay.pop() if self._replay else await self._receive()

    # ---- the response ---------------------------------------------------------------

    async def _out(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message = {**message, "headers": self._with_ours(message.get("headers", []))}
        else:
            self._bytes += len(message.get("body", b""))
        try:
            # Not asyncio.wait_for: before Python 3.12 it swallows a cancellation that comes as
            # the message has just been sent (CPython gh-86296), and nobody cancels twice.
            async with asyncio.timeout(SEND_S):
                await self._send(message)
        except (OSError, TimeoutError) as error:
            raise ClientLeft from error

    def _with_ours(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        api = self._scope["path"].startswith(API)
        cors = self._front.access.cors(self._headers)
        ours = {
            **_COMMON,
            "content-security-policy": API_POLICY if api else PAGE_POLICY,
            "cross-origin-resource-policy": "cross-origin" if cors else "same-origin",
            "x-request-id": self.id,
            **cors,
        }
        if api:
            ours["cache-control"] = "no-store"
        kept = [(name, value) for name, value in headers if name.decode().lower() not in ours]
        return kept + [(name.encode(), value.encode("latin-1")) for name, value in ours.items()]

    async def _refuse(self, refusal: Refusal) -> None:
        body = body_of(refusal.code, refusal.message, refusal.hint)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *((name.encode(), value.encode()) for name, value in refusal.headers.items()),
        ]
        if self._has_unread_body:
            # Nobody waits for the rest of a body that is not wanted.
            headers.append((b"connection", b"close"))
        start = {"type": "http.response.start", "status": refusal.status, "headers": headers}
        await self._out(start)
        body = b"" if self._scope["method"] == "HEAD" else body
        await self._out({"type": "http.response.body", "body": body, "more_body": False})

    async def _preflight(self) -> None:
        await self._out({"type": "http.response.start", "status": 204, "headers": []})
        await self._out({"type": "http.response.body", "body": b"", "more_body": False})

    def _tell(self, code: str | None) -> None:
        seconds = time.perf_counter() - self._started
        state = self._scope["state"]
        route = _route(self._scope)
        status = self._status or 499
        self._front.metrics.response(route, self._scope["method"], status, seconds)
        # The route, not the path, and no query: nothing that a client wrote is logged.
        logs.event(
            "request",
            logging.WARNING if status >= 500 else logging.INFO,
            request=self.id,
            method=self._scope["method"] if self._scope["method"].isalpha() else "other",
            route=route,
            status=status,
            ms=round(1000 * seconds, 1),
            bytes=self._bytes,
            code=code or state.get("code"),
            job=state.get("job"),
            question=state.get("question") if self._front.options.log_questions else None,
        )


def _route(scope: Scope) -> str:
    """The pattern of the address: of few values, and without what a client wrote."""
    if not scope["path"].startswith(API):
        return "page"
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return "other"
    return path if path.startswith(API) else f"{API}v1{path}"


def log_bug(request_id: str, error: Exception, with_message: bool) -> None:
    """Log an exception that nobody expected: where it arose, and of what kind it is."""
    # The message of an exception may repeat a question or a value.
    where = "".join(traceback.format_tb(error.__traceback__))
    message = str(error)[:2000] if with_message else None
    logs.event(
        "bug",
        logging.ERROR,
        request=request_id,
        kind=type(error).__name__,
        message=message,
        traceback=where,
    )
