"""``Database``: the façade, and Figure 1 of the paper in code.

sources → index (tables, rows, values) → coarse ranking → reranking → selection →
program → votes → Answer. Everything that dbrag does starts in one of the methods here.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dbrag import freshness, scope
from dbrag.display import StatusReport
from dbrag.errors import SourceNotFound
from dbrag.execution.run import run_admitted
from dbrag.index import build, store
from dbrag.models.embed import remote_encoder_warnings
from dbrag.reasoning.allowed import Allowed
from dbrag.reasoning.evidence import remote_warning
from dbrag.reasoning.learned import Learned
from dbrag.reasoning.reasoner import Reasoner
from dbrag.retrieval.coverage import SourceVocabulary
from dbrag.retrieval.retriever import Retrieved, Retriever
from dbrag.retrieval.timing import StageTimer
from dbrag.settings import Settings, load_settings
from dbrag.sources import open_sources
from dbrag.types import (
    SCHEMA_VERSION,
    Answer,
    AnswerWarning,
    Execution,
    IndexReport,
    SearchResult,
)

if TYPE_CHECKING:
    from dbrag.models.base import ChatModel, Embedder
    from dbrag.sources.base import SkippedSource, Source

Listener = Callable[[Mapping[str, Any]], None]


def connect(
    *sources: str | Path,
    index: str | Path | None = None,
    model: str | None = None,
    settings: Settings | None = None,
    chat_model: ChatModel | None = None,
    embedder: Embedder | None = None,
    **arguments: Any,
) -> Database:
    """Open sources for questions; nothing is indexed or loaded before it is needed.

    Args:
        sources: paths, folders, SQLAlchemy URLs, or ``name=…`` of them; none means the
            ``sources`` of ``dbrag.toml``, or all that the given index holds.
        index: folder of the index; default: one per set of sources in the user's cache.
        model: chat model as ``provider:name``.
        settings: complete settings; default: arguments, ``DBRAG_*``, ``dbrag.toml``.
        chat_model: an object to use instead of loading ``model``.
        embedder: an object to use instead of loading the encoder.
        arguments: any field of :class:`dbrag.Settings`.

    Raises:
        UsageError: unknown or wrong settings, or no source at all.
        SourceError: a source that cannot be opened.
    """
    given = {
        **arguments,
        "sources": tuple(str(source) for source in sources),
        "index": None if index is None else str(index),
        "model": model,
    }
    if settings is None:
        settings = load_settings(given)
    else:
        settings = replace(settings, **{k: v for k, v in given.items() if v not in (None, ())})
    return Database(settings, chat_model=chat_model, embedder=embedder)


class Database:
    """Sources with their index, ready for questions. Use :func:`connect` to make one.

    Not thread-safe for writing (``index``); ``search``, ``ask`` and ``sql`` may be
    called from several threads.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        chat_model: ChatModel | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self.settings = settings
        self._chat_model = chat_model
        self._embedder = embedder
        # A weak reference: an index that was replaced would else be kept on the disk.
        self._vocabulary: tuple[weakref.ref[store.Index], SourceVocabulary] | None = None
        self.sources: tuple[Source, ...]
        self.skipped: tuple[SkippedSource, ...]
        specs = settings.sources or scope.indexed_sources(settings)
        try:
            opened, skipped = open_sources(specs, settings.open_options())
        except SourceNotFound as error:
            if settings.sources:
                raise
            hint = f"a source that is gone: dbrag index --index {settings.index} --drop NAME"
            raise SourceNotFound(error.message, hint) from error
        self.sources, self.skipped = tuple(opened), tuple(skipped)
        self.index_dir = scope.index_dir(settings, specs)
        self._open = freshness.OpenIndex(
            self.index_dir,
            settings,
            encoder=lambda: self.embedder(),
            build=lambda: self.index(),
        )

    # ---- the stages -------------------------------------------------------------

    def index(
        self, progress: Callable[[build.Progress], None] | None = None, force: bool = False
    ) -> IndexReport:
        """Read, profile and index whatever is new or changed; switch to it atomically.

        Args:
            progress: called now and then with the state of the run.
            force: redo everything, also what is unchanged or damaged.

        Raises:
            IndexLocked: another process is indexing here.
            IndexUnusable: the folder cannot be written (a full disk, for one).
        """
        self._close_index()
        report = build.build_index(
            self.index_dir,
            self.sources,
            embedder=self.embedder,
            settings=self.settings,
            skipped=self.skipped,
            progress=progress,
            force=force,
        )
        told = scope.index_warnings(self.sources, self.index_dir)
        if self._embedder is not None and any(s.status == "built" for s in report.sources):
            told += remote_encoder_warnings(self._embedder, self.settings.row_search)
        return replace(report, warnings=report.warnings + told)

    def search(
        self,
        question: str,
        top: int | None = None,
        k: int | None = None,
        tables: Sequence[str] = (),
        exclude: Sequence[str] = (),
        on_event: Listener | None = None,
        rerank: bool | None = None,
    ) -> SearchResult:
        """Rank the tables for a question; a language model is asked only for ``rerank``.

        Args:
            top: candidates returned.
            k: tables kept by the coarse ranking.
            tables: consider only these; ``exclude``: never these.
            rerank: let the chat model order the best ones anew; None as the settings say.

        Raises:
            UsageError: an empty question, a count below 1, an unknown or ambiguous table name.
            ModelError: reranking is on, and the model cannot be loaded or fails.
        """
        started = time.perf_counter()
        question = scope.checked_question(question)
        scope.checked_counts(top=top, k=k)
        timer = StageTimer()
        with timer.stage("open"):
            index = self.opened_index(on_event)
        retriever = self._retriever()
        found = self._found(retriever, index, question, tables, exclude, k, timer)
        found = retriever.reranked(
            index, question, found, rerank=rerank, on_event=on_event, timer=timer
        )
        done = found.reranked
        far = (remote_warning(done.model_name),) if done and done.remote else ()
        return SearchResult(
            question=question,
            candidates=found.candidates[: top or self.settings.top],
            seconds=time.perf_counter() - started,
            warnings=self._source_warnings(index) + far + found.warnings,
            rerank=done.to_dict() if done else None,
            orders={"prior": done.prior, "model": done.model} if done else {},
            stages=timer.seconds,
        )

    def ask(
        self,
        question: str,
        votes: int | None = None,
        tables: Sequence[str] = (),
        exclude: Sequence[str] = (),
        dry_run: bool = False,
        max_rows: int | None = None,
        on_event: Listener | None = None,
        rerank: bool | None = None,
    ) -> Answer:
        """Answer a question: retrieve, select, write and run programs, vote.

        Mistakes of the caller raise; whatever goes wrong later is told in the
        answer's ``status``, ``error`` and ``exit_code``.

        Args:
            votes: programs voted on; 1 means one program without a vote.
            tables: use only these tables; ``exclude``: never these.
            dry_run: write and check the program, do not run it.
            max_rows: rows in ``to_dict()``; never limits what is computed.
            on_event: called with each entry of the trace as it arises.
            rerank: as in ``search``; not done where ``tables`` are given, or where a
                learned program answers.

        Raises:
            UsageError: an empty or too long question, votes below 1, an unknown table name.
            ModelError: the model cannot be loaded.
        """
        started = time.perf_counter()
        question = scope.checked_question(question)
        scope.checked_counts(votes=votes)
        index = self.opened_index(on_event)
        retriever = self._retriever()
        found = self._found(retriever, index, question, tables, exclude)
        retrieve_s = time.perf_counter() - started
        chosen = tuple(dict.fromkeys(scope.resolve(index.catalog, name) for name in tables))
        reasoner = Reasoner(
            index=index,
            sources={source.name: source for source in self.sources},
            model=self.chat_model,
            settings=self.settings,
            vocabulary=self._source_vocabulary(index),
            listener=on_event,
            learned=Learned.of(self.settings, self.index_dir, self.embedder),
            allowed=Allowed(chosen, frozenset(scope.resolve(index.catalog, t) for t in exclude)),
            rows=lambda shown: retriever.rows(index, question, shown),
        )
        return reasoner.answer(
            question,
            found.candidates,
            rerank=lambda: retriever.reranked(index, question, found, rerank=rerank).reranked,
            votes=votes or self.settings.votes,
            dry_run=dry_run,
            max_rows=self.settings.max_rows if max_rows is None else max_rows,
            retrieve_s=retrieve_s,
            warnings=self._source_warnings(index) + found.warnings,
        )

    def sql(self, statement: str, max_rows: int | None = None, source: str | None = None) -> Answer:
        """Run one statement through the guard and the limits, read-only.

        Raises:
            Refused: the guard does not admit it.
            UnknownName: a table or column that does not exist.
            LimitReached: time, memory or rows.
            UsageError: several sources could run it, and ``source`` names none of them.
        """
        started = time.perf_counter()
        place, admitted = scope.admit_anywhere(statement, self.sources, source)
        return scope.statement_answer(
            statement,
            place,
            admitted,
            run_admitted(place, admitted, self.settings),
            warnings=self._source_warnings(),
            total_s=time.perf_counter() - started,
            max_rows=self.settings.max_rows if max_rows is None else max_rows,
        )

    def source_rows(
        self, answer: Answer, row: int = 0, column: int | str | None = None, limit: int = 20
    ) -> Answer:
        """The source rows behind a row of an answer, or behind one of its cells, with their SQL.

        Args:
            row: position in the whole result, from 0.
            column: position from 0, or name; None for all that the row was made from.
            limit: rows at most; a warning tells that there are more.

        Raises:
            UsageError: no such cell, or a program whose rows cannot be traced.
        """
        return scope.source_rows(answer, row, column, limit, self.sources, self.settings)

    def run_sql(self, source_name: str, statement: str) -> Execution:
        """Run one statement on the named source, guarded and limited, for evaluation."""
        source = self.source(source_name)
        return run_admitted(source, scope.admit_on(source, statement), self.settings)

    # ---- the index --------------------------------------------------------------

    def drop(self, name: str) -> None:
        """Remove one source from the index (the source itself is not touched)."""
        self._close_index()
        build.drop_source(self.index_dir, name)

    def status(self) -> StatusReport:
        """What is indexed, how old, how big, what is stale or sampled; JSON-ready."""
        told = store.describe(self.index_dir, self.sources, self.skipped, self.settings)
        return StatusReport({"schema": SCHEMA_VERSION, "index": str(self.index_dir), **told})

    def source(self, name: str) -> Source:
        """The open source of that name.

        Raises:
            SourceNotFound: there is none.
        """
        return scope.named(self.sources, name)

    def embedder(self) -> Embedder:
        """The text encoder, loaded on first use.

        Raises:
            ModelError: its weights are missing or damaged.
        """
        if self._embedder is None:
            from dbrag.models.embed import load_embedder

            self._embedder = load_embedder(self.settings)
        return self._embedder

    def chat_model(self) -> ChatModel:
        """The chat model, loaded on first use; a local one is shared by the process.

        Raises:
            ModelError: weights, an extra or a key is missing, or memory.
        """
        if self._chat_model is None:
            from dbrag.models.load import load_chat_model

            self._chat_model = load_chat_model(self.settings.model, self.settings)
        return self._chat_model

    # ---- life -------------------------------------------------------------------

    def close(self) -> None:
        """Close connections and the index; the process-wide local model stays loaded."""
        self._close_index()
        for source in self.sources:
            source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def opened_index(self, on_event: Listener | None = None) -> store.Index:
        """The index, built or refreshed first where sources are new or changed."""
        return self._open.current(self.sources, self.skipped, on_event)

    def _source_vocabulary(self, index: store.Index) -> SourceVocabulary:
        known = self._vocabulary
        if known is None or known[0]() is not index:
            names = {source.name for source in self.sources}
            known = weakref.ref(index), SourceVocabulary(list(index.catalog.bare(names)))
            self._vocabulary = known
        return known[1]

    def _retriever(self) -> Retriever:
        return Retriever(self.settings, self.embedder(), self.chat_model, self._chat_model)

    def _found(
        self,
        retriever: Retriever,
        index: store.Index,
        question: str,
        tables: Sequence[str],
        exclude: Sequence[str],
        k: int | None = None,
        timer: StageTimer | None = None,
    ) -> Retrieved:
        names = {source.name for source in self.sources}
        only, never = scope.chosen(index.catalog, tables, exclude)
        return retriever.coarse(
            index, question, sources=names, tables=only, exclude=never, k=k, timer=timer
        )

    def _source_warnings(self, index: store.Index | None = None) -> tuple[AnswerWarning, ...]:
        told = scope.source_warnings(self.sources, self.skipped, index, self.settings.redact)
        return told + self._open.late

    def _close_index(self) -> None:
        self._open.close()
        self._vocabulary = None
