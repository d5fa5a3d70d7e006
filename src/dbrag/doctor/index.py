"""The index: whether it is there, can be read, fits the encoder, and is fresh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dbrag.doctor.check import Check, TooSlow, of_error, ok, problem, warning, within
from dbrag.doctor.sources import READ_S
from dbrag.errors import DbragError, EncoderMismatch, IndexUnusable

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag.doctor.sources import Opened
    from dbrag.settings import Settings
    from dbrag.sources.base import Source

_STALE = ("changed", "not indexed", "gone")


def index(
    settings: Settings, opened: Opened, reached: Sequence[Source], flags: str
) -> Iterator[Check]:
    """What ``dbrag status`` tells of the index, as findings.

    Args:
        reached: the sources that answer; the others are not compared.
        flags: those of the next command.
    """
    from dbrag.index.manifest import read_manifest
    from dbrag.scope import index_dir

    directory = index_dir(settings, opened.specs)
    build = f"dbrag index{flags}"
    try:
        manifest = read_manifest(directory)
    except IndexUnusable as error:
        yield of_error("index", error, f"{build} --force", ours=_rebuild(error, build))
        return
    if manifest is None:
        text = f"there is none yet in {str(directory)!r}; the first question builds it"
        yield warning("index", text, build)
        return
    try:
        yield from _read(settings, directory, manifest.created, build)
    except IndexUnusable as error:
        yield of_error("index", error, f"{build} --force", ours=_rebuild(error, build))
        return
    yield _freshness(settings, directory, opened, reached, build)


def _rebuild(error: IndexUnusable, build: str) -> str:
    """The hint with the flags of this call, where it is to build the index anew."""
    return f"{build} --force" if "--force" in error.hint else error.hint


def _read(settings: Settings, directory: Path, created: str, build: str) -> Iterator[Check]:
    from dbrag.doctor.weights import encoder_sha256
    from dbrag.index.store import open_index

    try:
        sha256 = encoder_sha256(settings)
    except DbragError:
        sha256 = ""  # the check of the encoder tells why
    try:
        with open_index(directory, (lambda: sha256) if sha256 else None) as found:
            tables, known = len(found.catalog.refs), found.manifest.encoder
    except EncoderMismatch as error:
        yield problem("index", error.message, f"{build} --force")
        return
    by = "" if known is None else f", by the encoder {known.name}"
    by += "" if sha256 or known is None else " (not compared with the one in use)"
    text = f"{str(directory)!r} can be read: {tables:,} {'table' if tables == 1 else 'tables'}{by}"
    yield ok("index", f"{text}, made {created}")


def _freshness(
    settings: Settings, directory: Path, opened: Opened, reached: Sequence[Source], build: str
) -> Check:
    from dbrag.index.store import describe

    if not opened.whole:
        text = "not compared: not every source can be opened"
        return warning("index freshness", text, "mend the sources above, then dbrag doctor")
    try:
        state = within(READ_S, lambda: describe(directory, reached, opened.skipped, settings))
    except TooSlow:
        return warning("index freshness", f"not known after {READ_S:g} s", build)
    stale = [one for one in state["sources"] if _is_stale(one, opened, reached)]
    parts = [f"{one['name']} is {_state(one)}" for one in stale[:3]]
    parts += [f"{len(stale) - 3:,} more are stale"] if len(stale) > 3 else []
    parts += [str(reason) for reason in state["changed"]]
    if parts:
        text = f"{'; '.join(parts)}: the next question brings the index up to date first"
        return warning("index freshness", text, build)
    unread = len(opened.sources) - len(reached)
    said = f"; {unread:,} that do not answer were not compared" if unread else ""
    return ok("index freshness", f"the sources are as they were indexed{said}")


def _is_stale(one: dict[str, Any], opened: Opened, reached: Sequence[Source]) -> bool:
    silent = {source.name for source in opened.sources} - {source.name for source in reached}
    return one["status"] in _STALE and one["name"] not in silent


def _state(one: dict[str, Any]) -> str:
    return {"changed": "changed", "gone": "gone"}.get(one["status"], "not indexed yet")
