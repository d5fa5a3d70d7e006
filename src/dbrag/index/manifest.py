"""The manifest: which generation is valid, what is in it, and what is out of date."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any

from dbrag.errors import IndexUnusable, SourceError
from dbrag.index.files import REBUILD, write_atomic
from dbrag.index.layout import FORMAT, FORMAT_VERSION, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from dbrag.settings import Settings
    from dbrag.sources.base import SkippedSource, Source


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One indexed source.

    ``rows`` counts what it holds (what was read, for tables too big to count),
    ``rows_indexed`` what is searchable; ``sampled`` names the tables of which only
    a part was read, ``unread`` those of them for which no time or rows were left,
    ``broken`` those that could not be read. ``loose``: its tables may have nothing to
    do with each other.
    ``indexed_at`` is UTC, ISO 8601; ``seconds`` the time it took.
    """

    name: str
    location: str
    origin: str
    stamp: str
    fingerprint: str
    tables: int
    rows: int
    rows_indexed: int
    sampled: tuple[str, ...]
    indexed_at: str
    seconds: float
    unread: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where an indexed source is, all that can be known of one in an index of another format."""

    name: str
    location: str
    origin: str


@dataclass(frozen=True, slots=True)
class FailedSource:
    """A source that could not be read last time; tried again when its stamp changes.

    An empty stamp, of a lost connection, says: at the next question.
    """

    name: str
    location: str
    stamp: str
    reason: str


@dataclass(frozen=True, slots=True)
class Encoder:
    """Identity of the text encoder that made the vectors."""

    name: str
    sha256: str
    dim: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What ``manifest.json`` says; sources are ordered by name.

    ``encoder`` is None as long as there is no table. ``rows`` and ``values`` are the
    versions of the LanceDB tables. ``row_vectors`` is the ``dense_rows`` that row
    vectors were made with, None where rows are searched by their words only;
    ``rows_cut`` names the tables that have more rows than that. ``texts`` holds digests
    of what texts and joins depend on besides the sources (``inputs``).
    """

    generation: int
    created: str
    encoder: Encoder | None
    rows_version: int
    values_version: int
    sources: tuple[SourceEntry, ...]
    failed: tuple[FailedSource, ...] = ()
    row_vectors: int | None = None
    rows_cut: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    def source(self, name: str) -> SourceEntry | None:
        """The entry of that name."""
        return next((entry for entry in self.sources if entry.name == name), None)


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest of an index folder; None where nothing has been indexed yet.

    Raises:
        IndexUnusable: it is damaged, of another format, or not ours.
    """
    path = Layout(directory).manifest
    try:
        data = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = error.strerror or str(error)
        raise IndexUnusable(
            f"cannot read {str(path)!r}: {reason}",
            "check its permissions, or choose another folder with --index DIR",
        ) from error
    except ValueError as error:
        raise IndexUnusable(f"{str(path)!r} is damaged: it is not JSON", REBUILD) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise IndexUnusable(
            f"{str(path)!r} is not the manifest of a dbrag index",
            "choose another folder with --index DIR",
        )
    version = data.get("version")
    if version != FORMAT_VERSION:
        older = isinstance(version, int) and version < FORMAT_VERSION
        raise IndexUnusable(
            f"the index in {str(directory)!r} has format {version!r}, "
            f"this dbrag reads {FORMAT_VERSION}",
            f"{REBUILD} from the sources" if older else f"upgrade dbrag, or {REBUILD}",
        )
    try:
        return _manifest(data)
    except (KeyError, TypeError, ValueError) as error:
        raise IndexUnusable(f"{str(path)!r} is damaged: {error!r}", REBUILD) from error


def known_places(directory: Path) -> tuple[Place, ...]:
    """The sources of an index, also of one whose format is another; () where nothing is known."""
    try:
        data = json.loads(Layout(directory).manifest.read_bytes())
        entries = data["sources"] if data["format"] == FORMAT else ()
        return tuple(
            Place(str(one["name"]), str(one["location"]), str(one["origin"])) for one in entries
        )
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Switch to another generation: before the rename the old one is valid, after it the new."""
    data = {"format": FORMAT, "version": FORMAT_VERSION, **asdict(manifest)}
    text = json.dumps(data, ensure_ascii=True, indent=1)
    write_atomic(Layout(directory).manifest, text.encode("ascii"))


def stale_sources(
    manifest: Manifest | None,
    sources: Sequence[Source],
    skipped: Iterable[SkippedSource] = (),
) -> list[tuple[str, str]]:
    """What ``build_index`` would do something about: (name, reason) pairs.

    Reasons: "not indexed", "changed", "gone" (its folder is given, it is no longer in
    it). Reads marks only; contents are hashed just for sources whose mark has changed.

    Raises:
        SourceError: no: a source that cannot be read any more counts as "changed".
    """
    entries = {entry.name: entry for entry in manifest.sources} if manifest else {}
    failed = {(f.name, f.location): f.stamp for f in manifest.failed} if manifest else {}
    stale: list[tuple[str, str]] = []
    for source in sources:
        entry = entries.get(source.name)
        stamp = stamp_of(source)
        if stamp == failed.get((source.name, source.location)):
            continue
        if entry is None:
            stale.append((source.name, "not indexed"))
        elif still_valid(entry, source, stamp) is None:
            stale.append((source.name, "changed"))
    stale += [(entry.name, "gone") for entry in gone(entries.values(), sources, skipped)]
    return stale


def still_valid(entry: SourceEntry, source: Source, stamp: str) -> SourceEntry | None:
    """The entry, brought up to date, if what it indexed equals the source; else None."""
    current = replace(
        entry,
        location=source.location,
        origin=source.origin,
        stamp=stamp,
        loose=source.loose,
    )
    if not stamp:
        return None
    if current == entry:
        return entry
    try:
        return current if source.fingerprint() == entry.fingerprint else None
    except SourceError:
        return None


def dense_rows_of(manifest: Manifest | None, settings: Settings | None) -> int | None:
    """How many rows of a table the next generation gives vectors at most; None gives none.

    Without settings (a source is dropped) it stays as it was.
    """
    if settings is None:
        return manifest.row_vectors if manifest else None
    return None if settings.row_search == "text" else settings.dense_rows


def rows_due(manifest: Manifest | None, settings: Settings | None) -> bool:
    """Whether rows lack vectors that the settings ask for; vectors too many may stay."""
    wanted = dense_rows_of(manifest, settings)
    return wanted is not None and (manifest is None or manifest.row_vectors != wanted)


def stamp_of(source: Source) -> str:
    """The source's mark, or "" where it cannot be read."""
    try:
        return source.stamp()
    except SourceError:
        return ""


def gone(
    entries: Iterable[SourceEntry], sources: Sequence[Source], skipped: Iterable[SkippedSource]
) -> list[SourceEntry]:
    """Indexed sources whose folder (or other origin) is given but no longer holds them."""
    origins = {source.origin for source in sources}
    here = {source.name for source in sources}
    unreadable = {source.location for source in skipped}
    return [
        entry
        for entry in entries
        if entry.origin in origins and entry.name not in here and entry.location not in unreadable
    ]


_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "int | None": (int, NoneType),
    "tuple[str, ...]": (tuple,),
    "Mapping[str, str]": (dict,),
}


def _manifest(data: dict[str, Any]) -> Manifest:
    def build(kind: type[Any], values: dict[str, Any]) -> Any:
        found = {
            one.name: tuple(v) if isinstance(v := values[one.name], list) else v
            for one in fields(kind)
            if one.name in values or one.default is one.default_factory is MISSING
        }
        for one in fields(kind):
            wanted = _KINDS.get(str(one.type), (object,))
            if one.name in found and not isinstance(found[one.name], wanted):
                raise TypeError(f"{one.name} is {found[one.name]!r}")
        return kind(**found)

    def entry_of(values: dict[str, Any]) -> SourceEntry:
        entry: SourceEntry = build(SourceEntry, values)
        if datetime.fromisoformat(entry.indexed_at).tzinfo is None:
            raise ValueError(f"indexed_at is {entry.indexed_at!r}")
        return entry

    encoder = data["encoder"]
    manifest: Manifest = build(Manifest, data)
    return replace(
        manifest,
        generation=int(data["generation"]),
        encoder=None if encoder is None else build(Encoder, encoder),
        sources=tuple(map(entry_of, data["sources"])),
        failed=tuple(build(FailedSource, entry) for entry in data["failed"]),
    )
