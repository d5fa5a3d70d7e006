"""Indexing: read what is new or changed, write the next generation, switch to it.

Until the manifest is renamed into place the old generation stays valid, after it
the new one is; a run that is killed leaves a folder that the next run removes.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dbrag.errors import IndexUnusable, UsageError
from dbrag.index.cleanup import tidy
from dbrag.index.encoder import EncoderInUse
from dbrag.index.files import translated, tree_bytes
from dbrag.index.inputs import TextInputs, changed_inputs
from dbrag.index.layout import Layout
from dbrag.index.locks import writer_lock
from dbrag.index.manifest import known_places, read_manifest, rows_due
from dbrag.index.plan import Plan, make_plan
from dbrag.index.progress import Progress, Reporter
from dbrag.index.run import Run, line
from dbrag.textsafe import without_password
from dbrag.types import AnswerWarning, IndexReport, SourceReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from dbrag.index.manifest import Manifest, Place
    from dbrag.models.base import Embedder
    from dbrag.settings import Settings
    from dbrag.sources.base import SkippedSource, Source

__all__ = ["Progress", "build_index", "drop_source"]

_NAMED = 10


def build_index(
    directory: Path,
    sources: Sequence[Source],
    *,
    embedder: Embedder | Callable[[], Embedder],
    settings: Settings,
    skipped: Sequence[SkippedSource] = (),
    progress: Callable[[Progress], None] | None = None,
    force: bool = False,
) -> IndexReport:
    """Bring the index in ``directory`` up to date with ``sources``.

    Unchanged sources are not opened. Indexed sources whose folder is given but no longer holds
    them are dropped, others stay. One that cannot be read is skipped, what was indexed stays.

    Args:
        embedder: the encoder, or a function that loads it when a source is to be read.
        skipped: sources that could not even be opened, for the report.
        progress: called now and then.
        force: read all ``sources`` again; start anew where the index is damaged.

    Raises:
        IndexLocked: another process writes this index.
        EncoderMismatch: the index was built with another encoder.
        IndexUnusable: the folder cannot be written (a full disk), is damaged or not ours.
        UsageError: two sources of one name.
    """
    before = known_places(directory) if force else ()
    started = time.perf_counter()
    inputs = TextInputs.of(settings)
    manifest = _read(directory, force)
    plan = make_plan(manifest, sources, skipped, force=force, inputs=inputs)
    lines: Mapping[str, SourceReport] = {}
    if plan.changes(manifest) or rows_due(manifest, settings):
        with translated(directory, "write"):
            _prepare(directory)
            with writer_lock(Layout(directory).writer_lock):
                # Another process may have indexed between the first look and the lock.
                manifest = _read(directory, force)
                plan = make_plan(manifest, sources, skipped, force=force, inputs=inputs)
                run = Run(
                    Layout(directory),
                    manifest,
                    plan,
                    encoder=EncoderInUse(embedder, manifest.encoder if manifest else None, force),
                    settings=settings,
                    inputs=inputs,
                    reporter=Reporter(progress),
                    force=force,
                )
                lines = run.execute()
    else:
        tidy(Layout(directory))
    return IndexReport(
        sources=_report(plan, lines, skipped, manifest, inputs),
        seconds=time.perf_counter() - started,
        peak_mb=_peak_mb(),
        bytes=tree_bytes(directory),
        warnings=_lost(before, directory, sources) + _cut(directory),
    )


def remake_texts(
    directory: Path, *, embedder: Embedder | Callable[[], Embedder], settings: Settings
) -> None:
    """Make the texts of the index anew where the user's notes changed; no source is read.

    Args:
        embedder: loaded only if a text is new.

    Raises:
        IndexLocked, EncoderMismatch, IndexUnusable: as :func:`build_index`.
    """
    build_index(directory, (), embedder=embedder, settings=settings)


def drop_source(directory: Path, name: str) -> None:
    """Remove one source from the index; the source itself is not touched.

    Raises:
        UsageError: it is not in the index.
        IndexLocked, IndexUnusable: as :func:`build_index`.
    """
    layout = Layout(directory)
    if read_manifest(directory) is None:
        raise UsageError(f"there is no index in {str(directory)!r}", "dbrag index -s PATH")
    with translated(directory, "write"), writer_lock(layout.writer_lock):
        manifest = read_manifest(directory)
        entries = manifest.sources if manifest else ()
        leaving = tuple(entry for entry in entries if entry.name == name)
        if manifest is None or not leaving:
            known = ", ".join(entry.name for entry in entries[:20]) or "none"
            raise UsageError(f"the index has no source {name!r}", f"it holds: {known}")
        with translated(directory, "read"):
            inputs = TextInputs.read(layout.generation(manifest.generation))
        staying = tuple(entry for entry in entries if entry.name != name)
        Run(
            layout,
            manifest,
            Plan(build=(), unchanged=(), others=staying, dropped=leaving),
            encoder=EncoderInUse(None, manifest.encoder, force=False),
            settings=None,
            inputs=inputs,
            reporter=Reporter(None),
        ).execute()


def _lost(
    before: Sequence[Place], directory: Path, sources: Sequence[Source]
) -> tuple[AnswerWarning, ...]:
    """Sources of an index that could not be taken over, which nobody asked to read again."""
    manifest = read_manifest(directory)
    here = {entry.name for entry in manifest.sources} if manifest else set()
    here |= {source.name for source in sources}
    origins = {source.origin for source in sources}
    lost = [p for p in before if p.name not in here and p.origin not in origins]
    if not lost:
        return ()
    named = ", ".join(f"{p.name} ({without_password(p.location)})" for p in lost[:_NAMED])
    more = f" and {len(lost) - _NAMED:,} more" if len(lost) > _NAMED else ""
    text = (
        "the index was damaged or of another format and was made anew from the given sources; "
        f"it no longer holds: {named}{more} (dbrag index -s PATH adds them)"
    )
    return (AnswerWarning("sources_lost", text),)


def _cut(directory: Path) -> tuple[AnswerWarning, ...]:
    """The tables of which not all rows have vectors, in one warning."""
    manifest = read_manifest(directory)
    if manifest is None or not manifest.rows_cut:
        return ()
    n = len(manifest.rows_cut)
    named = ", ".join(manifest.rows_cut[:_NAMED])
    more = f" and {n - _NAMED:,} more (dbrag status --json names all)" if n > _NAMED else ""
    text = (
        f"only {manifest.row_vectors:,} rows of a table got vectors (dense_rows), the others are "
        f'found by their words, not by row_search = "dense": {named}{more}'
    )
    return (AnswerWarning("rows_cut", text),)


def _read(directory: Path, force: bool) -> Manifest | None:
    """The manifest; with ``force`` a damaged one counts as none, a foreign one never does."""
    try:
        return read_manifest(directory)
    except IndexUnusable:
        if force and Layout(directory).writer_lock.is_file():
            return None
        raise


def _prepare(directory: Path) -> None:
    """Make the folder, or refuse one that holds other things."""
    directory.mkdir(parents=True, exist_ok=True)
    layout = Layout(directory)
    if layout.writer_lock.exists() or layout.manifest.exists():
        return
    other = next(directory.iterdir(), None)
    if other is not None:
        raise IndexUnusable(
            f"{str(directory)!r} is not an index, it holds other files ({other.name!r})",
            "choose an empty folder with --index DIR",
        )


def _report(
    plan: Plan,
    lines: Mapping[str, SourceReport],
    skipped: Sequence[SkippedSource],
    manifest: Manifest | None,
    inputs: TextInputs,
) -> tuple[SourceReport, ...]:
    """One line for every source that was given, by name.

    That of an unchanged source whose texts were made anew says why they were.
    """
    reason = ""
    if manifest is not None and plan.retext:
        reason = f"texts made anew: {', '.join(changed_inputs(manifest.texts, inputs.marks))}"
    same = [replace(line(entry, "unchanged"), reason=reason) for entry in plan.unchanged]
    reports = [*lines.values(), *same]
    known = {entry.location: entry for entry in manifest.sources} if manifest else {}
    for source in skipped:
        entry = known.get(source.location)
        reports.append(line(entry, "skipped", source.reason, name=source.name))
    return tuple(sorted(reports, key=lambda report: report.name))


def _peak_mb() -> float:
    """The most memory this process has held so far."""
    try:
        import resource
        import sys
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
