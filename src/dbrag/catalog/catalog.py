"""All tables of all sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dbrag.types import Table, TableRef


@dataclass(frozen=True)
class Catalog:
    """All tables of all sources, in a fixed order: sources, then schemas, then names.

    That of an index (``index.lazy``) reads tables from its files when they are asked for:
    go through ``tables`` once per build, never once per question.
    """

    tables: Sequence[Table]

    @cached_property
    def refs(self) -> Sequence[TableRef]:
        """The identities of the tables, in their order."""
        return tuple(table.ref for table in self.tables)

    @cached_property
    def by_ref(self) -> Mapping[TableRef, Table]:
        """Lookup by identity."""
        return {table.ref: table for table in self.tables}

    @cached_property
    def position(self) -> Mapping[TableRef, int]:
        """Row of each table in every ``[n_tables, …]`` array."""
        return {ref: i for i, ref in enumerate(self.refs)}

    @cached_property
    def redacted(self) -> Sequence[Table]:
        """The tables that have columns nobody may read."""
        return tuple(table for table in self.tables if table.redacted)

    def of_source(self, source: str) -> Sequence[Table]:
        """The tables of one source."""
        return tuple(table for table in self.tables if table.ref.source == source)
