"""The joins of an index: declared, inferred and corrected, in one file per generation.

``joins.json`` says what the graph was made with (``given``), so that an index knows when
the settings have changed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from dbrag.catalog import inference
from dbrag.catalog.corrections import corrected
from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.catalog.parts import parts_of
from dbrag.index.sketches import edge_data, edge_of, read_inferred
from dbrag.types import AnswerWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dbrag.index.layout import Generation
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

    graph: JoinGraph
    given: JoinInputs
    problems: tuple[AnswerWarning, ...] = ()


def make_joins(files: Generation, tables: Sequence[Table], inputs: JoinInputs) -> JoinGraph:
    """Make and store the graph of a new generation.

    Args:
        tables: all tables of all sources.

    Raises:
        OSError, ValueError, KeyError, TypeError: a file of a source is damaged, or the new
            one cannot be written.
    """
    edges = list(JoinGraph.from_tables(tables).edges)
    unknown: list[str] = []
    if inputs.infer != "off":
        edges += _inferred(files, tables, inputs.infer, unknown)
    edges, problems = corrected(edges, tables, inputs.add, inputs.remove)
    graph = JoinGraph(edges)
    data = {
        "given": {"infer": inputs.infer, "add": inputs.add, "remove": inputs.remove},
        "edges": [edge_data(edge) for edge in graph.edges],
        "problems": [problem.to_dict() for problem in [*problems, *map(_without, unknown)]],
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    _file(files).write_text(text, encoding="ascii")
    return graph


def _without(source: str) -> AnswerWarning:
    return AnswerWarning(
        "joins_not_inferred",
        f"{source} was indexed by a dbrag that inferred no joins (dbrag index --force reads it)",
    )


def _inferred(
    files: Generation, tables: Sequence[Table], mode: str, unknown: list[str]
) -> Iterator[JoinEdge]:
    """Edges that are inferred, and not said already by a declared key of the same column.

    Sources that were indexed without sketches are added to ``unknown``.
    """
    by_source: dict[str, list[Table]] = defaultdict(list)
    for table in tables:
        by_source[table.ref.source].append(table)
    for source, own in by_source.items():
        parts = parts_of(own)
        keyed = {parts[table.ref] for table in own if table.foreign_keys}
        declared = {
            (table.ref, key.columns[0].casefold())
            for table in own
            for key in table.foreign_keys
            if len(key.columns) == 1
        }
        backwards = {
            (key.target, key.target_columns[0].casefold(), table.ref, key.columns[0].casefold())
            for table in own
            for key in table.foreign_keys
            if len(key.columns) == 1
        }
        inferred = read_inferred(files, source, own)
        if inferred is None:
            unknown.append(source)
        for edge in inferred or ():
            here = edge.left, edge.left_columns[0].casefold()
            if mode == "undeclared" and parts.get(edge.left) in keyed:
                continue
            there = edge.right, edge.right_columns[0].casefold()
            if here not in declared and (*here, *there) not in backwards:
                yield edge


def read_joins(files: Generation) -> StoredJoins | None:
    """The joins of a generation; None where it was made by a dbrag that stored none.

    Raises:
        OSError, ValueError, KeyError, TypeError: damaged.
    """
    data = _read(files)
    if data is None:
        return None
    return StoredJoins(
        JoinGraph(edge_of(entry) for entry in data["edges"]),
        _given(data),
        tuple(AnswerWarning(**problem) for problem in data["problems"]),
    )


def read_join_inputs(files: Generation) -> JoinInputs:
    """What the joins of a generation were made with.

    Raises:
        OSError, ValueError, KeyError, TypeError: damaged.
    """
    data = _read(files)
    return JoinInputs() if data is None else _given(data)


def _given(data: Mapping[str, Any]) -> JoinInputs:
    given = data["given"]
    return JoinInputs(given["infer"], tuple(given["add"]), tuple(given["remove"]))


def _read(files: Generation) -> Mapping[str, Any] | None:
    try:
        data = json.loads(_file(files).read_bytes())
    except FileNotFoundError:
        return None
    if not isinstance(data, dict):
        raise ValueError("joins.json is damaged")
    return data


def _file(files: Generation) -> Path:
    return files.root / "joins.json"
