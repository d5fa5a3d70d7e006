"""Which sources and tables a call is about: names, identities, and the live schema."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbrag.errors import UsageError
from dbrag.types import Catalog, Table, TableRef

if TYPE_CHECKING:
    from dbrag.index.manifest import SourceEntry
    from dbrag.sources.base import Source


def resolve(catalog: Catalog, name: str) -> TableRef:
    """A table by its text: ``source.schema.name``, ``source.name``, or a bare unique name.

    Raises:
        UsageError: no such table, or several.
    """
    wanted = name.strip().casefold()
    found = [
        table.ref
        for table in catalog.tables
        if wanted in {form.casefold() for form in _spellings(table.ref)}
    ]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(str(ref) for ref in found[:5])
        raise UsageError(
            f"{len(found)} tables are called {name!r}: {listed}", f"write for example {found[0]}"
        )
    everything = {str(table.ref): table.ref for table in catalog.tables}
    near = difflib.get_close_matches(name, [*everything], n=3, cutoff=0.5) or [
        str(ref) for ref in everything.values() if ref.name.casefold() in wanted
    ]
    hint = f"did you mean {', '.join(near[:3])}?" if near else "dbrag search shows the tables"
    raise UsageError(f"there is no table {name!r}", hint)


def _spellings(ref: TableRef) -> set[str]:
    spellings = {ref.name, f"{ref.source}.{ref.name}", str(ref)}
    if ref.schema is not None:
        spellings.add(f"{ref.schema}.{ref.name}")
    return spellings


def identity(spec: str) -> str:
    """A source as one text whatever the working directory: the default index depends on it."""
    name, separator, rest = spec.partition("=")
    if separator and not any(mark in name for mark in "/\\:"):
        return f"{name}={identity(rest)}"
    return spec if "://" in spec else str(Path(spec).expanduser().resolve())


def spec_of(entry: SourceEntry) -> str:
    """The ``--source`` that opens an indexed source again under the same name."""
    return entry.origin if entry.origin != entry.location else f"{entry.name}={entry.location}"


_reflected: dict[str, tuple[str, Sequence[Table]]] = {}
_lock = threading.Lock()


def reflected(source: Source) -> Sequence[Table]:
    """The live tables of a source, read again only when its stamp changed.

    Raises:
        SourceError: it cannot be read.
    """
    stamp = source.stamp()
    with _lock:
        known = _reflected.get(source.location)
    if known and known[0] == stamp:
        return known[1]
    tables = source.reflect()
    with _lock:
        _reflected[source.location] = (stamp, tables)
    return tables
