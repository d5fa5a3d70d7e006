"""Kept results: shown again, page by page, as files, and the source rows behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dbrag.interfaces.http import answers, results
from dbrag.interfaces.http.bodies import MAX_ROWS
from dbrag.interfaces.http.common import IdPath, Limit, Offset, Shared, fails, respond
from dbrag.interfaces.http.stream import Pieces, in_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrag.types import Execution

router = APIRouter(tags=["results"])
ReadingNumber = Annotated[
    int | None, Query(ge=0, le=100, description="A reading of the answer, from 0, instead of it.")
]
_FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The whole result, exactly. Cells are as they are: a spreadsheet program "
        "may take one that begins with = for a formula.",
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {"type": "object"}},
        },
    }
}


@router.get(
    "/results/{result_id}",
    operation_id="get_result",
    response_model=answers.Answer,
    responses=fails(404, 504),
    summary="A kept answer again",
)
async def result(
    request: Request,
    service: Shared,
    result_id: IdPath,
    max_rows: Annotated[int, Query(ge=0, le=MAX_ROWS, description="Rows in the response.")] = 50,
) -> Response:
    """The latest answers are kept in memory; an older one answers 404."""

    def work() -> Any:
        from dataclasses import replace

        answer = replace(service.results.get(result_id), max_rows=max_rows)
        return {"id": result_id, **answer.to_dict()}

    return respond(await service.look_up(request, "result", work))


@router.delete(
    "/results/{result_id}",
    operation_id="drop_result",
    status_code=204,
    response_class=Response,
    responses=fails(404),
    summary="Forget a kept answer",
)
async def drop(service: Shared, result_id: IdPath) -> Response:
    """Its rows leave the server's memory."""
    service.results.get(result_id)
    service.results.drop(result_id)
    return Response(status_code=204)


@router.get(
    "/results/{result_id}/rows",
    operation_id="get_rows",
    response_model=answers.Page,
    responses=fails(404, 504),
    summary="Rows of a kept result, page by page",
)
async def rows(
    request: Request,
    service: Shared,
    result_id: IdPath,
    reading: ReadingNumber = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> Response:
    """In the order of the result."""

    def work() -> Any:
        execution = results.execution_of(service.results.get(result_id), reading)
        return results.page(execution, offset, limit)

    return respond(await service.look_up(request, "rows", work))


@router.get(
    "/results/{result_id}/file",
    operation_id="download_result",
    response_class=Response,
    responses=_FILES | fails(404, 504),
    summary="A kept result as a file",
)
async def download(
    request: Request,
    service: Shared,
    result_id: IdPath,
    form: Annotated[
        Literal["csv", "parquet", "json"], Query(alias="format", description="Of the file.")
    ] = "csv",
    reading: ReadingNumber = None,
) -> Response:
    """All rows, whatever `max_rows` was."""

    def work() -> Any:
        return _pieces(results.execution_of(service.results.get(result_id), reading), form)

    pieces = await service.look_up(request, "file", work)
    name = f"dbrag-{result_id}.{form}"  # an id has no character that a header gives a meaning
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Pieces(in_threads(pieces), media_type=results.MEDIA_TYPES[form], headers=headers)


@router.get(
    "/results/{result_id}/source-rows",
    operation_id="get_source_rows",
    response_model=answers.SqlAnswer,
    responses=fails(404, 504),
    summary="The source rows behind a row or a cell",
)
async def source_rows(
    request: Request,
    service: Shared,
    result_id: IdPath,
    row: Annotated[int, Query(ge=0, le=10_000_000, description="From 0.")] = 0,
    column: Annotated[int | None, Query(ge=0, le=10_000, description="From 0; none: all.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Rows at most.")] = 20,
    reading: ReadingNumber = None,
) -> Response:
    """They come from a second statement; a program whose rows cannot be traced answers 400."""

    def work() -> Any:
        answer = results.read_as(service.results.get(result_id), reading)
        value = service.database.source_rows(answer, row, column, limit).to_dict()
        for name in ("text", "votes", "tokens"):
            del value[name]
        return {"id": result_id, **value}

    return respond(await service.look_up(request, "source-rows", work))


def _pieces(execution: Execution, form: str) -> Iterator[bytes]:
    if form == "csv":
        return results.csv_chunks(execution)
    if form == "json":
        return results.json_chunks(execution)
    return results.file_chunks(results.parquet_file(execution))
