"""One indexing run under the writer's lock."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from dbrag.errors import DbragError, IndexUnusable, SourceBusy, SourceError, SourceUnreadable
from dbrag.index.cleanup import remove_leftovers
from dbrag.index.files import sync_tree, translated
from dbrag.index.generation import NextGeneration, is_whole
from dbrag.index.manifest import (
    FailedSource,
    Manifest,
    SourceEntry,
    dense_rows_of,
    rows_due,
    write_manifest,
)
from dbrag.index.reading import Known, now, read_source
from dbrag.types import SourceReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbrag.index.encoder import EncoderInUse
    from dbrag.index.inputs import TextInputs
    from dbrag.index.layout import Generation, Layout
    from dbrag.index.plan import Plan
    from dbrag.index.progress import Reporter
    from dbrag.settings import Settings
    from dbrag.sources.base import Source
    from dbrag.types import TableRef

log = logging.getLogger(__name__)

_STAYS = "what was indexed before stays"


@dataclass
class Run:
    """Carries out a plan.

    Attributes:
        manifest: the one in force, None for a new or damaged index.
        settings: budgets for reading; None where the plan reads nothing.
        inputs: what texts depend on besides the sources.
        force: encode everything anew, and take nothing over from a damaged generation.
        failed: sources of the plan that could not be read, for the manifest.
        errors: why they could not.
    """

    layout: Layout
    manifest: Manifest | None
    plan: Plan
    encoder: EncoderInUse
    settings: Settings | None
    inputs: TextInputs
    reporter: Reporter
    force: bool = False
    failed: list[FailedSource] = field(default_factory=list)
    errors: list[DbragError] = field(default_factory=list)

    def execute(self) -> dict[str, SourceReport]:
        """Do it; one report line for every source that was to be built."""
        remove_leftovers(self.layout)
        try:
            plan = self.plan
            changes = plan.build or plan.dropped or plan.retext or self._rows_due
            if self.manifest is None or changes:
                lines = self._build()
            else:
                # Only marks have changed.
                lines = {}
                self._switch(replace(self.manifest, sources=self._entries({})))
        finally:
            # Also after Ctrl-C or on a full disk: give the space back at once.
            remove_leftovers(self.layout)
        return lines

    def _build(self) -> dict[str, SourceReport]:
        if self.plan.build:
            self.encoder.load()
        number = 1 + max(self.layout.generations(), default=0)
        previous = self._previous()
        files = self.layout.generation(number)
        new = NextGeneration(files, previous, self.inputs, force=self.force)
        entries, lines = self._read_sources(new)
        self._check_any_usable(entries)
        changes = entries or self.plan.dropped or self.plan.retext or self._rows_due
        if not changes and self.manifest is not None:
            kept = replace(self.manifest, sources=self._entries({}), failed=self._failed(lines))
            self._switch(kept)
            return lines
        self._write(new, number, entries, lines)
        return lines

    def _write(
        self,
        new: NextGeneration,
        number: int,
        entries: dict[str, SourceEntry],
        lines: dict[str, SourceReport],
    ) -> None:
        """Complete the new generation and switch to it."""
        everything = self._entries(entries)
        self.reporter.tell("text", 0, 1)
        kept = [e.name for e in everything if e.name not in entries]
        if self.manifest is not None and not self.plan.build and not self.plan.dropped:
            new.link_texts(kept)
            versions = self.manifest.rows_version, self.manifest.values_version
        else:
            versions = new.finish_texts(kept)
        self.reporter.tell("text", 1, 1)
        new.write_tables(
            self.encoder.load,
            lambda done, total: self.reporter.tell("encode", done, total),
            reuse=self.encoder.same and not self.force,
        )
        dense_rows = dense_rows_of(self.manifest, self.settings)
        cut = self._write_rows(new, dense_rows)
        self.reporter.tell("switch", 0, 1)
        sync_tree(new.files.root)
        self._switch(
            Manifest(
                generation=number,
                created=now(),
                encoder=self.encoder.identity(),
                rows_version=versions[0],
                values_version=versions[1],
                sources=everything,
                failed=self._failed(lines),
                texts=self.inputs.marks,
                row_vectors=dense_rows,
                rows_cut=tuple(str(ref) for ref in sorted(cut, key=str)),
            )
        )
        if dense_rows is not None:  # else they wait until rows are searched by vectors again
            self.layout.row_vectors_part.unlink(missing_ok=True)
        self.reporter.tell("switch", 1, 1)

    @property
    def _rows_due(self) -> bool:
        return rows_due(self.manifest, self.settings)

    def _write_rows(self, new: NextGeneration, dense_rows: int | None) -> Mapping[TableRef, int]:
        """Give rows their vectors; the tables of which not all got one."""
        identity = self.encoder.identity()
        return new.write_rows(
            dense_rows,
            self.encoder.load,
            identity.sha256 if identity else "",
            lambda done, total: self.reporter.tell("rows", done, total),
            reuse=self.encoder.same and not self.force,
        )

    def _read_sources(
        self, new: NextGeneration
    ) -> tuple[dict[str, SourceEntry], dict[str, SourceReport]]:
        """Read every source of the plan; a failing one becomes a line, nothing more."""
        entries: dict[str, SourceEntry] = {}
        lines: dict[str, SourceReport] = {}
        total = len(self.plan.build)
        for done, (source, stamp) in enumerate(self.plan.build):
            try:
                entry, tables_read = self._read_source(new, source, stamp, done)
            except IndexUnusable:
                raise
            except DbragError as error:
                new.take_back(source.name)
                self.failed.append(_failure(source, stamp, error))
                self.errors.append(error)
                before = self.manifest.source(source.name) if self.manifest else None
                lines[source.name] = line(before, "skipped", _told(error), name=source.name)
            else:
                entries[source.name] = entry
                lines[source.name] = built(entry, tables_read)
            self.reporter.tell("read", done + 1, total, source.name)
        return entries, lines

    def _read_source(
        self, new: NextGeneration, source: Source, stamp: str, done: int
    ) -> tuple[SourceEntry, int]:
        """The new entry of a source, and how many of its tables were read."""
        settings = self.settings
        if settings is None:
            raise IndexUnusable("a run without budgets cannot read a source")
        known = Known()
        if self.manifest is not None and not self.force:
            previous = self.layout.generation(self.manifest.generation)
            with translated(self.layout.root, "read"):
                known = Known.of(source, self.manifest.source(source.name), previous)

        def on_table(tables_done: int, tables: int, rows: int) -> None:
            self.reporter.rows += rows
            self.reporter.tell(
                "read", done, len(self.plan.build), source.name, (tables_done, tables)
            )

        return read_source(new, source, stamp, settings, known, on_table)

    def _check_any_usable(self, entries: dict[str, SourceEntry]) -> None:
        """Fail where not one of the given sources can be used, now or from before."""
        indexed = {entry.name for entry in self._entries(entries)}
        given = [source.name for source, _ in self.plan.build]
        given += [entry.name for entry in self.plan.unchanged]
        if not self.errors or indexed.intersection(given):
            return
        if len(self.errors) == 1:
            raise self.errors[0]
        first = self.errors[0]
        raise SourceUnreadable(
            f"none of the {len(self.errors)} sources can be read; the first: {first.message}",
            first.hint,
        )

    def _previous(self) -> Generation | None:
        """The generation to take over from; with ``force`` only if it is whole."""
        if self.manifest is None:
            return None
        previous = self.layout.generation(self.manifest.generation)
        names = [entry.name for entry in self.manifest.sources]
        if self.force and not is_whole(previous, names):
            log.warning("%s is damaged, nothing is taken over from it", previous.root)
            self.manifest = None
            self.plan = replace(self.plan, unchanged=(), others=(), dropped=())
            return None
        return previous

    def _entries(self, built: dict[str, SourceEntry]) -> tuple[SourceEntry, ...]:
        """All entries after the run, by name."""
        entries = {entry.name: entry for entry in self.manifest.sources} if self.manifest else {}
        entries |= {entry.name: entry for entry in self.plan.kept}
        for entry in self.plan.dropped:
            entries.pop(entry.name, None)
        entries |= built
        return tuple(entries[name] for name in sorted(entries))

    def _failed(self, lines: dict[str, SourceReport]) -> tuple[FailedSource, ...]:
        """Failures of this run, and earlier ones of sources it was not about."""
        here = set(lines) | {entry.name for entry in self.plan.unchanged}
        earlier = self.manifest.failed if self.manifest else ()
        return tuple([failure for failure in earlier if failure.name not in here] + self.failed)

    def _switch(self, manifest: Manifest) -> None:
        if manifest != self.manifest:
            write_manifest(self.layout.root, manifest)
            self.manifest = manifest


def _failure(source: Source, stamp: str, error: DbragError) -> FailedSource:
    """Without a stamp where the next question shall try again: the server may be back."""
    passing = "://" in source.location and type(error) in (SourceError, SourceBusy)
    return FailedSource(source.name, source.location, "" if passing else stamp, error.message)


def _told(error: DbragError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def line(
    entry: SourceEntry | None,
    status: Literal["built", "unchanged", "skipped"],
    reason: str = "",
    name: str = "",
) -> SourceReport:
    """A report line; ``entry`` is what the index holds of the source, if anything."""
    if entry is None:
        return SourceReport(name, status, reason)
    return SourceReport(
        name=name or entry.name,
        status=status,
        reason=f"{reason}; {_STAYS}" if reason else "",
        tables=entry.tables,
        rows=entry.rows,
        rows_indexed=entry.rows_indexed,
        sampled=bool(entry.sampled),
        seconds=entry.seconds if status == "built" else 0.0,
    )


def built(entry: SourceEntry, tables_read: int) -> SourceReport:
    """The report line of a source that was read; the reason tells what was left out."""
    notes = []
    if tables_read < entry.tables - len(entry.unread):
        notes.append(f"{tables_read:,} of {entry.tables:,} tables read")
    sampled = len(entry.sampled) - len(entry.unread)
    if sampled:
        notes.append(
            f"{sampled:,} of {entry.tables:,} tables sampled: "
            f"{entry.rows_indexed:,} of {entry.rows:,} rows are searchable"
        )
    if entry.unread:
        notes.append(
            f"{len(entry.unread):,} tables known by their columns only: "
            "source_s or source_rows is used up"
        )
    if entry.broken:
        named = ", ".join(entry.broken[:3]) + (", …" if len(entry.broken) > 3 else "")
        notes.append(f"{len(entry.broken):,} of {entry.tables:,} tables cannot be read: {named}")
    report = line(entry, "built")
    return replace(report, reason="; ".join(notes), tables_read=tables_read)
