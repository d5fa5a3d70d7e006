"""Full text over LanceDB: one table of short texts that belong to database tables."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbrag.index.files import translated
from dbrag.index.layout import source_id, table_id
from dbrag.index.words import WORD, telling

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from dbrag.index.layout import Generation
    from dbrag.types import TableRef

_QUERY_WORDS = 64
_QUERY_CHARS = 20_000
_NEAR_BOOST = 3.0
_FLUSH_ROWS = 50_000
_FLUSH_CHARS = 16_000_000
_INDEX_MB = 512
_IDS = 500


@dataclass(frozen=True, slots=True)
class TextHit:
    """A matching text: its table, BM25 score (> 0), the text and what was stored with it."""

    table: int
    score: float
    text: str
    extra: int


class TextTable:
    """Reads one LanceDB table at one version; opened at the first search, shared by threads."""

    def __init__(self, generation: Generation, name: str, version: int) -> None:
        self._generation = generation
        self._name = name
        self._version = version
        self._table: Any = None
        self._lock = threading.Lock()

    def search(
        self, question: str, limit: int, tables: Collection[TableRef] | None = None
    ) -> list[TextHit]:
        """The best texts that share a word with the question (its first 64 telling words).

        Best first; equal scores in the order of tables and texts, so that the same
        index gives the same list.

        Args:
            tables: search only texts of these.

        Raises:
            IndexUnusable: the index is damaged.
        """
        words = _query(question)
        if not words or limit < 1 or (tables is not None and not tables):
            return []
        with translated(self._generation.root.parent, "search"):
            return self._search(words, limit, tables)

    def take(self, row_ids: Sequence[int]) -> list[TextHit]:
        """The texts with these ids of LanceDB, in their order, with score 0.

        Raises:
            IndexUnusable: the index is damaged.
        """
        if not row_ids:
            return []
        columns = ["table_id", "extra", "text"]
        with translated(self._generation.root.parent, "search"):
            found = self._open().take_row_ids(list(row_ids)).select(columns).with_row_id()
            rows = {row["_rowid"]: row for row in found.to_arrow().to_pylist()}
            return [
                TextHit(rows[one]["table_id"], 0.0, rows[one]["text"], rows[one]["extra"])
                for one in row_ids
            ]

    def near(
        self, word: str, edits: int, others: Sequence[str], around: Sequence[str], limit: int
    ) -> list[TextHit]:
        """Texts with a word at most ``edits`` letters away from ``word`` (Levenshtein), best first.

        Args:
            word: folded: Lance compares it with its folded words as it stands.
            others: words that count like it, to be found as they are.
            around: words that add to the score of what is found.

        Raises:
            IndexUnusable: the index is damaged.
        """
        from lancedb.query import BooleanQuery, MatchQuery, Occur

        fuzzy = MatchQuery(word, "text", fuzziness=edits, prefix_length=0, boost=_NEAR_BOOST)
        parts = [(Occur.SHOULD, fuzzy)]
        for words, boost in ((others, _NEAR_BOOST), (around, 1.0)):
            if words:
                text = " ".join(words[:_QUERY_WORDS])
                parts.append((Occur.SHOULD, MatchQuery(text, "text", boost=boost)))
        with translated(self._generation.root.parent, "search"):
            return self._hits(self._open().search(BooleanQuery(parts), query_type="fts"), limit)

    def _matching(self, words: str) -> Any:
        from lancedb.query import MatchQuery

        return self._open().search(MatchQuery(words, "text"), query_type="fts")

    def _search(self, words: str, limit: int, tables: Collection[TableRef] | None) -> list[TextHit]:
        query = self._matching(words)
        if tables is not None:
            ids = ", ".join(str(table_id(ref)) for ref in sorted(tables, key=str))
            query = query.where(f"table_id IN ({ids})", prefilter=True)
        return self._hits(query, limit)

    def _hits(self, query: Any, limit: int) -> list[TextHit]:
        found = query.select(["table_id", "extra", "text", "_score"]).limit(limit).to_arrow()
        hits = [
            TextHit(table, score, text, extra)
            for table, score, text, extra in zip(
                found["table_id"].to_pylist(),
                found["_score"].to_pylist(),
                found["text"].to_pylist(),
                found["extra"].to_pylist(),
                strict=True,
            )
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.table, hit.extra, hit.text))

    def _open(self) -> Any:
        with self._lock:
            if self._table is None:
                table = open_texts(self._generation, self._name)
                if table.version != self._version:
                    raise ValueError(f"{self._name} has version {table.version}")
                self._table = table
            return self._table


class TextWriter:
    """Writes one LanceDB table of a new generation.

    Args:
        previous: the generation whose texts may be taken over.
        stem: reduce words to English stems and drop English stop words.
    """

    def __init__(
        self, generation: Generation, previous: Generation | None, name: str, *, stem: bool
    ) -> None:
        self._stem = stem
        self._table = _connect(generation.lance).create_table(name, schema=_schema())
        self._previous: Any = None
        if previous is not None:
            self._previous = open_texts(previous, name)
        self._columns: tuple[list[int], list[int], list[int], list[str]] = ([], [], [], [])
        self._chars = 0

    def add(self, ref: TableRef, texts: Sequence[str], extras: Sequence[int]) -> None:
        """Texts of one table, each with a number of the caller's."""
        sources, tables, numbers, kept = self._columns
        sources.extend([source_id(ref.source)] * len(texts))
        tables.extend([table_id(ref)] * len(texts))
        numbers.extend(extras)
        kept.extend(texts)
        self._chars += sum(map(len, texts))
        if len(kept) >= _FLUSH_ROWS or self._chars >= _FLUSH_CHARS:
            self._flush()

    def take_back(self, source: str) -> None:
        """Delete what was added of a source."""
        self._flush()
        self._table.delete(f"source_id = {source_id(source)}")

    def finish(self, kept: Collection[str], tables: Sequence[str] = ()) -> int:
        """Take over the texts of the sources that stay, index all; the table's version.

        Args:
            kept: names of sources.
            tables: what stays of others, as ``of_tables`` gives it.

        The full-text index is built anew rather than merged: merging took as long
        (357,000 rows: 5.8 s against 6.3 s), left the old one behind, and counted deleted
        rows in its statistics, so that scores depended on the history.
        """
        from lancedb.index import FTS, BTree

        self._flush()
        ids = [str(source_id(name)) for name in sorted(kept)]
        for start in range(0, len(ids) if self._previous is not None else 0, _IDS):
            self._take_over(f"source_id IN ({', '.join(ids[start : start + _IDS])})")
        for predicate in tables if self._previous is not None else ():
            self._take_over(predicate)
        # ICU finds words in scripts without spaces; "split" cuts at punctuation too.
        config = FTS(
            base_tokenizer="icu/split",
            stem=self._stem,
            remove_stop_words=self._stem,
            memory_limit=_INDEX_MB,
        )
        self._table.create_index("text", config=config, replace=True)
        # Searches in ten of 800 tables took 3.9 ms with it, 8.7 ms without.
        self._table.create_index("table_id", config=BTree(), replace=True)
        return int(self._table.version)

    def _take_over(self, predicate: str) -> None:
        count = self._previous.count_rows(predicate)
        if count:
            self._table.add(self._previous.search().where(predicate).limit(count).to_batches())

    def _flush(self) -> None:
        import pyarrow as pa

        sources, tables, numbers, texts = self._columns
        if not texts:
            return
        columns = [sources, tables, numbers, [_storable(text) for text in texts]]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _schema(), strict=True)]
        self._table.add(pa.Table.from_arrays(arrays, schema=_schema()))
        self._columns = ([], [], [], [])
        self._chars = 0


def of_tables(source: str, kept: Collection[TableRef], left: Collection[TableRef]) -> list[str]:
    """Predicates that together select the texts of ``kept``, of a source's tables.

    Args:
        left: all its other tables.
    """
    if not kept:
        return []
    of_source = f"source_id = {source_id(source)}"
    few = kept if len(kept) <= len(left) else left
    ids = [str(table_id(ref)) for ref in sorted(few, key=str)]
    chunks = [", ".join(ids[start : start + _IDS]) for start in range(0, len(ids), _IDS)]
    if few is kept:
        return [f"{of_source} AND table_id IN ({chunk})" for chunk in chunks]
    return [" AND ".join([of_source, *(f"table_id NOT IN ({chunk})" for chunk in chunks)])]


def _query(question: str) -> str:
    """The telling words of a question: no punctuation, so nothing that could be syntax.

    Words are left as they stand; Lance folds, stems and segments them as it did the texts.
    """
    return " ".join(telling(WORD.findall(question[:_QUERY_CHARS]), _QUERY_WORDS))


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            ("source_id", pa.int64()),
            ("table_id", pa.int64()),
            ("extra", pa.int32()),
            ("text", pa.string()),
        ]
    )


def open_texts(generation: Generation, name: str) -> Any:
    """The LanceDB table ``name`` of a generation."""
    return _connect(generation.lance).open_table(name)


def scan_texts(generation: Generation, name: str) -> Iterator[Any]:
    """All texts of a LanceDB table as Arrow batches: table_id, text, and _rowid."""
    table = open_texts(generation, name)
    query = table.search().select(["table_id", "text"]).with_row_id(True)
    yield from query.limit(max(1, table.count_rows())).to_batches()


def _connect(folder: Path) -> Any:
    # Read at import; Lance's own warnings would land on the user's standard error.
    os.environ.setdefault("LANCEDB_LOG", "error")
    import lancedb

    return lancedb.connect(folder)


def _storable(text: str) -> str:
    """Text without lone surrogates, which Arrow refuses."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
