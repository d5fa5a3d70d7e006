"""The joins of an index: declared, inferred and corrected, in one file per generation.

The first line of ``joins.jsonl`` says what the graph was made with (``given``), so that
an index knows when the settings have changed, and where the line of each source starts:
the joins of a source are read when they are asked for (``lazy_joins``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from dbrag.catalog import inference
from dbrag.catalog.corrections import corrected
from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.catalog.parts import parts_of
from dbrag.index.files import translated
from dbrag.index.lazy_joins import LazyJoins
from dbrag.index.sketches import edge_data, edge_of, read_inferred
from dbrag.types import AnswerWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from dbrag.index.layout import Generation
    from dbrag.index.lazy import StoredCatalog
    from dbrag.settings import Settings
    from dbrag.types import Table


@dataclass(frozen=True, slots=True)
class JoinInputs:
    """What the settings say of joins.

    Attributes:
        infer: "off", "undeclared" (only in sources, or parts of them, that declare no key)
            or "all".
        add: joins that the user adds, ``remove``: those that are none.
    """

    infer: str = "all"
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> JoinInputs:
        """Those of the settings."""
        return cls(settings.infer_joins, settings.joins.add, settings.joins.remove)

    @property
    def digest(self) -> str:
        """Differs where the same tables would give another graph."""
        text = json.dumps([inference.VERSION, self.infer, self.add, self.remove])
        return sha256(text.encode("ascii")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class StoredJoins:
    """The graph of an index, what it was made with, and corrections that had no effect."""

    graph: LazyJoins
    given: JoinInputs
    problems: tuple[AnswerWarning, ...] = ()


def make_joins(files: Generation, catalog: StoredCatalog, inputs: JoinInputs) -> LazyJoins:
    """Make and store the graph of a new generation, one source at a time.

    Args:
        catalog: all tables of all sources.

    Raises:
        OSError, ValueError, KeyError, TypeError: a file of a source is damaged, or the new
            one cannot be written.
    """
    unknown: list[str] = []
    of_sources = (
        (source, _edges_of(files, source, catalog, inputs.infer, unknown))
        for source in catalog.sources
    )
    problems: list[AnswerWarning] = []
    if inputs.add or inputs.remove:
        edges = [edge for _, found in of_sources for edge in found]
        edges, problems = corrected(edges, catalog, inputs.add, inputs.remove)
        of_sources = ((source, found) for source, found in _by_source(edges).items())
    lines = [
        (source, _line([edge_data(edge) for edge in JoinGraph(found).edges]))
        for source, found in of_sources
        if found
    ]
    ends = [0, *accumulate(len(line) for _, line in lines)]
    head = {
        "given": {"infer": inputs.infer, "add": inputs.add, "remove": inputs.remove},
        "problems": [problem.to_dict() for problem in [*problems, *map(_without, unknown)]],
        "spans": {source: ends[i : i + 2] for i, (source, _) in enumerate(lines)},
    }
    with _file(files).open("wb") as file:
        file.writelines([_line(head), *(line for _, line in lines)])
    return read_joins(files).graph


def _edges_of(
    files: Generation, source: str, catalog: StoredCatalog, mode: str, unknown: list[str]
) -> list[JoinEdge]:
    """The edges of one source before corrections."""
    tables = list(catalog.bare([source]))
    edges = list(JoinGraph.from_tables(tables).edges)
    if mode != "off":
        inferred = read_inferred(files, source, catalog.of_source(source))
        if inferred is None:
            unknown.append(source)
        edges += _added(inferred or (), tables, mode)
    return edges


def _by_source(edges: Iterable[JoinEdge]) -> dict[str, list[JoinEdge]]:
    found: dict[str, list[JoinEdge]] = {}
    for edge in edges:
        found.setdefault(edge.left.source, []).append(edge)
    return dict(sorted(found.items()))


def _line(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def _without(source: str) -> AnswerWarning:
    return AnswerWarning(
        "joins_not_inferred",
        f"{source} was indexed by a dbrag that inferred no joins (dbrag index --force reads it)",
    )


def _added(inferred: Iterable[JoinEdge], tables: Sequence[Table], mode: str) -> Iterator[JoinEdge]:
    """Edges of a source that are not said already by a declared key of the same column."""
    parts = parts_of(tables)
    keyed = {parts[table.ref] for table in tables if table.foreign_keys}
    single = [
        (table.ref, key) for table in tables for key in table.foreign_keys if len(key.columns) == 1
    ]
    declared = {(ref, key.columns[0].casefold()) for ref, key in single}
    backwards = {
        (key.target, key.target_columns[0].casefold(), ref, key.columns[0].casefold())
        for ref, key in single
    }
    for edge in inferred:
        here = edge.left, edge.left_columns[0].casefold()
        if mode == "undeclared" and parts.get(edge.left) in keyed:
            continue
        there = edge.right, edge.right_columns[0].casefold()
        if here not in declared and (*here, *there) not in backwards:
            yield edge


def read_joins(files: Generation) -> StoredJoins:
    """The joins of a generation.

    Raises:
        OSError, ValueError, KeyError, TypeError: missing or damaged.
    """
    path = _file(files)
    with path.open("rb") as file:
        head = json.loads(file.readline())
        base = file.tell()
    spans = {source: (base + start, base + end) for source, (start, end) in head["spans"].items()}

    def read(source: str) -> JoinGraph:
        if source not in spans:
            return JoinGraph(())
        start, end = spans[source]
        with translated(files.root.parent, "read"), path.open("rb") as file:
            file.seek(start)
            return JoinGraph(edge_of(entry) for entry in json.loads(file.read(end - start)))

    problems = tuple(AnswerWarning(**problem) for problem in head["problems"])
    return StoredJoins(LazyJoins(tuple(spans), read), _given(head), problems)


def read_join_inputs(files: Generation) -> JoinInputs:
    """What the joins of a generation were made with.

    Raises:
        OSError, ValueError, KeyError, TypeError: damaged.
    """
    return read_joins(files).given


def _given(data: Mapping[str, Any]) -> JoinInputs:
    given = data["given"]
    return JoinInputs(given["infer"], tuple(given["add"]), tuple(given["remove"]))


def _file(files: Generation) -> Path:
    return files.root / "joins.jsonl"
