"""The tables a statement may name, found however it spells them, and nearest names."""

from __future__ import annotations

import difflib
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from dbrag.execution.words import RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbrag.types import Table

_CUTOFF = 0.6
_KEPT = 16

_schemas: OrderedDict[tuple[int, ...], tuple[Schema, ...]] = OrderedDict()
_lock = threading.Lock()


def schemas_of(tables: Sequence[Table]) -> tuple[Schema, ...]:
    """One schema for each source; kept, since 2,000 tables take a while to look through."""
    # By identity, which is safe: a kept schema keeps its tables. A catalog that reads them as
    # they are asked for may give others the next time, and so is asked once.
    tables = tuple(tables)
    key = tuple(map(id, tables))
    with _lock:
        found = _schemas.pop(key, None)
        if found is None:
            by_source: dict[str, list[Table]] = {}
            for table in tables:
                by_source.setdefault(table.ref.source, []).append(table)
            found = tuple(Schema(tuple(own)) for own in by_source.values() or [[]])
        _schemas[key] = found
        while len(_schemas) > _KEPT:
            _schemas.popitem(last=False)
    return found


def types_of(tables: Sequence[Table]) -> frozenset[str]:
    """Words of the columns' declared types, folded."""
    return frozenset().union(*(schema.types for schema in schemas_of(tables)))


@dataclass(frozen=True)
class Schema:
    """The tables of one source, letter case ignored."""

    tables: tuple[Table, ...]

    @cached_property
    def source(self) -> str:
        """Folded name of the source."""
        return self.tables[0].ref.source.casefold() if self.tables else ""

    @cached_property
    def _by_name(self) -> dict[str, list[Table]]:
        found: dict[str, list[Table]] = {}
        for table in self.tables:
            found.setdefault(table.ref.name.casefold(), []).append(table)
        return found

    def find(self, name: str, prefixes: Sequence[str] = ()) -> Sequence[Table]:
        """The tables of that name, ``prefixes`` (source, schema) standing before it."""
        matches = self._by_name.get(name.casefold(), [])
        return [table for table in matches if self.accepts(table, prefixes)]

    def find_joined(self, name: str) -> Sequence[Table]:
        """The tables behind ``"schema.table"`` quoted as if it were one name."""
        *prefixes, last = name.split(".")
        return self.find(last, prefixes) if prefixes else ()

    @cached_property
    def types(self) -> frozenset[str]:
        """Words of the columns' declared types, folded: a cast may name them."""
        texts = {column.type for table in self.tables for column in table.columns}
        # What stands in parentheses or quotes is the user's: enum('into', 'outfile').
        heads = (re.split("[('\"<]", text.casefold())[0] for text in texts)
        words = {word for head in heads for word in re.findall(r"\w+", head)} - RESERVED
        # A cast to regclass and its like looks names up in the catalog.
        return frozenset(word for word in words if not word.startswith(("reg", "pg_")))

    def accepts(self, table: Table, prefixes: Sequence[str]) -> bool:
        """True when each prefix is the table's schema or source (SQLite's schema: main)."""
        schema = table.ref.schema.casefold() if table.ref.schema is not None else "main"
        return all(prefix.casefold() in (schema, self.source) for prefix in prefixes)

    def near_tables(self, name: str) -> list[str]:
        """Names of tables like ``name``, the nearest first."""
        return nearest(name, [table.ref.name for table in self.tables])

    def near_columns(self, name: str, within: Iterable[Table]) -> list[str]:
        """Columns like ``name`` as ``table.column``: of ``within``, else of any table.

        Columns of the same name in other tables come too: that table was forgotten.
        """
        own = list(within)
        close = _columns_like(name, own)
        refs = {table.ref for table in own}
        same = [
            f"{table.ref.name}.{column}"
            for table, column in self._columns.get(name.casefold(), ())
            if table.ref not in refs
        ]
        return [*close, *same[:3]] or self._columns_like(name)

    @cached_property
    def _columns(self) -> dict[str, list[tuple[Table, str]]]:
        found: dict[str, list[tuple[Table, str]]] = {}
        for table in self.tables:
            for column in table.columns:
                found.setdefault(column.name.casefold(), []).append((table, column.name))
        return found

    def _columns_like(self, name: str) -> list[str]:
        folded = nearest(name, self._columns)
        places = [place for other in folded for place in self._columns[other]]
        return [f"{table.ref.name}.{column}" for table, column in places[:3]]


def nearest(name: str, names: Iterable[str], n: int = 3, cutoff: float = _CUTOFF) -> list[str]:
    """At most ``n`` of ``names`` that are spelled like ``name``, the nearest first."""
    like = _Likeness(name)
    scored = [(like(other), other) for other in names]
    close = [pair for pair in scored if pair[0] >= cutoff]
    close.sort(key=lambda pair: -pair[0])
    return [other for _, other in close[:n]]


def likeness(one: str, other: str) -> float:
    """How alike two names are, 0 to 1; a name within the other counts as at least 0.75."""
    return _Likeness(one)(other)


def spelling(one: str, other: str) -> float:
    """How alike two names are spelled, 0 to 1 (Ratcliff and Obershelp's measure).

    Letter case, blanks and underscores do not count; names that are far apart (below 0.6)
    may come out as 0.
    """
    return _Likeness(one).spelling(plain(other))


class _Likeness:
    """Likeness of many names to one, which is looked through only once."""

    def __init__(self, name: str) -> None:
        self._name = plain(name)
        self._matcher = difflib.SequenceMatcher(None, "", self._name)

    def __call__(self, other: str) -> float:
        a, b = self._name, plain(other)
        if min(len(a), len(b)) >= 3 and (a in b or b in a):
            return max(0.75, min(len(a), len(b)) / max(len(a), len(b)))
        return self.spelling(b)

    def spelling(self, plain: str) -> float:
        if plain == self._name:
            return 1.0
        self._matcher.set_seq1(plain)
        # The upper bounds are cheap, and most pairs are far apart.
        if self._matcher.real_quick_ratio() < _CUTOFF or self._matcher.quick_ratio() < _CUTOFF:
            return 0.0
        return self._matcher.ratio()


@lru_cache(maxsize=65536)
def plain(name: str) -> str:
    """A name without letter case, blanks and underscores."""
    return re.sub(r"[\W_]+", "", name.casefold()) or name


def _columns_like(name: str, tables: Iterable[Table]) -> list[str]:
    scored = [
        (likeness(name, column.name), f"{table.ref.name}.{column.name}")
        for table in tables
        for column in table.columns
    ]
    close = [pair for pair in scored if pair[0] >= _CUTOFF]
    close.sort(key=lambda pair: -pair[0])
    return [text for _, text in close[:3]]
