"""Which sources and tables a call is about: names, identities, and the live schema."""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.names import owners
from dbrag.errors import DbragError, SourceError, SourceNotFound, UnknownName, UsageError
from dbrag.execution.guard import Admitted, admit
from dbrag.execution.run import run_admitted
from dbrag.index.manifest import known_places, read_manifest
from dbrag.index.store import problems_of
from dbrag.index.where import identity as identity
from dbrag.index.where import index_dir as index_dir
from dbrag.reasoning.behind import trace
from dbrag.reasoning.evidence import odd_warnings
from dbrag.reasoning.explanation import evidence_of
from dbrag.settings import Settings
from dbrag.textsafe import without_password
from dbrag.types import (
    Answer,
    AnswerWarning,
    Execution,
    Program,
    Step,
    Table,
    TableRef,
)

if TYPE_CHECKING:
    from dbrag.index.manifest import Place
    from dbrag.index.store import Index
    from dbrag.sources.base import SkippedSource, Source

_TOLD = 10
"""Files that warnings name; ``dbrag status --json`` names all."""

MAX_QUESTION_CHARS = 20_000
"""A longer question is refused rather than cut: no model here could read it whole."""


def resolve(catalog: Catalog, name: str) -> TableRef:
    """A table by its text: ``source.schema.name``, ``source.name``, or a bare unique name.

    Raises:
        UsageError: no such table, or several.
    """
    wanted = name.strip().casefold()
    found = owners({wanted}, catalog.refs).get(wanted, [])
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(str(ref) for ref in found[:5])
        raise UsageError(
            f"{len(found)} tables are called {name!r}: {listed}", f"write for example {found[0]}"
        )
    everything = {str(ref): ref for ref in catalog.refs}
    near = difflib.get_close_matches(name, [*everything], n=3, cutoff=0.5) or [
        str(ref) for ref in everything.values() if ref.name.casefold() in wanted
    ]
    hint = f"did you mean {', '.join(near[:3])}?" if near else "dbrag search shows the tables"
    raise UsageError(f"there is no table {name!r}", hint)


def chosen(
    catalog: Catalog, tables: Sequence[str], exclude: Sequence[str]
) -> tuple[set[TableRef] | None, set[TableRef]]:
    """The only tables that a question may use (None: any), and those it may not.

    Raises:
        UsageError: an unknown or ambiguous name, or one in both.
    """
    only = {resolve(catalog, name) for name in tables}
    never = {resolve(catalog, name) for name in exclude}
    if only & never:
        both = ", ".join(sorted(repr(str(ref)) for ref in only & never))
        raise UsageError(
            f"asked to use and to exclude the same tables: {both}",
            "leave them out of --tables or of --exclude",
        )
    return only or None, never


def spec_of(entry: Place) -> str:
    """The ``--source`` that opens an indexed source again under the same name; no password."""
    origin, location = without_password(entry.origin), without_password(entry.location)
    return origin if origin != location else f"{entry.name}={location}"


def redact_warnings(
    patterns: Sequence[str], catalog: Catalog, sources: Sequence[Source]
) -> tuple[AnswerWarning, ...]:
    """Entries of ``redact`` that name no column of these sources: a typo protects nothing."""
    from dbrag.sources.redact import unused_patterns

    names = {source.name for source in sources}
    unused = unused_patterns(patterns, [t for t in catalog.redacted if t.ref.source in names])
    return tuple(
        AnswerWarning("redact_unused", f"redact holds {text!r}, which names no column here")
        for text in unused
    )


_SERVER_LOOK_S = 1.0
"""Seconds for which a server's schema is taken to be the same without asking."""
_reflected: WeakKeyDictionary[Source, tuple[str, float, Sequence[Table]]] = WeakKeyDictionary()
_lock = threading.Lock()


def reflected(source: Source) -> Sequence[Table]:
    """The live tables of a source, read again only when its stamp changed.

    A server is asked for its stamp at most once a second: with 2,000 tables that takes
    0.2 s.

    Raises:
        SourceError: it cannot be read.
    """
    with _lock:
        stamp, looked, tables = _reflected.get(source, ("", float("-inf"), ()))
    if "://" in source.location and time.monotonic() - looked < _SERVER_LOOK_S:
        return tables
    looked, now = time.monotonic(), source.stamp()
    if not tables or now != stamp:
        tables = source.reflect()
    with _lock:
        _reflected[source] = (now, looked, tables)
    return tables


def checked_question(question: str) -> str:
    """The question without blanks around it.

    Raises:
        UsageError: it is empty or too long.
    """
    text = question.strip()
    if not text:
        raise UsageError("the question is empty", 'dbrag ask "How many customers are there?" -s …')
    if len(text) > MAX_QUESTION_CHARS:
        raise UsageError(
            f"the question has {len(text):,} characters; at most {MAX_QUESTION_CHARS:,} are read",
            "shorten it; data belongs into a table, not into the question",
        )
    return text


def checked_counts(**counts: int | None) -> None:
    """Refuse arguments that count something and are not at least 1; None is the default.

    Raises:
        UsageError: one is less.
    """
    for name, value in counts.items():
        if value is not None and value < 1:
            raise UsageError(
                f"{name} must be at least 1, not {value!r}", f"leave {name} out for the default"
            )


def indexed_sources(settings: Settings) -> tuple[str, ...]:
    """The sources that a given index holds, for commands without ``--source``.

    Also those of an index of another format: ``dbrag index --force`` makes it anew from them.

    Raises:
        IndexUnusable: it is damaged.
        UsageError: no index is given, or it holds none.
    """
    if settings.index:
        directory = Path(settings.index).expanduser()
        found = known_places(directory)
        if found:
            return tuple(dict.fromkeys(map(spec_of, found)))
        read_manifest(directory)
    raise UsageError(
        "no source is given",
        'add -s PATH (a database file or a folder), or sources = ["…"] to dbrag.toml',
    )


def admit_on(source: Source, statement: str) -> Admitted:
    """The statement as it may run on one source.

    Raises:
        Refused, UnknownName: it may not.
        SourceError: the source cannot be read.
    """
    return admit(statement, source.dialect, reflected(source), functions=source.functions())


def admit_anywhere(
    statement: str, sources: Sequence[Source], name: str | None = None
) -> tuple[Source, Admitted]:
    """The one source whose tables a statement reads, with the statement as it may run.

    Args:
        name: the source, where the caller knows it.

    Raises:
        UsageError: several sources could run it.
        Refused, UnknownName: none can; the reason of the source that has its tables, else
            of the first one.
        SourceNotFound: no source is open, or none of that name.
    """
    if name is not None:
        sources = (named(sources, name),)
    admitted: list[tuple[Source, Admitted]] = []
    reason: DbragError | None = None
    for source in sources:
        try:
            admitted.append((source, admit_on(source, statement)))
        except DbragError as error:
            if reason is None or (_lacks_table(reason) and not _lacks_table(error)):
                reason = error
    if len(admitted) > 1:
        known = sorted(source.name for source, _ in admitted)
        names = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if known[20:] else "")
        raise UsageError(
            f"{len(admitted)} sources could run this statement: {names}",
            "name one with --source, or write source.table",
        )
    if not admitted:
        raise reason or SourceNotFound("no source is open", "add -s PATH")
    return admitted[0]


def _lacks_table(error: DbragError) -> bool:
    """A source without the tables of a statement, or one that cannot be read, says little of it."""
    lacks = isinstance(error, UnknownName) and "no such table" in error.message
    return lacks or isinstance(error, SourceError)


def _live(sources: Sequence[Source]) -> Catalog:
    """The tables of all sources that can be read."""
    tables: list[Table] = []
    for source in sources:
        with suppress(DbragError):
            tables += reflected(source)
    return Catalog(tuple(tables))


def named(sources: Sequence[Source], name: str) -> Source:
    """The open source of that name.

    Raises:
        SourceNotFound: there is none.
    """
    for source in sources:
        if source.name == name:
            return source
    known = ", ".join(source.name for source in sources[:10])
    raise SourceNotFound(f"no source is named {name!r}", f"known sources: {known}")


def file_warnings(source: Source, tables: Collection[TableRef]) -> tuple[AnswerWarning, ...]:
    """What was odd in the files of some tables of a source."""
    return odd_warnings(table for table in reflected(source) if table.ref in tables)


def statement_answer(
    statement: str,
    source: Source,
    admitted: Admitted,
    execution: Execution,
    *,
    warnings: Sequence[AnswerWarning],
    total_s: float,
    max_rows: int,
) -> Answer:
    """What ``dbrag sql`` gives back: the result of the user's own statement."""
    program = Program(
        steps=(Step("answer", admitted.sql),),
        sql=admitted.sql,
        dialect=source.dialect,
        tables=admitted.tables,
    )
    return Answer(
        question=statement,
        status="answered",
        text="",
        execution=execution,
        program=program,
        tables=admitted.tables,
        votes_requested=0,
        warnings=(*file_warnings(source, admitted.tables), *warnings),
        seconds={
            "total": total_s,
            "retrieve": 0.0,
            "reason": 0.0,
            "execute": execution.seconds,
        },
        tokens={"prompt": 0, "cached": 0, "completion": 0},
        max_rows=max_rows,
        evidence=evidence_of(program, {table.ref: table for table in reflected(source)}),
    )


def source_rows(
    answer: Answer,
    row: int,
    column: int | str | None,
    limit: int,
    sources: Sequence[Source],
    settings: Settings,
) -> Answer:
    """The source rows behind a cell; see ``Database.source_rows``."""
    started = time.perf_counter()
    source = named(sources, answer.tables[0].source) if answer.tables else sources[0]

    def run_it(sql: str) -> tuple[Admitted, Execution]:
        admitted = admit_on(source, sql)
        return admitted, run_admitted(source, admitted, settings)

    found = trace(answer, row, column, limit, reflected(source), run_it)
    return statement_answer(
        found.admitted.sql,
        source,
        found.admitted,
        found.execution,
        warnings=found.warnings,
        total_s=time.perf_counter() - started,
        max_rows=limit,
    )


def left_out_warnings(sources: Sequence[Source]) -> tuple[AnswerWarning, ...]:
    """Files that could not be read: the first ones by name, then how many more."""
    reasons = sorted(
        {f"{one.location} was skipped: {one.reason}" for s in sources for one in s.left_out()}
    )
    told = reasons[:_TOLD]
    if more := len(reasons) - len(told):
        told.append(f"{more:,} more were skipped; dbrag status --json names all")
    return tuple(AnswerWarning("source_skipped", text) for text in told)


def index_warnings(sources: Sequence[Source], directory: Path) -> tuple[AnswerWarning, ...]:
    """What an index that was just made leaves out: files, notes and joins that fit nothing."""
    return left_out_warnings(sources) + problems_of(directory)


def source_warnings(
    sources: Sequence[Source],
    skipped: Sequence[SkippedSource],
    index: Index | None,
    redact: Sequence[str],
) -> tuple[AnswerWarning, ...]:
    """What answers leave out: sources that cannot be read, files, useless notes and joins."""
    names = {source.name for source in sources}
    failed = index.manifest.failed if index is not None else ()
    reasons = {one.name: one.reason for one in skipped}
    reasons |= {one.name: one.reason for one in failed if one.name in names}
    told = [
        AnswerWarning("source_skipped", f"{name} was skipped: {reason}")
        for name, reason in sorted(reasons.items())
    ]
    told += left_out_warnings(sources)
    told += (*index.notes.problems, *index.join_problems) if index is not None else ()
    if redact:
        catalog = _live(sources) if index is None else index.catalog
        told += redact_warnings(redact, catalog, sources)
    return tuple(told)
