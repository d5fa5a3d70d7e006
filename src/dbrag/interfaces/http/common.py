"""What the routes share: their service, JSON responses, and the failures each may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Path, Query, Request
from starlette.responses import Response

from dbrag.interfaces.http.answers import ErrorBody
from dbrag.interfaces.http.bodies import ID
from dbrag.interfaces.http.errors import encoded

if TYPE_CHECKING:
    from dbrag.interfaces.http.service import Service

_MEANING = {
    400: "A wrong argument, such as a table that does not exist.",
    401: "The token is missing or wrong.",
    403: "The page that asks is of another origin.",
    404: "There is no such thing.",
    405: "The address does not take this method.",
    408: "The body did not arrive in time.",
    409: "The job was cancelled.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    421: "The server is not known under this Host.",
    422: "The request is not as described, or cannot be carried out: a statement that the guard "
    "refuses or the engine rejects, a limit that was reached.",
    429: "The queue is full, or this address asks too often; Retry-After says when to come again.",
    500: "A bug in dbrag.",
    503: "A source, the index or the model cannot be used now, or the server starts or stops.",
    504: "It took longer than a request may.",
}
_RETRY = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}
_BY_ID = {
    "job_id": ("get_job", "cancel_job"),
    "result_id": (
        "get_result",
        "get_rows",
        "get_chart",
        "download_result",
        "get_source_rows",
        "drop_result",
    ),
    "entry_id": ("get_entry", "forget_entry"),
}
LINKED: dict[int | str, dict[str, Any]] = {
    200: {
        "links": {
            operation: {
                "operationId": operation,
                "parameters": {name: "$response.body#/id"},
                "description": "The answer's id is taken by it.",
            }
            for name, operations in _BY_ID.items()
            for operation in operations
        }
    }
}
"""What can be done with the ``id`` of an answer."""
_ALWAYS = (400, 401, 403, 405, 408, 413, 415, 421, 422, 429, 500, 503)


def fails(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route: what every one may answer, and ``statuses``."""
    found: dict[int | str, dict[str, Any]] = {}
    for status in sorted({*_ALWAYS, *statuses}):
        found[status] = {"model": ErrorBody, "description": _MEANING[status]}
        if status == 429:
            found[status]["headers"] = _RETRY
    return found


def respond(value: Any, status: int = 200) -> Response:
    """A response of JSON values, as they are: they are not validated a second time."""
    return Response(encoded(value), status, media_type="application/json")


def service_of(request: Request) -> Service:
    """The service of the application."""
    service: Service = request.app.state.service
    return service


Shared = Annotated[Any, Depends(service_of)]
IdPath = Annotated[str, Path(pattern=ID, examples=["qk1V0xF5bqZ8yQv7o2c3Rg"])]
Offset = Annotated[int, Query(ge=0, le=10_000_000, description="Entries passed over.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Entries returned.")]
