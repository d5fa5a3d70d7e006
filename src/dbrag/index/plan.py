"""What an indexing run has to do: sort the sources before anything is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbrag.errors import UsageError
from dbrag.index.inputs import changed_inputs
from dbrag.index.manifest import SourceEntry, gone, stamp_of, still_valid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.index.inputs import TextInputs
    from dbrag.index.manifest import Manifest
    from dbrag.sources.base import SkippedSource, Source


@dataclass(frozen=True, slots=True)
class Plan:
    """The sources of a run by what happens to them.

    Attributes:
        build: new or changed sources, with the mark taken before they are read.
        unchanged: entries of given sources that stay, their marks brought up to date.
        others: entries that stay because the run is not about them (or cannot read them).
        dropped: entries that go.
        retext: texts are made anew, because what they depend on besides the sources changed.
    """

    build: tuple[tuple[Source, str], ...]
    unchanged: tuple[SourceEntry, ...]
    others: tuple[SourceEntry, ...]
    dropped: tuple[SourceEntry, ...]
    retext: bool = False

    @property
    def kept(self) -> tuple[SourceEntry, ...]:
        """All entries whose content stays."""
        return self.unchanged + self.others

    def changes(self, manifest: Manifest | None) -> bool:
        """Whether carrying it out would change the index in any way."""
        if manifest is None or self.build or self.dropped or self.retext:
            return True
        return any(entry != manifest.source(entry.name) for entry in self.unchanged)


def make_plan(
    manifest: Manifest | None,
    sources: Sequence[Source],
    skipped: Sequence[SkippedSource],
    *,
    force: bool,
    inputs: TextInputs,
) -> Plan:
    """Compare sources and manifest; unchanged sources are not opened.

    Args:
        inputs: what texts depend on besides the sources.

    Raises:
        UsageError: two sources of one name.
    """
    entries = {entry.name: entry for entry in manifest.sources} if manifest else {}
    build: list[tuple[Source, str]] = []
    unchanged: list[SourceEntry] = []
    seen: dict[str, str] = {}
    for source in sources:
        if source.name in seen:
            raise UsageError(
                f"two sources are named {source.name!r}: {seen[source.name]}, {source.location}",
                "name one of them: -s other=PATH",
            )
        seen[source.name] = source.location
        entry = entries.get(source.name)
        stamp = stamp_of(source)
        current = None if entry is None or force else still_valid(entry, source, stamp)
        if current is not None:
            unchanged.append(current)
            continue
        if entry is not None:
            _check_same_place(entry, source)
        build.append((source, stamp))
    dropped = gone(entries.values(), sources, skipped)
    leaving = {entry.name for entry in dropped}
    others = [e for e in entries.values() if e.name not in seen and e.name not in leaving]
    retext = manifest is not None and bool(changed_inputs(manifest.texts, inputs.marks))
    return Plan(tuple(build), tuple(unchanged), tuple(others), tuple(dropped), retext)


def _check_same_place(entry: SourceEntry, source: Source) -> None:
    """Refuse to overwrite another database's entry that happens to have the same name."""
    if entry.location == source.location or entry.origin == source.origin:
        return
    if "://" in entry.location or Path(entry.location).exists():
        raise UsageError(
            f"the index already has a source named {source.name!r}: {entry.location}",
            f"name the new one: -s other={source.location}, "
            f"or remove the old one: dbrag index --drop {source.name}",
        )
