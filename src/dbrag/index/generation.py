"""The next generation in the making: a folder nobody reads before the manifest names it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from dbrag.catalog.sketches import sketch_columns
from dbrag.index.catalogs import read_catalog, write_catalog
from dbrag.index.files import link, link_tree, translated
from dbrag.index.fulltext import TextWriter, of_tables, open_texts
from dbrag.index.joins import make_joins
from dbrag.index.layout import Layout
from dbrag.index.lazy import StoredCatalog
from dbrag.index.places import write_places
from dbrag.index.row_hashes import Partial
from dbrag.index.row_vectors import keep_row_vectors, write_row_vectors
from dbrag.index.rows import ROWS, row_texts
from dbrag.index.sketches import (
    Columns,
    are_whole,
    keep_sketches,
    read_sketches,
    write_sketches,
)
from dbrag.index.summaries import column_texts, entry_texts
from dbrag.index.tables import TableTexts, write_tables
from dbrag.index.values import VALUES, column_values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from dbrag.index.inputs import TextInputs
    from dbrag.index.layout import Generation
    from dbrag.models.base import Embedder
    from dbrag.types import Table, TableRef

_CHUNK_ROWS = 5_000


class NextGeneration:
    """Writes one generation, taking over from the previous one what stays.

    Args:
        files: the new folder; must not exist.
        previous: the generation to take from; None starts empty.
        inputs: what texts depend on besides the sources.
        force: sketches that are damaged are left behind, like those of an older index.
    """

    def __init__(
        self,
        files: Generation,
        previous: Generation | None,
        inputs: TextInputs,
        *,
        force: bool = False,
    ) -> None:
        self.files = files
        self._previous = previous
        self._inputs = inputs
        self._force = force
        self._sources: list[str] = []
        self._taken: dict[str, list[str]] = {}
        self._sketched: Columns = {}
        with translated(files.root.parent, "write"):
            files.catalogs.mkdir(parents=True)
            files.reader_lock.touch()

    @cached_property
    def _rows(self) -> TextWriter:
        return TextWriter(self.files, self._previous, ROWS, stem=True)

    @cached_property
    def _values(self) -> TextWriter:
        return TextWriter(self.files, self._previous, VALUES, stem=False)

    def add_table(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        """Make the rows and values of a table searchable."""
        values, columns = column_values(rows, len(table.columns))
        names = [column.name for column in table.columns]
        self._sketched[table.ref] = sketch_columns(names, rows)
        with translated(self.files.root.parent, "write"):
            for start in range(0, len(rows), _CHUNK_ROWS):
                texts = row_texts(rows[start : start + _CHUNK_ROWS])
                self._rows.add(table.ref, texts, range(start, start + len(texts)))
            self._values.add(table.ref, values, columns)

    def add_catalog(
        self, source: str, tables: Sequence[Table], marks: Mapping[TableRef, str]
    ) -> None:
        """Write the catalog of a source that was read, ordered by schema and name."""
        ordered = sorted(tables, key=lambda table: (table.ref.schema or "", table.ref.name))
        write_catalog(self.files.catalog(source), ordered, marks)
        with translated(self.files.root.parent, "write"):
            known = self._known_sketches(source)
            # Without a profile nothing was read: then an earlier sketch is of other rows.
            kept = {t.ref: known[t.ref] for t in ordered if t.profile and t.ref in known}
            write_sketches(self.files, source, ordered, kept | self._sketched)
        self._sketched = {}
        self._sources.append(source)

    def _known_sketches(self, source: str) -> Columns:
        """Those of the tables of a source that may stay: none where all are read again."""
        if self._previous is None or self._force:
            return {}
        return read_sketches(self._previous, source)

    def take_over(
        self, source: str, kept: Collection[TableRef], left: Collection[TableRef]
    ) -> None:
        """Let the texts of ``kept`` tables stay, of a source whose ``left`` ones do not."""
        self._taken[source] = of_tables(source, kept, left)

    def take_back(self, source: str) -> None:
        """Remove the texts of a source whose reading failed."""
        self._sketched = {}
        with translated(self.files.root.parent, "write"):
            self._taken.pop(source, None)
            self._rows.take_back(source)
            self._values.take_back(source)

    def finish_texts(self, kept: Collection[str]) -> tuple[int, int]:
        """Take over the sources that stay and complete the full-text indexes.

        Returns:
            The versions of rows and values.
        """
        with translated(self.files.root.parent, "write"):
            self._keep(kept)
            tables = [one for source in sorted(self._taken) for one in self._taken[source]]
            return self._rows.finish(kept, tables), self._values.finish(kept, tables)

    def link_texts(self, kept: Collection[str]) -> None:
        """Take over all sources; rows and values stay as they are, down to the files."""
        with translated(self.files.root.parent, "write"):
            self._keep(kept)
            if self._previous is not None:
                link_tree(self._previous.lance, self.files.lance)

    def _keep(self, kept: Collection[str]) -> None:
        """Take over the catalogs of sources that stay."""
        if self._previous is None:
            return
        for source in kept:
            link(self._previous.catalog(source), self.files.catalog(source))
            if not self._force or are_whole(self._previous, source):
                keep_sketches(self._previous, self.files, source)
            self._sources.append(source)

    def write_tables(
        self, embedder: Callable[[], Embedder], on_encoded: Callable[[int, int], None], reuse: bool
    ) -> int:
        """Write the arrays over all tables of all sources; the number of tables.

        Args:
            embedder: called when a text is not among the previous generation's.
            reuse: whether the previous vectors were made by the same encoder.
        """
        catalog = self._catalog()
        with translated(self.files.root.parent, "write"):
            notes = self._inputs.record(self.files, catalog)
            joins = make_joins(self.files, catalog, self._inputs.joins)
            write_places(self.files, catalog.refs, joins)
        texts = TableTexts()
        with translated(self.files.root.parent, "read"):
            for source in catalog.sources:
                for table in map(notes.apply, read_catalog(self.files.catalog(source))):
                    near = [ref.name for ref in joins.neighbours(table.ref)]
                    texts.add(entry_texts(table, near), column_texts(table))
        write_tables(
            self.files,
            self._previous if reuse else None,
            texts,
            embedder=embedder,
            on_encoded=on_encoded,
        )
        return len(catalog.refs)

    def write_rows(
        self,
        dense_rows: int | None,
        embedder: Callable[[], Embedder],
        encoder_sha256: str,
        on_encoded: Callable[[int, int], None],
        reuse: bool,
    ) -> dict[TableRef, int]:
        """Give rows their vectors, after ``finish_texts``.

        Args:
            dense_rows: rows of one table that get one at most; None makes none.
            embedder: called when a row is not among the previous generation's.
            reuse: whether earlier vectors were made by the same encoder and may be used.

        Returns:
            The tables that have more rows, with their number of distinct rows.
        """
        previous = self._previous if reuse else None
        with translated(self.files.root.parent, "write"):
            partial = Layout(self.files.root.parent).row_vectors_part
            if not reuse:
                partial.unlink(missing_ok=True)
            if dense_rows is None:
                if previous is not None:
                    keep_row_vectors(previous, self.files)
                return {}
            return write_row_vectors(
                self.files,
                previous,
                self._catalog().tables,
                dense_rows=dense_rows,
                embedder=embedder,
                partial=Partial(partial, encoder_sha256),
                on_encoded=on_encoded,
            )

    def _catalog(self) -> StoredCatalog:
        """The tables of all sources, read from the new files."""
        with translated(self.files.root.parent, "read"):
            return StoredCatalog.open(self.files, sorted(self._sources))


def is_whole(generation: Generation, sources: Sequence[str]) -> bool:
    """Whether the catalogs and texts of these sources can be taken over."""
    try:
        for source in sources:
            for _ in read_catalog(generation.catalog(source)):
                pass
        for name in (ROWS, VALUES):
            open_texts(generation, name).count_rows()
    except Exception:  # whatever it is, it cannot be taken over
        return False
    return True
