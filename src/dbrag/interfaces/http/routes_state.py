"""Health, readiness, metrics, and the jobs that wait or run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.responses import Response

import dbrag
from dbrag.interfaces.http import shapes
from dbrag.interfaces.http.common import IdPath, Shared, fails, respond
from dbrag.interfaces.http.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from dbrag.interfaces.http.service import Service

router = APIRouter(tags=["server"])
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Counters."}
}


@router.get(
    "/health",
    operation_id="health",
    response_model=shapes.Health,
    responses=fails(),
    summary="Whether the server runs",
    openapi_extra={"security": []},
)
async def health() -> Response:
    """Answered without a token, whatever the state of sources and model."""
    return respond({"status": "ok", "version": dbrag.__version__})


@router.get(
    "/ready",
    operation_id="ready",
    response_model=shapes.Ready,
    responses=fails(503),
    summary="Whether requests are taken",
    openapi_extra={"security": []},
)
async def ready(service: Shared) -> Response:
    """503 while the index is made for the first time, and while the server stops."""
    service.check_ready()
    if service.board.stopping:
        from dbrag.interfaces.http.jobs import Stopping

        raise Stopping("the server is going down", "try again when it is back")
    return respond({"ready": True})


@router.get(
    "/metrics",
    operation_id="metrics",
    response_class=Response,
    responses=_TEXT | fails(),
    summary="Counters for Prometheus",
)
async def metrics(service: Shared) -> Response:
    """In Prometheus's text format; no label holds a question, a table or an address."""
    return Response(service.metrics.text(), headers={"content-type": CONTENT_TYPE})


@router.get(
    "/jobs",
    operation_id="list_jobs",
    response_model=shapes.Jobs,
    responses=fails(),
    summary="The jobs that wait or run",
)
async def jobs(service: Shared) -> Response:
    """Oldest first; a job is a request that is being worked on."""
    return respond({"jobs": [job.to_dict() for job in service.board.active()]})


@router.get(
    "/jobs/{job_id}",
    operation_id="get_job",
    response_model=shapes.JobState,
    responses=fails(404),
    summary="How a job stands",
)
async def job(service: Shared, job_id: IdPath) -> Response:
    """Also of a job that ended not long ago."""
    return respond(service.board.get(job_id).to_dict())


@router.post(
    "/jobs/{job_id}/cancel",
    operation_id="cancel_job",
    response_model=shapes.JobState,
    responses=fails(404),
    summary="Cancel a job",
)
async def cancel(service: Shared, job_id: IdPath) -> Response:
    """The statement in the engine and the call of the model are stopped.

    The request of the job then answers 409 `cancelled`, a stream ends with an `error` event. It may
    take a moment until the job's state is `cancelled`; of a job that has ended, nothing changes.
    """
    return respond(_cancelled(service, job_id))


def _cancelled(service: Service, job_id: str) -> dict[str, Any]:
    found = service.board.get(job_id)
    service.board.cancel(found)
    return found.to_dict()
