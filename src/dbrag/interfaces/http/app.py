"""The application: routes, the form of failures, the page, the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles

import dbrag
from dbrag.errors import DbragError
from dbrag.interfaces.http import (
    routes_ask,
    routes_catalog,
    routes_chart,
    routes_memory,
    routes_results,
    routes_state,
)
from dbrag.interfaces.http.access import API
from dbrag.interfaces.http.errors import (
    body_of,
    http_failure,
    invalid_message,
    retry_after,
    status_of,
)
from dbrag.interfaces.http.front import ClientLeft, Front

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

    from dbrag.interfaces.http.service import Service

PREFIX = "/api/v1"
PAGE = Path(__file__).parent / "page"
_ABOUT = """Ask a question in plain language, get the answer computed from a whole database.

Every failure has the body `{"error": {code, message, hint}}`. Sources are only read; `feedback` and
`learned` write the file of learned pairs. A client that leaves cancels its request.
"""
_TAGS = [
    {"name": "questions", "description": "Searching, asking, running statements."},
    {"name": "catalog", "description": "What can be asked about."},
    {"name": "results", "description": "Finished answers, kept for a while."},
    {"name": "memory", "description": "Feedback, learned pairs, history."},
    {"name": "server", "description": "Health, metrics, jobs."},
]


class _PageMount(Mount):
    """Static files for every address but those of the API, whose failures stay its own."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """No match for an address of the API, nor for one that can be no file's name."""
        if scope["path"].startswith(API) or "\0" in scope["path"]:
            return Match.NONE, {}
        return super().matches(scope)


def create_app(service: Service, page: Path = PAGE) -> Front:
    """The whole server as an ASGI application.

    Args:
        service: its database stays open; its owner closes it after the server.
        page: folder of static files for ``/``; without an ``index.html`` there is no page.
    """

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="dbrag",
        version=dbrag.__version__,
        summary="Questions to databases.",
        description=_ABOUT,
        license_info={"name": "MIT", "identifier": "MIT"},
        openapi_tags=_TAGS,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        lifespan=life,
        redirect_slashes=False,
    )
    app.state.service = service
    for routes in (
        routes_ask,
        routes_catalog,
        routes_results,
        routes_chart,
        routes_memory,
        routes_state,
    ):
        app.include_router(routes.router, prefix=PREFIX)
    _handle_failures(app)
    if (page / "index.html").is_file():
        app.router.routes.append(_PageMount("/", StaticFiles(directory=page, html=True)))
    _describe_token(app)
    return Front(app, service.options, service.metrics)


def _handle_failures(app: FastAPI) -> None:
    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, DbragError)  # noqa: S101 - registered for it
        body = body_of(error.code, error.message, error.hint)
        return _failure(request, status_of(error), error.code, body, retry_after(error))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it
        hint = f"GET {PREFIX}/openapi.json describes the request"
        body = body_of("invalid", invalid_message(error.errors()), hint)
        return _failure(request, 422, "invalid", body)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for it
        code, message, hint = http_failure(error.status_code)
        headers = {k.lower(): v for k, v in (error.headers or {}).items()}
        if error.status_code == 405:
            headers["allow"] = ", ".join(methods_of(app, request.url.path)) or "GET"
        body = body_of(code, message, hint)
        return _failure(request, error.status_code, code, body, headers)

    async def left(request: Request, _: Exception) -> Response:
        return _failure(request, 499, "client_left", b"")

    async def bug(request: Request, error: Exception) -> Response:
        number = request.scope["state"]["request_id"]
        message = f"this is a bug in dbrag ({type(error).__name__})"
        hint = f"the server's log has more under the request {number}"
        return _failure(request, 500, "bug", body_of("bug", message, hint))

    handlers: dict[type[Exception], Callable[[Request, Exception], Any]] = {
        DbragError: ours,
        RequestValidationError: invalid,
        HTTPException: http,
        ClientLeft: left,
        Exception: bug,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def methods_of(app: FastAPI, path: str) -> list[str]:
    """The methods that an address takes: the framework names those of one route only."""
    for pattern, methods in app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(pattern)), path):
            return sorted(name.upper() for name in methods)
    return []


def _failure(
    request: Request,
    status: int,
    code: str,
    body: bytes,
    headers: dict[str, str] | None = None,
) -> Response:
    request.scope["state"]["code"] = code
    return Response(body, status, headers, media_type="application/json")


def _describe_token(app: FastAPI) -> None:
    """Declare the token in the OpenAPI document, whether this server asks for one or not."""
    make = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = make()
            schema.setdefault("components", {})["securitySchemes"] = {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Asked for where the server was started with a token.",
                }
            }
            schema["security"] = [{}, {"token": []}]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
