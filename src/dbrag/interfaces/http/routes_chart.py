"""The chart of a kept result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from dbrag.interfaces.charts import choice, drawing
from dbrag.interfaces.http import results
from dbrag.interfaces.http.answers import Shape
from dbrag.interfaces.http.common import IdPath, Shared, fails, respond

if TYPE_CHECKING:
    from dbrag.types import Execution

router = APIRouter(tags=["results"])
_drawer = drawing.Drawer()


class Drawn(Shape):
    """A chart, or why there is none."""

    kind: choice.Kind | None = Field(description="Null where no chart suits.")
    reason: str = Field(description="Why there is none; else empty.")
    description: str = Field(description="The chart in a sentence.")
    notes: list[str] = Field(description="What of the result is not drawn.")
    vega_lite: dict[str, Any] | None = Field(description="The specification, with its data.")
    svg: str | None = Field(description="The drawing; names and values in it are text.")


@router.get(
    "/results/{result_id}/chart",
    operation_id="get_chart",
    response_model=Drawn,
    responses=fails(404, 504),
    summary="A chart of a kept result, where one suits",
)
async def draw(
    request: Request,
    service: Shared,
    result_id: IdPath,
    theme: Annotated[
        Literal["light", "dark"], Query(description="Colours for this background.")
    ] = "light",
    width: Annotated[int, Query(ge=240, le=1600, description="Pixels.")] = 640,
    reading: Annotated[
        int | None, Query(ge=0, le=100, description="A reading of the answer, from 0.")
    ] = None,
) -> Response:
    """Bars, lines or points, decided from the types and values of the columns."""

    def work() -> Any:
        execution = results.execution_of(service.results.get(result_id), reading)
        return _drawn(execution, theme, width)

    return respond(await service.look_up(request, "chart", work))


def _drawn(execution: Execution, theme: drawing.Theme, width: int) -> dict[str, Any]:
    nothing: dict[str, Any] = {
        "kind": None, "reason": "", "description": "", "notes": [], "vega_lite": None, "svg": None,
    }  # fmt: skip
    if len(execution.rows) > choice.MAX_MARKS:  # no Arrow copy of a result that is not drawn
        return nothing | {"reason": f"more than {choice.MAX_MARKS:,} rows are not drawn"}
    found = choice.chart_of(execution.table)
    if isinstance(found, str):
        return nothing | {"reason": found}
    spec = drawing.specification(found, execution.table, theme, width)
    return {
        "kind": found.kind,
        "reason": "",
        "description": found.description(),
        "notes": list(found.notes),
        "vega_lite": spec,
        "svg": _drawer.draw(spec),
    }
