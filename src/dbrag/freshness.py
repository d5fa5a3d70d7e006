"""When an index that is out of date will do, and how that is told.

Results are always computed from the live tables; what may be old is the search: new
values and rows that a question mentions. So a server under constant writes is not
indexed anew at every question, and a question need not wait for another process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from dbrag import scope
from dbrag.errors import IndexLocked, IndexUnusable
from dbrag.index.build import remake_texts
from dbrag.index.inputs import TextInputs, changed_inputs
from dbrag.index.layout import Layout
from dbrag.index.manifest import read_manifest, stale_sources
from dbrag.index.row_search import check_row_search
from dbrag.index.store import open_index
from dbrag.sources.filestate import change_mark
from dbrag.types import AnswerWarning

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag.index.manifest import Manifest
    from dbrag.index.store import Index
    from dbrag.models.base import Embedder
    from dbrag.settings import Settings
    from dbrag.sources.base import SkippedSource, Source
    from dbrag.types import Table

Stale = Sequence[tuple[str, str]]
"""(source, reason) pairs of ``manifest.stale_sources``."""


class OpenIndex:
    """The index of some sources, opened once and brought up to date before each use.

    Threads may share it. An index that is replaced stays readable for the questions that
    still use it: it is let go, not closed.

    Args:
        directory: the folder of the index.
        settings: the user's notes, and how old the index of a server under constant
            writes may be.
        encoder: gives the text encoder; what it is is compared when the index is opened.
        build: indexes what is new or changed.

    Attributes:
        late: what the last look found out of date and left so.
    """

    def __init__(
        self,
        directory: Path,
        settings: Settings,
        *,
        encoder: Callable[[], Embedder],
        build: Callable[[], object],
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._refresh_s = settings.refresh_s
        self._marks = TextInputs.of(settings).marks
        self._encoder = encoder
        self._build = build
        self._index: Index | None = None
        self._opening = Lock()
        self._known: tuple[tuple[int, ...], Manifest | None] = ((), None)
        self.late: tuple[AnswerWarning, ...] = ()

    def current(
        self,
        sources: Sequence[Source],
        skipped: Sequence[SkippedSource],
        on_event: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> Index:
        """The index, built or refreshed first where sources or the user's notes changed.

        Raises:
            IndexUnusable: it is damaged, cannot be written, or lacks the row vectors that
                ``row_search`` needs: making them may take an hour, so nobody does in passing.
            EncoderMismatch: it was built with another encoder.
        """
        known = self._manifest()
        if self._index and known and not _is_of(self._index, known):
            self._index = None  # another process has indexed since
        if known is not None and known.sources and known.row_vectors is None:
            check_row_search(self._settings.row_search)
        stale = stale_sources(known, sources, skipped)
        self.late = ()
        if stale and not self._may_wait(stale, known, sources):
            self._refresh(stale, known, on_event)
        elif known is not None and (changed := changed_inputs(known.texts, self._marks)):
            self._remake(changed, on_event)
        return self._opened()

    def close(self) -> None:
        """Let go of the index; the next use opens it again."""
        if self._index is not None:
            self._index.close()
            self._index = None

    def _manifest(self) -> Manifest | None:
        """The manifest, read again only where another one lies there."""
        mark = change_mark(str(Layout(self._directory).manifest))
        if not mark or mark != self._known[0]:
            self._known = mark, read_manifest(self._directory)
        return self._known[1]

    def _may_wait(self, stale: Stale, known: Manifest | None, sources: Sequence[Source]) -> bool:
        """Whether the old index will do; then ``late`` says so."""
        if known is None or not usable(stale, known):
            return False
        if not may_wait(stale, known, sources, self._opened(), self._refresh_s):
            return False
        reason = f"its data changed less than {self._refresh_s:g} s later (refresh_s)"
        self.late = warnings(stale, reason)
        return True

    def _remake(
        self, changed: Sequence[str], on_event: Callable[[Mapping[str, Any]], None] | None
    ) -> None:
        """Make the texts anew; where that is not possible now, the old ones will do."""
        if on_event:
            on_event({"stage": "index", "sources": [], "reason": "; ".join(changed)})
        self._index = None
        try:
            remake_texts(self._directory, embedder=self._encoder, settings=self._settings)
        except (IndexLocked, IndexUnusable) as error:
            # A damaged index says so again when it is opened.
            text = f"the search is as before {' and '.join(changed)}: {error.message}"
            self.late += (AnswerWarning("index_stale", text),)

    def _refresh(
        self,
        stale: Stale,
        known: Manifest | None,
        on_event: Callable[[Mapping[str, Any]], None] | None,
    ) -> None:
        """Index what is out of date; while another process does, the old index will do."""
        if on_event:
            on_event(event(stale))
        self._index = None
        try:
            self._build()
        except IndexLocked as error:
            if not usable(stale, known):
                raise
            self.late = warnings(stale, error.message)

    def _opened(self) -> Index:
        with self._opening:
            index = self._index
            if index is None:
                index = open_index(self._directory, lambda: self._encoder().sha256)
                self._index = index
        return index


def _is_of(index: Index, known: Manifest) -> bool:
    """Whether it is the generation in force; numbers start anew where the folder was removed."""
    ours = index.manifest
    return (ours.generation, ours.created) == (known.generation, known.created)


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
