"""Searching, asking and running statements."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dbrag.errors import DbragError
from dbrag.interfaces.http import answers
from dbrag.interfaces.http.bodies import AskBody, SearchBody, SqlBody, StreamBody
from dbrag.interfaces.http.common import LINKED, Shared, fails, respond
from dbrag.interfaces.http.service import ASK, LOOK_UP
from dbrag.interfaces.http.stream import Pieces, events

if TYPE_CHECKING:
    from dbrag.interfaces.http.service import Listener, Service
    from dbrag.types import Answer

router = APIRouter(tags=["questions"])
STEP_ROWS = 20
_SQL_LEAVES_OUT = ("text", "votes", "tokens")
_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "id": {"type": "string", "description": "Its number, from 0."},
        "event": {"type": "string", "description": "Its name.", "examples": ["retrieve"]},
        "data": {
            "type": "string",
            "description": "One JSON object on one line.",
            "contentMediaType": "application/json",
        },
    },
    "required": ["id", "event", "data"],
}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `job` first; then, as they arise, `index`, `retrieve` "
        "(the candidates), `learned`, `rerank`, `select`, `program` (each with its SQL and what "
        "became of it), `vote`, `step`; at last either `answer` (as of `ask`) or `error` "
        '(`{"error": {code, message, hint}, "retry_s"?}`). Other names may be added.',
        "content": {
            "text/event-stream": {
                "schema": _EVENT,
                "example": 'id: 0\nevent: job\ndata: {"id":"qk1V0xF5bqZ8yQv7o2c3Rg",'
                '"state":"running","position":0}\n\n',
            }
        },
    }
}


@router.post(
    "/search",
    operation_id="search",
    response_model=answers.SearchResult,
    responses=fails(409, 504),
    summary="Rank the tables for a question",
)
async def search(request: Request, service: Shared, body: SearchBody) -> Response:
    """No language model is asked, unless `rerank` or the settings say so."""
    request.scope["state"]["question"] = body.question
    lane = ASK if _may_rerank(service, body.rerank) else LOOK_UP

    def work(listener: Listener, _: str) -> Any:
        service.index(listener)
        return service.database.search(
            body.question,
            top=body.top,
            k=body.k,
            tables=body.tables,
            exclude=body.exclude,
            rerank=body.rerank,
            on_event=listener,
        ).to_dict()

    return respond(await service.run(request, "search", lane, work, job_id=body.id))


@router.post(
    "/ask",
    operation_id="ask",
    response_model=answers.Answer,
    responses=LINKED | fails(409, 504),
    summary="Answer a question",
)
async def ask(request: Request, service: Shared, body: AskBody) -> Response:
    """The answer is computed by the engine of the source.

    A question that cannot be answered is no failure of the request: `status` is then `unanswerable`
    or `failed`, and `error` says why.
    """
    request.scope["state"]["question"] = body.question

    def work(listener: Listener, job_id: str) -> Any:
        return service.finished("ask", job_id, _asked(service, body, listener))

    return respond(await service.run(request, "ask", ASK, work, job_id=body.id))


@router.post(
    "/ask/stream",
    operation_id="ask_stream",
    response_class=Response,
    responses=_STREAM | fails(409, 504),
    summary="Answer a question, and tell each stage as it arises",
)
async def ask_stream(request: Request, service: Shared, body: StreamBody) -> Response:
    """When the client leaves, the job is cancelled."""
    request.scope["state"]["question"] = body.question
    queue: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()

    def work(listener: Listener, job_id: str) -> Any:
        answer = _asked(service, body, listener)
        if body.steps:
            _tell_steps(service, answer, listener)
        return service.finished("ask", job_id, answer)

    job = service.submit(
        request, "ask", ASK, work, job_id=body.id, listener=queue.put_nowait
    )  # fmt: skip

    def at_end() -> None:
        if not job.future.done():
            service.board.cancel(job)

    return Pieces(
        events(service, job, queue),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
        at_end=at_end,
    )


@router.post(
    "/sql",
    operation_id="run_sql",
    response_model=answers.SqlAnswer,
    responses=LINKED | fails(404, 409, 504),
    summary="Run one read-only statement",
)
async def sql(request: Request, service: Shared, body: SqlBody) -> Response:
    """Through the guard and the limits; what it does not admit answers 422 `refused`."""
    request.scope["state"]["question"] = body.sql

    def work(_: Listener, job_id: str) -> Any:
        answer = service.database.sql(body.sql, max_rows=body.max_rows, source=body.source)
        value = service.finished("sql", job_id, answer)
        return {name: one for name, one in value.items() if name not in _SQL_LEAVES_OUT}

    return respond(await service.run(request, "sql", LOOK_UP, work, job_id=body.id))


# ---- in a thread ------------------------------------------------------------------------


def _asked(service: Service, body: AskBody, listener: Listener) -> Answer:
    service.index(listener)
    return service.database.ask(
        body.question,
        votes=body.votes,
        tables=body.tables,
        exclude=body.exclude,
        dry_run=body.dry_run,
        max_rows=body.max_rows,
        rerank=body.rerank,
        on_event=listener,
    )


def _tell_steps(service: Service, answer: Answer, listener: Listener) -> None:
    """What each step but the last gives; the last one gives the answer."""
    from dbrag.reasoning.chain import compose

    program = answer.program
    if program is None or answer.execution is None:
        return
    source = answer.tables[0].source if answer.tables else None
    for number, step in enumerate(program.steps[:-1], start=1):
        told: dict[str, Any] = {"stage": "step", "name": step.name, "sql": step.sql}
        try:
            statement = compose(program.steps[:number], program.dialect)
            found = service.database.sql(statement, max_rows=STEP_ROWS, source=source)
            assert found.execution is not None  # noqa: S101 - a statement gives one or raises
            told |= {**found.execution.to_dict(STEP_ROWS), "error": None}
        except DbragError as error:
            told |= {"error": error.to_dict()}
        listener(told)


def _may_rerank(service: Service, rerank: bool | None) -> bool:
    """Whether a search may wait for the chat model."""
    from dbrag.models.load import is_remote
    from dbrag.retrieval.auto import on_by_default

    settings = service.database.settings
    if rerank is not None:
        return rerank
    if settings.rerank != "auto":
        return settings.rerank == "on"
    return not settings.offline and on_by_default(settings.model, is_remote(settings.model))
