"""Failures as HTTP: the status of each kind, and one body for all of them.

::

    400 usage                        422 invalid, refused, unknown_name, execution, limit, …
    401 unauthorized                 429 busy (queue full), rate
    403 origin                       500 bug
    404 …_not_found                  503 starting, stopping, source, index, model
    405 method                       504 timeout
    408 slow  409 cancelled  413 too_large  415 media_type  421 host
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dbrag.errors import (
    DbragError,
    IndexUnusable,
    LimitReached,
    ModelError,
    PromptTooLong,
    SourceError,
    SourceNotFound,
    UsageError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STATUS = {
    "busy": 429,
    "cancelled": 409,
    "entry_not_found": 404,
    "execution": 422,
    "job_not_found": 404,
    "pair_not_found": 404,
    "refused": 422,
    "result_not_found": 404,
    "starting": 503,
    "stopping": 503,
    "table_not_found": 404,
    "timeout": 504,
    "unanswerable": 422,
    "unknown_name": 422,
}
RETRY_S = {"starting": 5, "stopping": 10, "source_busy": 5, "index_locked": 10}
_BY_HTTP = {
    404: ("not_found", "there is nothing at this address", "GET /api/v1/openapi.json lists all"),
    405: ("method", "this address does not take this method", "the header Allow names the right"),
}


class Starting(DbragError):
    """The index is still being made."""

    code = "starting"


class PairNotFound(UsageError):
    """The question is not among the learned ones."""

    code = "pair_not_found"


class TableNotFound(UsageError):
    """No table of that name, or several."""

    code = "table_not_found"


def status_of(error: DbragError) -> int:
    """The HTTP status of an error of ours."""
    known = STATUS.get(error.code)
    if known is not None:
        return known
    match error:
        case SourceNotFound():
            return 404
        case PromptTooLong() | LimitReached():
            return 422
        case UsageError():
            return 400
        case SourceError() | IndexUnusable() | ModelError():
            return 503
        case _:
            return 500


def body_of(code: str, message: str, hint: str = "") -> bytes:
    """The JSON of a failure."""
    return encoded({"error": {"code": code, "message": message, "hint": hint}})


def retry_after(error: DbragError) -> dict[str, str]:
    """The header ``Retry-After``, where coming again helps."""
    seconds = getattr(error, "retry_s", None) or RETRY_S.get(error.code)
    return {} if seconds is None else {"retry-after": str(seconds)}


def http_failure(status: int) -> tuple[str, str, str]:
    """Code, message and hint of a failure that the framework found."""
    return _BY_HTTP.get(status, ("http", f"the request failed with status {status}", ""))


def invalid_message(problems: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with a request, without repeating what was sent."""
    told = []
    for problem in problems[:3]:
        place = ".".join(str(part) for part in problem.get("loc", ()) if part != "body")
        told.append(f"{place or 'body'}: {problem.get('msg', 'is wrong')}")
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return "; ".join(told)[:500] + more


def encoded(value: Any) -> bytes:
    """JSON as UTF-8; half characters of a damaged cell, which UTF-8 cannot hold, are escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
