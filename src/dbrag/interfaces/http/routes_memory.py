"""What is remembered: feedback, learned pairs, and the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dbrag.errors import UsageError
from dbrag.interfaces import teaching
from dbrag.interfaces.http import shapes
from dbrag.interfaces.http.bodies import FeedbackBody, LearnBody, Question
from dbrag.interfaces.http.common import IdPath, Limit, Offset, Shared, fails, respond
from dbrag.interfaces.http.errors import PairNotFound

if TYPE_CHECKING:
    from dbrag.interfaces.http.service import Service

router = APIRouter(tags=["memory"])


@router.post(
    "/feedback",
    operation_id="give_feedback",
    response_model=shapes.Feedback,
    responses=fails(404, 504),
    summary="Say that an answer is right or wrong",
)
async def feedback(request: Request, service: Shared, body: FeedbackBody) -> Response:
    """A right answer, and a corrected one, become a learned pair: it answers the same question from
    then on, and is shown to the model for similar ones.
    """
    value = await service.look_up(request, "feedback", lambda: _judged(service, body))
    return respond(value)


@router.get(
    "/learned",
    operation_id="list_learned",
    response_model=shapes.LearnedPairs,
    responses=fails(504),
    summary="The learned pairs",
)
async def learned(request: Request, service: Shared) -> Response:
    """As `dbrag learn --list`."""

    def work() -> Any:
        service.index()
        found, _ = teaching.opened(service.database)
        problems = [{"line": line, "message": message} for line, message in found.problems]
        return {"pairs": teaching.listed(service.database, found), "problems": problems}

    return respond(await service.look_up(request, "learned", work))


@router.post(
    "/learned",
    operation_id="learn",
    response_model=shapes.LearnedNow,
    responses=fails(404, 504),
    summary="Keep a question with its SQL, or correct it",
)
async def learn(request: Request, service: Shared, body: LearnBody) -> Response:
    """As `dbrag learn`: the statement is run once, read-only. The pair takes the place of an older
    one of the same question and source.
    """

    def work() -> Any:
        with service.learning:
            _, path = teaching.opened(service.database)
            taught = teaching.teach(service.database, path, body.question, body.sql, body.source)
            return taught.to_dict()

    return respond(await service.look_up(request, "learn", work))


@router.delete(
    "/learned",
    operation_id="forget_learned",
    response_model=shapes.Forgotten,
    responses=fails(404, 504),
    summary="Forget the learned pairs of a question",
)
async def forget_learned(
    request: Request, service: Shared, question: Annotated[Question, Query()]
) -> Response:
    """As `dbrag learn --forget`; a question that is not among them answers 404."""

    def work() -> Any:
        with service.learning:
            found, path = teaching.opened(service.database)
            try:
                return {"forgotten": teaching.forget(found, path, question)}
            except teaching.NotLearned as error:
                raise PairNotFound(error.message, "GET /api/v1/learned lists them") from error

    return respond(await service.look_up(request, "learned", work))


@router.get(
    "/history",
    operation_id="list_history",
    response_model=shapes.Entries,
    responses=fails(),
    summary="What was asked, the latest first",
)
async def history(
    service: Shared,
    text: Annotated[
        str, Query(max_length=200, description="Only entries whose question holds this text.")
    ] = "",
    offset: Offset = 0,
    limit: Limit = 50,
) -> Response:
    """Questions and statements with their SQL, tables, counts and times; never a value of a row."""
    entries, total = service.history.latest(limit, offset, text)
    return respond({"entries": entries, "total": total, "offset": offset})


@router.get(
    "/history/{entry_id}",
    operation_id="get_entry",
    response_model=shapes.Entry,
    responses=fails(404),
    summary="One entry of the history",
)
async def entry(service: Shared, entry_id: IdPath) -> Response:
    """Its result may be kept still: `results/{id}`."""
    return respond(service.history.get(entry_id))


@router.delete(
    "/history/{entry_id}",
    operation_id="forget_entry",
    status_code=204,
    response_class=Response,
    responses=fails(404),
    summary="Forget one entry",
)
async def forget_entry(service: Shared, entry_id: IdPath) -> Response:
    """And its result, from the file of the history too."""
    service.history.forget(entry_id)
    service.results.drop(entry_id)
    return Response(status_code=204)


@router.delete(
    "/history",
    operation_id="forget_history",
    status_code=204,
    response_class=Response,
    responses=fails(),
    summary="Forget the whole history",
)
async def forget_history(service: Shared) -> Response:
    """And all results, from the file of the history too."""
    service.history.clear()
    service.results.clear()
    return Response(status_code=204)


def _judged(service: Service, body: FeedbackBody) -> dict[str, Any]:
    """Note the verdict, and keep the pair if there is one.

    Raises:
        EntryNotFound: the history has no such answer.
        DbragError: the corrected SQL does not run, or learning is off.
    """
    found = service.history.get(body.id)
    statement = body.sql or (found["sql"] if body.verdict == "right" else None)
    taught = None
    note = ""
    if statement is not None and found["kind"] == "sql":
        raise UsageError(
            "this was a statement and no question: there is nothing to learn",
            "ask the question, then correct its SQL",
        )
    if statement is None and body.verdict == "right":
        raise UsageError("this question was not answered", 'send the verdict "wrong" with its sql')
    if statement is not None:
        with service.learning:
            _, path = teaching.opened(service.database)
            source = _source_of(service, body, found)
            taught = teaching.teach(service.database, path, found["question"], statement, source)
    elif "learned" in found["warnings"]:
        note = "the answer came from a learned pair, which is still there: correct or forget it"
    service.history.judge(body.id, body.verdict)
    service.metrics.feedback(body.verdict)
    return {
        "id": body.id,
        "verdict": body.verdict,
        "learned": taught.to_dict() if taught else None,
        "note": note,
    }


def _source_of(service: Service, body: FeedbackBody, found: dict[str, Any]) -> str | None:
    """The source of the answer, for its own SQL; a correction may be of another one."""
    names = {source.name for source in service.database.sources}
    if found["source"] not in names:
        return None
    if body.sql is None:
        return str(found["source"])
    from dbrag import scope
    from dbrag.errors import DbragError

    try:
        scope.admit_on(service.database.source(found["source"]), body.sql)
    except DbragError:
        return None
    return str(found["source"])
