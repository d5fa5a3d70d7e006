"""The catalog of an index, read from its files as it is asked for.

What ranking needs of all tables is small and in memory: their identities. Column names
and whole tables are read one by one; the latest are kept.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from dbrag.catalog.catalog import Catalog
from dbrag.index.catalogs import CatalogFile
from dbrag.index.files import translated
from dbrag.types import Column, ForeignKey, Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.layout import Generation

_CACHE_BYTES = 16_000_000
"""Kept tables, as bytes in the files: up to ten times as much in memory."""
_CACHE_NAME_BYTES = 16_000_000
_MASKS = 32

Key = TypeVar("Key")
Value = TypeVar("Value")


class Tables(Sequence[Table]):
    """Tables ``start`` to ``stop`` of a stored catalog."""

    def __init__(self, read: Callable[[int], Table], start: int, stop: int) -> None:
        self._read = read
        self._range = range(start, stop)

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, i: int) -> Table: ...
    @overload
    def __getitem__(self, i: slice) -> tuple[Table, ...]: ...
    def __getitem__(self, i: int | slice) -> Table | tuple[Table, ...]:
        if isinstance(i, slice):
            return tuple(self._read(place) for place in self._range[i])
        return self._read(self._range[i])

    def __iter__(self) -> Iterator[Table]:
        return map(self._read, self._range)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


class _ByRef(Mapping[TableRef, Table]):
    def __init__(self, tables: Sequence[Table], position: Mapping[TableRef, int]) -> None:
        self._tables = tables
        self._position = position

    def __getitem__(self, ref: TableRef) -> Table:
        return self._tables[self._position[ref]]

    def __contains__(self, ref: object) -> bool:
        return ref in self._position

    def __iter__(self) -> Iterator[TableRef]:
        return iter(self._position)

    def __len__(self) -> int:
        return len(self._position)


class _Latest(Generic[Key, Value]):
    """The latest values up to a total size; at least one. Safe to share by threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key, size: int, make: Callable[[Key], Value]) -> Value:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        value = make(key)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = (value, size)
                self._size += size
            while self._size > self._limit and len(self._kept) > 1:
                _, (_, freed) = self._kept.popitem(last=False)
                self._size -= freed
        return value


class StoredCatalog(Catalog):
    """The catalog files of a generation, sources in a fixed order.

    Args:
        directory: the index, for messages.
        files: one per source.
        adapt: changes a table that was read, as the user's notes do; never its identity
            nor the names of its columns.
    """

    def __init__(
        self,
        directory: Path,
        files: Sequence[CatalogFile],
        adapt: Callable[[Table], Table] | None = None,
    ) -> None:
        own: dict[str, Any] = self.__dict__  # frozen, as every Catalog
        own["_directory"] = directory
        own["_files"] = tuple(files)
        own["_adapt"] = adapt
        own["_firsts"] = [0, *accumulate(len(file.refs) for file in files)]
        own["_tables"] = _Latest[int, Table](_CACHE_BYTES)
        own["_columns"] = _Latest[int, list[str]](_CACHE_NAME_BYTES)
        own["_masks"] = _Latest[frozenset[str], Any](_MASKS)
        own["tables"] = Tables(self._table, 0, self._firsts[-1])

    @classmethod
    def open(
        cls,
        generation: Generation,
        sources: Iterable[str],
        adapt: Callable[[Table], Table] | None = None,
    ) -> StoredCatalog:
        """The catalog of some sources of a generation, in this order.

        Raises:
            OSError, ValueError, KeyError, TypeError: a file is missing or damaged.
        """
        files = [CatalogFile.open(generation.catalog(source)) for source in sources]
        return cls(generation.root.parent, files, adapt)

    _directory: Path
    _files: tuple[CatalogFile, ...]
    _adapt: Callable[[Table], Table] | None
    _firsts: list[int]
    _tables: _Latest[int, Table]
    _columns: _Latest[int, list[str]]
    _masks: _Latest[frozenset[str], Any]

    @cached_property
    def refs(self) -> Sequence[TableRef]:
        """The identities of the tables, in their order."""
        return tuple(ref for file in self._files for ref in file.refs)

    @cached_property
    def by_ref(self) -> Mapping[TableRef, Table]:
        """Lookup by identity."""
        return _ByRef(self.tables, self.position)

    @cached_property
    def redacted(self) -> Sequence[Table]:
        """The tables that have columns nobody may read."""
        places = [first + i for first, file in self._placed for i in file.redacted]
        return tuple(self._table(place) for place in places)

    def of_source(self, source: str) -> Sequence[Table]:
        """The tables of one source."""
        for first, file in self._placed:
            if file.refs and file.refs[0].source == source:
                return Tables(self._table, first, first + len(file.refs))
        return ()

    def bare(self, sources: Collection[str]) -> Iterator[Table]:
        """The tables of these sources with nothing but their names, keys and the user's notes.

        Raises:
            IndexUnusable: a file is damaged.
        """
        for first, file in self._placed:
            if not file.refs or file.refs[0].source not in sources:
                continue
            keys: dict[TableRef, list[ForeignKey]] = {}
            with translated(self._directory, "read"):
                for ref, key in file.foreign_keys():
                    keys.setdefault(ref, []).append(key)
            for i, ref in enumerate(file.refs, start=first):
                columns = tuple(Column(name) for name in self._read_columns(i))
                table = Table(ref, columns, foreign_keys=tuple(keys.get(ref, ())))
                yield table if self._adapt is None else self._adapt(table)

    def columns(self, i: int) -> Sequence[str]:
        """The column names of table ``i``, much sooner than the table.

        Raises:
            IndexUnusable: the file is damaged.
        """
        file, place = self._place(i)
        return self._columns.get(i, file.columns_size(place), self._read_columns)

    def mask(self, sources: Collection[str]) -> NDArray[np.bool_]:
        """``[n_tables]``: which tables are of these sources."""
        mask: NDArray[np.bool_] = self._masks.get(frozenset(sources), 1, self._mask)
        return mask

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that have tables, in their order."""
        return tuple(file.refs[0].source for file in self._files if file.refs)

    @property
    def _placed(self) -> Iterator[tuple[int, CatalogFile]]:
        return zip(self._firsts, self._files, strict=False)

    def _place(self, i: int) -> tuple[CatalogFile, int]:
        number = bisect_right(self._firsts, i) - 1
        return self._files[number], i - self._firsts[number]

    def _table(self, i: int) -> Table:
        file, place = self._place(i)
        return self._tables.get(i, file.size(place), self._read_table)

    def _read_table(self, i: int) -> Table:
        file, place = self._place(i)
        with translated(self._directory, "read"):
            table = file.table(place)
        return table if self._adapt is None else self._adapt(table)

    def _read_columns(self, i: int) -> list[str]:
        file, place = self._place(i)
        with translated(self._directory, "read"):
            return file.columns(place)

    def _mask(self, sources: frozenset[str]) -> NDArray[np.bool_]:
        import numpy as np

        mask = np.zeros(self._firsts[-1], bool)
        for first, file in self._placed:
            if file.refs and file.refs[0].source in sources:
                mask[first : first + len(file.refs)] = True
        mask.setflags(write=False)
        return mask


class TablesById(Mapping[int, tuple[TableRef, Sequence[str]]]):
    """``layout.table_id`` → the table and its column names, which are read when looked at.

    Args:
        ids: int64 ``[n_tables]``, in catalog order.
    """

    def __init__(self, catalog: StoredCatalog, ids: NDArray[np.int64]) -> None:
        import numpy as np

        self._catalog = catalog
        self._order = np.argsort(ids, kind="stable").astype(np.int32)
        self._sorted = ids[self._order]

    def position(self, key: int) -> int | None:
        """The table's place in the catalog."""
        import numpy as np

        at = int(np.searchsorted(self._sorted, key))
        if at == len(self._sorted) or int(self._sorted[at]) != key:
            return None
        return int(self._order[at])

    def __getitem__(self, key: int) -> tuple[TableRef, Sequence[str]]:
        i = self.position(key)
        if i is None:
            raise KeyError(key)
        return self._catalog.refs[i], _ColumnNames(self._catalog, i)

    def __iter__(self) -> Iterator[int]:
        return map(int, self._sorted)

    def __len__(self) -> int:
        return len(self._sorted)


class _ColumnNames(Sequence[str]):
    """The column names of one table, not read before they are needed."""

    def __init__(self, catalog: StoredCatalog, i: int) -> None:
        self._catalog = catalog
        self._i = i

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[str]: ...
    def __getitem__(self, i: int | slice) -> str | Sequence[str]:
        return self._catalog.columns(self._i)[i]

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog.columns(self._i))

    def __len__(self) -> int:
        return len(self._catalog.columns(self._i))
