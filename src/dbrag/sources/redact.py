"""Columns that never leave their database: not to the index, a prompt, a trace, an answer.

A ``Redacted`` source is another source without these columns. They are gone from the
schema, so that no profile, sample or search ever reads them, and ``Table.redacted``
names them, so that the guard refuses to bring them back (``*``, whole rows, natural
joins). A view's column goes with the columns it is computed from.
"""

from __future__ import annotations

import hashlib
import logging
import re
import unicodedata
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbrag.errors import UsageError
from dbrag.sources.redact_views import redacted_in_views

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from dbrag.sources.base import ColumnStatistics, Session, SkippedSource, Source
    from dbrag.types import Table, TableRef

log = logging.getLogger(__name__)

_PARTS = re.compile(r'"((?:[^"]|"")+)"|([^."]+)')
_HINT = 'write redact = ["salary", "people.salary", "hr.people.salary"]; * and ? are wildcards'
_VIEWS = frozenset({"view", "materialized view"})


def redacted(source: Source, patterns: Sequence[str]) -> Source:
    """The source without the columns that ``patterns`` name; itself if none can be in it.

    Args:
        patterns: ``column``, ``table.column``, ``schema.table.column``,
            ``source.table.column`` or ``source.schema.table.column``; letter case does
            not count, ``*`` and ``?`` stand for any characters, a name with a dot is
            written in double quotes.

    Raises:
        UsageError: a pattern that is none.
    """
    parsed = [Pattern.of(text) for text in dict.fromkeys(patterns)]
    mine = [pattern for pattern in parsed if pattern.may_be_in(source.name)]
    return Redacted(source, mine) if mine else source


def unused_patterns(patterns: Iterable[str], tables: Iterable[Table]) -> tuple[str, ...]:
    """The patterns that name no column of these tables: a slip of the pen, most likely.

    Raises:
        UsageError: a pattern that is none.
    """
    hidden = [(table.ref, name) for table in tables for name in table.redacted]
    return tuple(
        text
        for text in patterns
        if not any(Pattern.of(text).matches(ref, name) for ref, name in hidden)
    )


@dataclass(frozen=True)
class Pattern:
    """One entry of ``redact``; ``parts`` are its names, the column last."""

    text: str
    parts: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, text: str) -> Pattern:
        """Read a pattern.

        Raises:
            UsageError: it is none.
        """
        names, at = [], 0
        while match := _PARTS.match(text, at):
            names.append(match[1].replace('""', '"') if match[1] else match[2].strip())
            at = match.end() + 1
            if match.end() == len(text):
                break
            if text[match.end()] != ".":
                raise UsageError(f"redact holds {text!r}, which names no column", _HINT)
        if not 1 <= len(names) <= 4 or at != len(text) + 1 or not all(names):
            raise UsageError(f"redact holds {text!r}, which names no column", _HINT)
        return cls(text, tuple(_expression(name) for name in names))

    def may_be_in(self, source: str) -> bool:
        """Whether it can name a column of a source of that name."""
        # Three names may be those of a schema, a table and a column: of any source.
        return len(self.parts) < 4 or _is(self.parts[0], source)

    def matches(self, ref: TableRef, column: str) -> bool:
        """Whether it names that column of that table."""
        *above, last = self.parts
        if not _is(last, column):
            return False
        if not above:
            return True
        if not _is(above[-1], ref.name):
            return False
        match above[:-1]:
            case []:
                return True
            case [one]:
                return _is(one, ref.source) or (ref.schema is not None and _is(one, ref.schema))
            case [source, schema]:
                return _is(source, ref.source) and _is(schema, ref.schema or "")
        return False


@dataclass(frozen=True)
class FileRedaction:
    """Columns of data files that are not even converted into the cache.

    Attributes:
        source: name of the source that the files belong to.
    """

    source: str
    patterns: tuple[Pattern, ...]

    @classmethod
    def of(cls, source: str, patterns: Sequence[str]) -> FileRedaction | None:
        """What ``redact`` says of the files of a source; None where it says nothing.

        Raises:
            UsageError: a pattern that is none.
        """
        mine = [pattern for text in patterns if (pattern := Pattern.of(text)).may_be_in(source)]
        return cls(source, tuple(mine)) if mine else None

    @property
    def mark(self) -> str:
        """Changes with the patterns."""
        return "\n".join([self.source, *sorted(pattern.text for pattern in self.patterns)])

    def hides(self, table: str, column: str) -> bool:
        """Whether the column of that table of a file is left out."""
        from dbrag.types import TableRef

        ref = TableRef(self.source, None, table)
        return any(pattern.matches(ref, column) for pattern in self.patterns)


class Redacted:
    """A source without some of its columns; everything else is the inner source's."""

    def __init__(self, source: Source, patterns: Sequence[Pattern]) -> None:
        self._source = source
        self._patterns = tuple(patterns)
        listed = "\n".join(sorted(pattern.text.casefold() for pattern in patterns))
        self._mark = "redact-" + hashlib.sha256(listed.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """Unique among the open sources."""
        return self._source.name

    @property
    def location(self) -> str:
        """Absolute path or URL without password."""
        return self._source.location

    @property
    def origin(self) -> str:
        """The ``--source`` it came from."""
        return self._source.origin

    @property
    def dialect(self) -> str:
        """sqlglot's name of its SQL dialect."""
        return self._source.dialect

    @property
    def loose(self) -> bool:
        """Whether its tables may have nothing to do with each other."""
        return self._source.loose

    def __repr__(self) -> str:
        return f"Redacted({self._source!r}, {[pattern.text for pattern in self._patterns]!r})"

    def stamp(self) -> str:
        """The source's mark; another one for other patterns."""
        return f"{self._source.stamp()}-{self._mark}"

    def fingerprint(self) -> str:
        """The source's hash; another one for other patterns."""
        return f"{self._source.fingerprint()}-{self._mark}"

    def marks(self) -> Mapping[TableRef, str]:
        """The tables' marks; other ones for other patterns.

        Raises:
            SourceError: it cannot be read.
        """
        return {ref: f"{mark}-{self._mark}" for ref, mark in self._source.marks().items()}

    def functions(self) -> frozenset[str]:
        """The user's own functions that only compute.

        Raises:
            SourceError: it cannot be read.
        """
        return self._source.functions()

    def left_out(self) -> Sequence[SkippedSource]:
        """Files of it that cannot be read, and why."""
        return self._source.left_out()

    def reflect(self) -> list[Table]:
        """The tables without the redacted columns, without keys that need them.

        Raises:
            SourceError: it cannot be read.
        """
        tables = self._source.reflect()
        hidden: dict[TableRef, set[str]] = {}
        for table in tables:
            names = {c.name for c in table.columns if self._hides(table.ref, c.name)}
            if names:
                hidden[table.ref] = names
        views = [table for table in tables if table.kind in _VIEWS]
        if hidden and views:
            for ref, names in redacted_in_views(self._source, tables, views, hidden).items():
                hidden.setdefault(ref, set()).update(names)
        self._tell_unused(hidden)
        return [_without(table, hidden) for table in tables]

    def statistics(self, table: Table) -> Mapping[str, ColumnStatistics]:
        """What the engine knows of the columns that may be read."""
        kept = {column.name for column in table.columns}
        return {
            name: known
            for name, known in self._source.statistics(table).items()
            if name in kept and not self._hides(table.ref, name)
        }

    def session(self, timeout_s: float | None = None) -> AbstractContextManager[Session]:
        """A session of the source; what runs in it has passed the guard.

        Raises:
            SourceError: it cannot be opened.
        """
        return self._source.session(timeout_s)

    def part_session(self, table: Table, rows: int) -> AbstractContextManager[Session | None]:
        """A session of the source that sees a part of a table, where it can do that."""
        from dbrag.sources.base import PartSource

        if isinstance(self._source, PartSource):
            return self._source.part_session(table, rows)
        return nullcontext()

    def scan(self, table: Table, limit: int) -> AbstractContextManager[Iterator[tuple[Any, ...]]]:
        """At most ``limit`` rows of a table of ``reflect``, with the columns that it has there."""
        return self._source.scan(table, limit)

    def close(self) -> None:
        """Close every connection."""
        self._source.close()

    def _hides(self, ref: TableRef, column: str) -> bool:
        return any(pattern.matches(ref, column) for pattern in self._patterns)

    def _tell_unused(self, hidden: Mapping[TableRef, set[str]]) -> None:
        """Warn of patterns with a table that name nothing; a bare column may be elsewhere."""
        for pattern in self._patterns:
            used = any(pattern.matches(ref, n) for ref, names in hidden.items() for n in names)
            if not used:
                log.info("redact: %r names no column of source %r", pattern.text, self.name)


def _without(table: Table, hidden: Mapping[TableRef, set[str]]) -> Table:
    """The table as if it had no hidden columns, and no keys with hidden columns on either side."""
    names = hidden.get(table.ref, set())
    keys = tuple(
        key
        for key in table.foreign_keys
        if not names.intersection(key.columns)
        and not hidden.get(key.target, set()).intersection(key.target_columns)
    )
    if not names:
        return table if keys == table.foreign_keys else replace(table, foreign_keys=keys)
    return replace(
        table,
        columns=tuple(column for column in table.columns if column.name not in names),
        primary_key=() if names.intersection(table.primary_key) else table.primary_key,
        foreign_keys=keys,
        profile=tuple(profile for profile in table.profile if profile.column not in names),
        sample_rows=(),
        notes=tuple(note for note in table.notes if not any(name in note for name in names)),
        odd=tuple(note for note in table.odd if not any(name in note for name in names)),
        redacted=(*table.redacted, *(c.name for c in table.columns if c.name in names)),
    )


def _expression(name: str) -> re.Pattern[str]:
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in _folded(name))
    return re.compile("".join(parts), re.DOTALL)


def _is(expression: re.Pattern[str], name: str) -> bool:
    return expression.fullmatch(_folded(name)) is not None


def _folded(name: str) -> str:
    """One spelling for all letter cases and Unicode forms."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
