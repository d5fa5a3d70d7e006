"""Each source, opened read-only; for a server also what its account may do beside reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from dbrag.doctor.check import Check, TooSlow, of_error, ok, problem, warning, within
from dbrag.errors import DbragError
from dbrag.textsafe import without_password

if TYPE_CHECKING:
    from dbrag.settings import Settings
    from dbrag.sources.base import SkippedSource, Source

CONNECT_S = 8.0
"""Seconds for a server to let us in, its driver being loaded."""
READ_S = 60.0
"""Seconds for reading a schema, or for converting data files that are new."""
SHOWN = 20
"""Sources that are told one by one when nothing is wrong with them."""

_DRIVERS = {"postgres": "sqlalchemy.dialects.postgresql", "mysql": "sqlalchemy.dialects.mysql"}
_KINDS = {"sqlite": "SQLite", "duckdb": "DuckDB", "postgres": "PostgreSQL", "mysql": "MySQL"}


@dataclass(frozen=True, slots=True)
class Opened:
    """What the settings name, as far as it can be opened.

    Attributes:
        whole: every spec leads to sources; else names may differ from those of the index.
    """

    specs: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    skipped: tuple[SkippedSource, ...] = ()
    failed: tuple[Check, ...] = ()
    whole: bool = True


def open_all(settings: Settings) -> Opened:
    """Open what can be opened; nothing is connected or read yet.

    Raises:
        UsageError: no source is named.
        IndexUnusable: the index, which would name them, is damaged.
    """
    from dbrag.scope import indexed_sources
    from dbrag.sources import open_sources

    specs = settings.sources or indexed_sources(settings)
    options = settings.open_options()
    try:
        sources, skipped = open_sources(specs, options)
        return Opened(specs, tuple(sources), tuple(skipped))
    except DbragError as error:
        if len(specs) == 1:
            return Opened(specs, failed=(_failed(specs[0], error),), whole=False)
        together = error
    found: list[Source] = []
    bad: list[SkippedSource] = []
    failed: list[Check] = []
    for spec in specs:
        try:
            sources, skipped = open_sources([spec], options)
        except DbragError as error:
            failed.append(_failed(spec, error))
        else:
            found += sources
            bad += skipped
    if not failed:  # each by itself can be opened
        failed.append(of_error("sources", together, "give each source its own name: -s NAME=PATH"))
    return Opened(specs, tuple(found), tuple(bad), tuple(failed), whole=False)


def _failed(spec: str, error: DbragError) -> Check:
    hint = "check the path or URL of this source (-s, or sources in dbrag.toml)"
    # What all can be read is no way out.
    ours = hint if error.hint.startswith("dbrag reads") else ""
    return of_error(f"source {_shown(spec)}", error, hint, ours=ours)


def _shown(spec: str) -> str:
    name, place = split_spec(spec)
    return name or (without_password(place) if "://" in place else place)


def split_spec(spec: str) -> tuple[str, str]:
    """(name, place) of what stands after ``-s``; the name is empty where there is none."""
    name, separator, place = spec.partition("=")
    return (name, place) if separator and not set(name) & set("/\\:") else ("", spec)


def look_at(opened: Opened, flags: str, reached: list[Source]) -> Iterator[Check]:
    """A finding for each source that is not as it should be, and for the first others.

    Args:
        flags: those of the next command.
        reached: the sources that answer are added to it.
    """
    yield from opened.failed
    for one in opened.skipped:
        hint = f"take {one.location!r} out of the folder, or restore it from a backup"
        yield warning(f"source {one.name}", f"{one.location!r} {one.reason}", hint)
    fine = 0
    for source in opened.sources:
        for check in _look(source, flags):
            if check.status == "ok" and source not in reached:
                reached.append(source)
            fine += check.status == "ok"
            if check.status != "ok" or fine <= SHOWN:
                yield check
    if fine > SHOWN:
        yield ok("sources", f"{fine - SHOWN:,} more sources were opened read-only")


def _look(source: Source, flags: str) -> Iterator[Check]:
    name = f"source {source.name}"
    server = "://" in source.location
    try:
        if server:
            _load_driver(source.dialect)
            within(CONNECT_S, lambda: _connect(source))
    except TooSlow:
        text = f"{source.location!r} does not answer within {CONNECT_S:g} s"
        yield problem(name, text, "start the server, or check host and port of the URL")
        return
    except DbragError as error:
        yield of_error(name, error, "check the URL after -s")
        return
    try:
        tables = within(READ_S, source.reflect)
    except TooSlow:
        hint = f"dbrag index{flags}"
        yield warning(name, f"{source.location!r} is still being read after {READ_S:g} s", hint)
        return
    except DbragError as error:
        yield of_error(name, error, f"dbrag status{flags}")
        return
    kind = _KINDS.get(source.dialect, source.dialect)
    kind = "data files" if kind == "DuckDB" and _is_files(source) else kind
    count = f"{len(tables):,} {'table' if len(tables) == 1 else 'tables'}"
    yield ok(name, f"{kind}, {count}, opened read-only: {source.location}")
    if server:
        yield from _rights(source, name)
    left_out = source.left_out()
    if left_out:
        first = left_out[0]
        text = f"{len(left_out):,} left out, first {first.location!r}: {first.reason}"
        yield warning(name, text, f"dbrag status{flags}")


def _is_files(source: Source) -> bool:
    from dbrag.sources.kinds import DATABASE_EXTENSIONS

    return not source.location.lower().endswith(DATABASE_EXTENSIONS)


def _load_driver(dialect: str) -> None:
    """Import what connecting imports: on a busy machine that takes seconds of its own."""
    for module in ("sqlalchemy.pool", _DRIVERS.get(dialect, "sqlalchemy")):
        with suppress(ImportError):  # opening the source tells
            import_module(module)


def _connect(source: Source) -> None:
    with source.session(CONNECT_S):
        pass


def _rights(source: Source, name: str) -> Iterator[Check]:
    """A warning where the account may do more than read: dbrag needs nothing else."""
    from dbrag.sources.servers.rights import HINTS, write_rights

    try:
        rights: Sequence[str] = within(READ_S, lambda: write_rights(source))
    except (TooSlow, DbragError):
        return  # not every server tells its users
    if rights:
        more = f" and {len(rights) - 4} more" if len(rights) > 4 else ""
        yield warning(
            name,
            f"the account can write ({', '.join(rights[:4])}{more}); dbrag only reads, but an "
            "account that cannot write is the better wall",
            HINTS[source.dialect],
        )
