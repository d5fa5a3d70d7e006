"""What can be asked about: sources, tables with columns and keys, samples, joins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dbrag import scope
from dbrag.errors import UsageError
from dbrag.interfaces.http import shapes
from dbrag.interfaces.http.bodies import TableName
from dbrag.interfaces.http.common import Limit, Offset, Shared, fails, respond
from dbrag.interfaces.http.errors import TableNotFound

if TYPE_CHECKING:
    from dbrag.catalog.joins import JoinEdge
    from dbrag.index.store import Index
    from dbrag.interfaces.http.service import Service
    from dbrag.types import Table, TableRef

router = APIRouter(tags=["catalog"])
OneTable = Annotated[TableName, Query(alias="table")]


@router.get(
    "/sources",
    operation_id="list_sources",
    response_model=shapes.Sources,
    responses=fails(504),
    summary="The open sources and the model",
)
async def sources(request: Request, service: Shared) -> Response:
    """As `dbrag status` tells of them, with their dialects."""
    return respond(await service.look_up(request, "sources", lambda: _sources(service)))


@router.get(
    "/tables",
    operation_id="list_tables",
    response_model=shapes.TableList,
    responses=fails(404, 504),
    summary="The tables, page by page",
)
async def tables(
    request: Request,
    service: Shared,
    source: Annotated[str | None, Query(max_length=500, description="Only of this.")] = None,
    text: Annotated[
        str, Query(max_length=200, description="Only those whose name holds this text.")
    ] = "",
    offset: Offset = 0,
    limit: Limit = 100,
) -> Response:
    """In the order of sources, schemas and names, with the names of their columns."""

    def work() -> Any:
        if source is not None:
            service.database.source(source)
        return _tables(service, source, text, offset, limit)

    return respond(await service.look_up(request, "tables", work))


@router.get(
    "/table",
    operation_id="get_table",
    response_model=shapes.TableState,
    responses=fails(404, 504),
    summary="One table with its columns and keys",
)
async def table(request: Request, service: Shared, name: OneTable) -> Response:
    """Columns with types, comments and what a bounded read of them showed."""

    def work() -> Any:
        index = service.index()
        return _table(index.catalog.by_ref[_resolved(index, name)])

    return respond(await service.look_up(request, "table", work))


@router.get(
    "/samples",
    operation_id="get_samples",
    response_model=shapes.Samples,
    responses=fails(404, 504),
    summary="Some rows of a table",
)
async def samples(request: Request, service: Shared, name: OneTable) -> Response:
    """As they were indexed; for live rows run a statement."""

    def work() -> Any:
        index = service.index()
        found = index.catalog.by_ref[_resolved(index, name)]
        return {
            "table": found.ref.to_dict(),
            "columns": [column.name for column in found.columns],
            "rows": [list(row) for row in found.sample_rows],
        }

    return respond(await service.look_up(request, "samples", work))


@router.get(
    "/joins",
    operation_id="list_joins",
    response_model=shapes.Joins,
    responses=fails(404, 504),
    summary="Which tables join which",
)
async def joins(
    request: Request,
    service: Shared,
    name: Annotated[list[TableName] | None, Query(alias="table", max_length=100)] = None,
    kind: Annotated[
        Literal["all", "declared", "inferred"], Query(description="Which joins.")
    ] = "all",
    offset: Offset = 0,
    limit: Limit = 100,
) -> Response:
    """Declared ones first, then the most confident; of all tables, or those of some."""

    def work() -> Any:
        return _joins(service, name or [], kind, offset, limit)

    return respond(await service.look_up(request, "joins", work))


# ---- in a thread ------------------------------------------------------------------------


def _resolved(index: Index, name: str) -> TableRef:
    try:
        return scope.resolve(index.catalog, name)
    except UsageError as error:
        raise TableNotFound(error.message, error.hint) from error


def _sources(service: Service) -> dict[str, Any]:
    from dbrag.models.load import is_remote
    from dbrag.reasoning.learned import learned_path

    database = service.database
    state = database.status()
    dialects = {source.name: source.dialect for source in database.sources}
    lines = [
        {**line, "dialect": dialects.get(line["name"])}
        for line in state["sources"]
        if line["status"] != "other"
    ]
    settings = database.settings
    return {
        **{name: value for name, value in state.items() if name != "sources"},
        "sources": lines,
        "model": settings.model,
        "remote": is_remote(settings.model),
        "history": service.history.on,
        "learning": learned_path(settings, database.index_dir) is not None,
    }


def _tables(
    service: Service, source: str | None, text: str, offset: int, limit: int
) -> dict[str, Any]:
    catalog = service.index().catalog
    names = {one.name for one in service.database.sources}
    wanted = text.casefold()
    found = [
        ref
        for ref in catalog.refs
        if ref.source in names
        and source in (None, ref.source)
        and wanted in str(ref).casefold()
    ]  # fmt: skip
    page = [catalog.by_ref[ref] for ref in found[offset : offset + limit]]
    return {"tables": [_line(one) for one in page], "total": len(found), "offset": offset}


def _line(table: Table) -> dict[str, Any]:
    return {
        "table": table.ref.to_dict(),
        "text": str(table.ref),
        "kind": table.kind,
        "columns": [column.name for column in table.columns],
        "rows": table.row_count,
    }


def _table(table: Table) -> dict[str, Any]:
    profiles = {profile.column: profile for profile in table.profile}

    def profile_of(column: str) -> dict[str, Any] | None:
        profile = profiles.get(column)
        if profile is None:
            return None
        return {
            "nulls": profile.nulls,
            "distinct": profile.distinct,
            "minimum": profile.minimum,
            "maximum": profile.maximum,
            "frequent": [{"value": v, "count": n} for v, n in profile.frequent],
        }

    return {
        **_line(table),
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "nullable": column.nullable,
                "comment": column.comment,
                "synonyms": list(column.synonyms),
                "profile": profile_of(column.name),
            }
            for column in table.columns
        ],
        "comment": table.comment,
        "primary_key": list(table.primary_key),
        "foreign_keys": [
            {
                "columns": list(key.columns),
                "target": key.target.to_dict(),
                "target_columns": list(key.target_columns),
            }
            for key in table.foreign_keys
        ],
        "estimate": table.estimate,
        "sampled": table.sampled,
        "rows_read": table.rows_read,
        "redacted": list(table.redacted),
        "notes": list(table.notes),
    }


def _joins(
    service: Service, names: list[str], kind: str, offset: int, limit: int
) -> dict[str, Any]:
    from dbrag.interfaces.cli.joins import joins_json

    index = service.index()
    refs = {_resolved(index, name) for name in names}
    open_now = {source.name for source in service.database.sources}

    def fits(edge: JoinEdge) -> bool:
        wanted = kind == "all" or edge.declared == (kind == "declared")
        about = not refs or edge.left in refs or edge.right in refs
        return wanted and about and edge.left.source in open_now

    found = [edge for edge in index.joins.edges if fits(edge)]
    page = joins_json(found[offset : offset + limit], index.join_problems)
    return {**page, "total": len(found), "offset": offset}
