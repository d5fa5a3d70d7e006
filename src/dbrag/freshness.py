"""When an index that is out of date will do, and how that is told.

Results are always computed from the live tables; what may be old is the search: new
values and rows that a question mentions. So a server under constant writes is not
indexed anew at every question, and a question need not wait for another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dbrag import scope
from dbrag.types import AnswerWarning

if TYPE_CHECKING:
    from dbrag.index.manifest import Manifest
    from dbrag.index.store import Index
    from dbrag.sources.base import Source
    from dbrag.types import Table

Stale = Sequence[tuple[str, str]]
"""(source, reason) pairs of ``manifest.stale_sources``."""


def event(stale: Stale) -> Mapping[str, Any]:
    """The entry of the trace for indexing before an answer."""
    sources = [{"name": name, "reason": reason} for name, reason in stale]
    return {"stage": "index", "sources": sources}


def usable(stale: Stale, known: Manifest | None) -> bool:
    """True when the index at least holds every source, however old."""
    return known is not None and all(reason != "not indexed" for _, reason in stale)


def may_wait(
    stale: Stale, known: Manifest, sources: Sequence[Source], index: Index, refresh_s: float
) -> bool:
    """True when all that is stale are servers, indexed a short while ago, of the same schema.

    Args:
        refresh_s: how old their index may be, seconds.

    Raises:
        SourceError: the schema cannot be read.
    """
    by_name = {source.name: source for source in sources}
    for name, _ in stale:
        source, entry = by_name.get(name), known.source(name)
        if source is None or entry is None or "://" not in source.location:
            return False
        age = datetime.now(UTC) - datetime.fromisoformat(entry.indexed_at)
        if age.total_seconds() >= refresh_s:
            return False
        indexed = index.catalog.of_source(name)
        if _schema(scope.reflected(source)) != _schema(indexed):
            return False
    return True


def warnings(stale: Stale, reason: str) -> tuple[AnswerWarning, ...]:
    """What the reader of an answer has to know of sources searched as they were."""
    return tuple(
        AnswerWarning("index_stale", f"{name} was searched as last indexed: {reason}")
        for name, _ in stale
    )


def _schema(tables: Sequence[Table]) -> set[tuple[Any, ...]]:
    return {
        (table.ref, table.redacted, *((column.name, column.type) for column in table.columns))
        for table in tables
    }
