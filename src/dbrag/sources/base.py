"""What a source is: a database, or a folder of data files, opened read-only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from dbrag.types import Table, TableRef

SHADOWED = "!"
"""Before a name in ``Source.functions``: a built-in function that must not be called so."""


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """A source that cannot be used, and why; the others go on."""

    name: str
    location: str
    reason: str


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What the engine itself knows of a column of the whole table; None: it does not know.

    ``frequent`` holds (value, share of the rows), most frequent first. Texts are
    display strings.
    """

    distinct: int | None = None
    null_share: float | None = None
    minimum: str | None = None
    maximum: str | None = None
    frequent: tuple[tuple[str, float], ...] = ()


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
class PartSource(Protocol):
    """A source that can show a part of a table as if it were the whole."""

    def part_session(self, table: Table, rows: int) -> AbstractContextManager[Session | None]:
        """A session that sees at most so many rows of ``table``, from all over it.

        None where it has no better way than its SQL offers.

        Raises:
            SourceError: it cannot be opened or read.
        """
        ...


class Named:
    """The name of a source and where it lies: what every class of sources begins with.

    Args:
        name: unique among the open sources.
        location: absolute path, pattern, or URL without password.
        origin: the ``--source`` it came from, absolute and without password.
        dialect: sqlglot's name of its SQL dialect.
    """

    def __init__(self, name: str, location: str, origin: str, dialect: str) -> None:
        self._name = name
        self._location = location
        self._origin = origin
        self._dialect = dialect

    @property
    def name(self) -> str:
        """Unique among the open sources."""
        return self._name

    @property
    def location(self) -> str:
        """Absolute path, pattern, or URL without password; enough to open it again."""
        return self._location

    @property
    def origin(self) -> str:
        """The ``--source`` it came from, absolute and without password."""
        return self._origin

    @property
    def dialect(self) -> str:
        """sqlglot's name of its SQL dialect."""
        return self._dialect

    @property
    def loose(self) -> bool:
        """Whether its tables may have nothing to do with each other; a database's do."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, {self._location!r})"


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

    @property
    def loose(self) -> bool:
        """Whether its tables may have nothing to do with each other: files of a folder."""
        ...

    def stamp(self) -> str:
        """A cheap mark that changes whenever schema or content may have changed."""
        ...

    def fingerprint(self) -> str:
        """A hash of schema and content; equal means nothing has to be redone."""
        ...

    def marks(self) -> Mapping[TableRef, str]:
        """For each table a cheap mark of its schema and content, as ``stamp``.

        Empty where the engine cannot tell its tables apart: then all are read again.

        Raises:
            SourceError: it cannot be read.
        """
        ...

    def functions(self) -> frozenset[str]:
        """The user's own functions that only compute, folded; statements may call them.

        With ``SHADOWED`` before it stands the name of a built-in function which the user has
        one of, too, that may do more: the server chooses between them by their arguments.

        Raises:
            SourceError: it cannot be read.
        """
        ...

    def left_out(self) -> Sequence[SkippedSource]:
        """Files of it that cannot be read, and why; complete after ``stamp`` or ``reflect``."""
        ...

    def reflect(self) -> list[Table]:
        """Tables and views with columns and keys, no profile yet, by schema and name.

        Raises:
            SourceError: it cannot be read.
        """
        ...

    def statistics(self, table: Table) -> Mapping[str, ColumnStatistics]:
        """What the engine knows of a table's columns without reading it; may be empty."""
        ...

    def session(self, timeout_s: float | None = None) -> AbstractContextManager[Session]:
        """A read-only session, closed (or returned to its pool) at the end.

        Args:
            timeout_s: the server itself stops a statement after that time, if it can.

        Raises:
            SourceError: it cannot be opened.
        """
        ...

    def scan(self, table: Table, limit: int) -> AbstractContextManager[Iterator[tuple[Any, ...]]]:
        """At most ``limit`` rows of a table in the engine's order, columns as in ``table``."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
