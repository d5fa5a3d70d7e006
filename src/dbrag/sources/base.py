"""What a source is: a database, or a folder of data files, opened read-only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from dbrag.types import Table


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """A source that cannot be used, and why; the others go on."""

    name: str
    location: str
    reason: str


class Session(Protocol):
    """One read-only connection, used by one thread at a time."""

    def execute(self, sql: str) -> Sequence[str]:
        """Start a statement; the names of its result columns, duplicates kept."""
        ...

    def fetch(self, n: int) -> list[tuple[Any, ...]]:
        """The next at most ``n`` rows of the statement, empty at the end."""
        ...

    def cancel(self) -> None:
        """Stop the running statement; may be called from another thread."""
        ...


@runtime_checkable
class Source(Protocol):
    """A database or a folder of files under one name."""

    @property
    def name(self) -> str:
        """Unique among the open sources."""
        ...

    @property
    def location(self) -> str:
        """Absolute path or URL without password: shown, logged and stored."""
        ...

    @property
    def origin(self) -> str:
        """The ``--source`` it came from, absolute: the folder, for one file of a folder."""
        ...

    @property
    def dialect(self) -> str:
        """sqlglot's name of its SQL dialect."""
        ...

    def stamp(self) -> str:
        """A cheap mark that changes whenever schema or content may have changed."""
        ...

    def fingerprint(self) -> str:
        """A hash of schema and content; equal means nothing has to be redone."""
        ...

    def reflect(self) -> list[Table]:
        """Tables and views with columns and keys, no profile yet, ordered by name.

        Raises:
            SourceError: it cannot be read.
        """
        ...

    def session(self) -> AbstractContextManager[Session]:
        """A read-only session, closed (or returned to its pool) at the end."""
        ...

    def scan(self, table: Table, limit: int) -> AbstractContextManager[Iterator[tuple[Any, ...]]]:
        """At most ``limit`` rows of a table in the engine's order, columns as in ``table``."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
