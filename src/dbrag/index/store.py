"""The index opened for reading: one consistent generation, whatever writers do meanwhile."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from dbrag.catalog.parts import group_numbers
from dbrag.errors import IndexUnusable
from dbrag.index.adjacency import Adjacency
from dbrag.index.catalogs import CatalogFile
from dbrag.index.encoder import check_encoder
from dbrag.index.files import REBUILD, translated, tree_bytes
from dbrag.index.fulltext import TextTable
from dbrag.index.inputs import TextInputs, changed_inputs, read_notes_in_force
from dbrag.index.joins import read_joins
from dbrag.index.layout import Layout
from dbrag.index.lazy import StoredCatalog, TablesById
from dbrag.index.locks import ReaderLock
from dbrag.index.manifest import read_manifest, stale_sources
from dbrag.index.places import read_places
from dbrag.index.row_search import RowIndex
from dbrag.index.row_vectors import RowVectors
from dbrag.index.rows import ROWS
from dbrag.index.tables import TableIndex
from dbrag.index.values import VALUES, ValueIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.layout import Generation
    from dbrag.index.manifest import Manifest
    from dbrag.settings import Settings
    from dbrag.sources.base import SkippedSource, Source
    from dbrag.types import AnswerWarning

_TRIES = 20


class Index:
    """One generation; keeps working while another is built and switched to.

    ``edges`` are the joined tables as positions in the catalog, ``[n_edges, 2]``, both
    directions, sorted.

    Safe to share by threads. Use :func:`open_index` to make one.
    """

    def __init__(self, directory: Path, manifest: Manifest, lock: ReaderLock) -> None:
        self.directory = directory
        self.manifest = manifest
        self._lock = lock
        files = Layout(directory).generation(manifest.generation)
        self.notes = read_notes_in_force(files)
        sources = [entry.name for entry in manifest.sources]
        self.catalog = StoredCatalog.open(files, sources, self.notes.apply)
        stored = read_joins(files)
        self.joins, self.join_problems = stored.graph, stored.problems
        self.tables = TableIndex(files, len(self.catalog.refs))
        ids, self.edges = read_places(files, len(self.catalog.refs))
        columns = TablesById(self.catalog, ids)
        vectors = None if manifest.row_vectors is None else RowVectors(files)
        self.rows = RowIndex(TextTable(files, ROWS, manifest.rows_version), columns, vectors)
        self.values = ValueIndex(TextTable(files, VALUES, manifest.values_version), columns)

    @cached_property
    def adjacency(self) -> Adjacency:
        """Which tables join which, for sums and maxima over neighbours."""
        return Adjacency(self.edges, len(self.catalog.refs))

    @cached_property
    def groups(self) -> NDArray[np.int32]:
        """``[n_tables]``: the number of the database each table belongs to, -1: to none."""
        import numpy as np

        loose = {entry.name for entry in self.manifest.sources if entry.loose}
        return np.array(
            group_numbers(list(self.catalog.bare(self.catalog.sources)), loose), np.int32
        )

    def close(self) -> None:
        """Let the generation be cleaned up; may be called twice."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_index(directory: Path, encoder_sha256: Callable[[], str] | None = None) -> Index:
    """Open the generation that the manifest names.

    Args:
        encoder_sha256: gives the identity of the encoder that questions will be encoded
            with, to compare; None compares at the first ranking.

    Raises:
        IndexUnusable: there is no index, or it is damaged.
        EncoderMismatch: it was built with another encoder.
    """
    for _ in range(_TRIES):
        manifest = read_manifest(directory)
        if manifest is None:
            raise IndexUnusable(f"there is no index in {str(directory)!r}", "dbrag index -s PATH")
        if encoder_sha256 is not None and manifest.encoder is not None:
            check_encoder(manifest.encoder, encoder_sha256())
        files = Layout(directory).generation(manifest.generation)
        with ExitStack() as on_error:
            try:
                lock = ReaderLock(files.reader_lock)
            except OSError:
                # Switched and cleaned up since the manifest was read, or really missing.
                continue
            on_error.callback(lock.release)
            now = read_manifest(directory)
            if now is None or now.generation != manifest.generation:
                continue
            with translated(directory, "read"):
                index = Index(directory, manifest, lock)
            on_error.pop_all()
            return index
    raise IndexUnusable(
        f"the index in {str(directory)!r} is damaged: {files.root.name} is missing", REBUILD
    )


def problems_of(directory: Path) -> tuple[AnswerWarning, ...]:
    """Notes and joins of the settings that had no effect when the index was made.

    Raises:
        IndexUnusable: it is damaged.
    """
    for _ in range(_TRIES):
        manifest = read_manifest(directory)
        if manifest is None:
            return ()
        files = Layout(directory).generation(manifest.generation)
        try:
            with translated(directory, "read"):
                return read_notes_in_force(files).problems + read_joins(files).problems
        except IndexUnusable:
            # Another process may have switched to the next generation and cleaned up.
            now = read_manifest(directory)
            if now is not None and now.generation == manifest.generation:
                raise
    return ()


def describe(
    directory: Path,
    sources: Sequence[Source],
    skipped: Sequence[SkippedSource] = (),
    settings: Settings | None = None,
) -> dict[str, Any]:
    """What is indexed, how old, how big, what is stale: the body of ``dbrag status``.

    ``status`` of a source is "indexed", "changed", "not indexed", "gone" (no longer in
    its folder), "skipped" (cannot be read) or "other" (indexed, not among ``sources``).
    ``changed`` tells what else the texts were made with differs from the settings.

    Raises:
        IndexUnusable: the manifest is damaged.
    """
    manifest = read_manifest(directory)
    reasons = dict(stale_sources(manifest, sources, skipped))
    failed = {failure.name: failure.reason for failure in manifest.failed} if manifest else {}
    given = {source.name for source in sources}
    unreadable = {source.location: source.reason for source in skipped}
    lines: dict[str, dict[str, Any]] = {}
    files = Layout(directory).generation(manifest.generation if manifest else 0)
    for entry in manifest.sources if manifest else ():
        state = "indexed" if entry.name in given else "other"
        reason = unreadable.get(entry.location) or failed.get(entry.name, "")
        lines[entry.name] = {
            **asdict(entry),
            "notes": _notes(files, entry.name),
            "status": "skipped" if reason else reasons.get(entry.name, state),
            "reason": reason,
            "age_s": _age_s(entry.indexed_at),
        }
    for name, location, reason in [
        *((s.name, s.location, failed.get(s.name, "")) for s in sources),
        *((s.name, s.location, s.reason) for s in skipped),
    ]:
        state = "skipped" if reason else "not indexed"
        fresh = {"name": name, "location": location, "status": state, "reason": reason}
        lines.setdefault(name, fresh)
    for source in sources:
        lines[source.name]["left_out"] = [
            {"location": one.location, "reason": one.reason} for one in source.left_out()
        ]
    encoder = manifest.encoder if manifest else None
    return {
        "exists": manifest is not None,
        "bytes": tree_bytes(directory) if manifest else 0,
        "generation": manifest.generation if manifest else None,
        **_texts(files, manifest, settings),
        "encoder": None if encoder is None else asdict(encoder),
        "row_vectors": None
        if manifest is None or manifest.row_vectors is None
        else {"dense_rows": manifest.row_vectors, "cut": list(manifest.rows_cut)},
        "sources": [lines[name] for name in sorted(lines)],
    }


def _texts(
    files: Generation, manifest: Manifest | None, settings: Settings | None
) -> dict[str, Any]:
    """How notes and joins stand: ``changed`` since the texts were made, ``warnings`` of then."""
    if manifest is None:
        return {"changed": [], "warnings": []}
    now = TextInputs.of(settings).marks if settings is not None else {}
    problems: tuple[AnswerWarning, ...] = ()
    # Damaged, or cleaned up just now: questions will say so.
    with suppress(IndexUnusable), translated(files.root.parent, "read"):
        problems = read_notes_in_force(files).problems + read_joins(files).problems
    return {
        "changed": changed_inputs(manifest.texts, now),
        "warnings": [problem.to_dict() for problem in problems],
    }


def _notes(files: Generation, source: str) -> list[dict[str, Any]]:
    """How the data files of a source were read, for each table that has such notes."""
    try:
        with translated(files.root.parent, "read"):
            catalog = CatalogFile.open(files.catalog(source))
    except IndexUnusable:
        return []  # damaged, or cleaned up just now: questions will say so
    return [
        {"table": catalog.refs[i].name, "notes": list(notes), "odd": list(odd)}
        for i, (notes, odd) in sorted(catalog.notes.items())
    ]


def _age_s(indexed_at: str) -> float:
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(indexed_at)).total_seconds())
