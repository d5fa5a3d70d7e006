"""The user's word on joins: ``[joins]`` of ``dbrag.toml`` laid over what is declared or inferred.

::

    [joins]
    add = ["shop.orders.customer_id = shop.customers.id"]
    remove = ["shop.orders.id = shop.customers.id"]

A side is a column with its table before it, as far as needed to be unique. Keys of several
columns: ``a.x = b.x and a.y = b.y``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from dbrag.catalog.joins import JoinEdge
from dbrag.catalog.names import owners
from dbrag.types import AnswerWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbrag.catalog.catalog import Catalog
    from dbrag.types import Table, TableRef

BY_USER = "added in dbrag.toml"

_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_SHOWN = 3


class NotAJoin(ValueError):
    """A correction that names no join; its text tells why."""


def corrected(
    edges: Iterable[JoinEdge], catalog: Catalog, add: Sequence[str], remove: Sequence[str]
) -> tuple[list[JoinEdge], list[AnswerWarning]]:
    """The edges as the user wants them, and the corrections that could not be made.

    An added edge counts as declared, and replaces an inferred one of the same columns. A
    removed one may be written in either direction; it may be declared or inferred. Of all
    tables only those that are named are looked at.
    """
    columns = _Columns(catalog, (*add, *remove))
    kept = {_ends(edge): edge for edge in edges}
    problems: list[AnswerWarning] = []
    for text in remove:
        try:
            if kept.pop(_ends(columns.edge(text)), None) is None:
                raise NotAJoin("there is no such join (dbrag joins lists them)")
        except NotAJoin as error:
            problems.append(_problem("remove", text, error))
    for text in add:
        try:
            edge = columns.edge(text)
        except NotAJoin as error:
            problems.append(_problem("add", text, error))
        else:
            kept[_ends(edge)] = edge
    return list(kept.values()), problems


def _problem(what: str, text: str, error: NotAJoin) -> AnswerWarning:
    return AnswerWarning("joins_setting", f"[joins] {what} {text!r} has no effect: {error}")


def _ends(edge: JoinEdge) -> frozenset[tuple[TableRef, str, TableRef, str]]:
    """The pairs of columns, the same in either direction."""
    pairs = zip(edge.left_columns, edge.right_columns, strict=True)
    return frozenset(
        min(
            (edge.left, a.casefold(), edge.right, b.casefold()),
            (edge.right, b.casefold(), edge.left, a.casefold()),
            key=str,
        )
        for a, b in pairs
    )


def _dots(text: str) -> list[int]:
    return [i for i, character in enumerate(text) if character == "."]


class _Columns:
    """The tables that corrections may mean, by every name they may be called.

    Args:
        texts: the corrections.
    """

    def __init__(self, catalog: Catalog, texts: Iterable[str]) -> None:
        self._tables = catalog.by_ref
        sides = [s.strip() for text in texts for part in _AND.split(text) for s in part.split("=")]
        self._named = owners(
            {side[:dot].casefold() for side in sides for dot in _dots(side)}, catalog.refs
        )

    def edge(self, text: str) -> JoinEdge:
        """The edge that a correction names.

        Raises:
            NotAJoin: it is not written as one, or names what there is not.
        """
        pairs = []
        for part in _AND.split(text.strip()):
            sides = part.split("=")
            if len(sides) != 2:
                raise NotAJoin('write "table.column = other_table.column"')
            pairs.append((self._column(sides[0].strip()), self._column(sides[1].strip())))
        left, right = pairs[0][0][0], pairs[0][1][0]
        if any((a[0], b[0]) != (left, right) for a, b in pairs):
            raise NotAJoin("all its parts must join the same two tables, in the same order")
        if left.source != right.source:
            raise NotAJoin("its tables are of two sources, and a program reads one")
        if any(a == b for a, b in pairs):
            raise NotAJoin("a column is joined with itself")
        edge = JoinEdge(left, tuple(a[1] for a, _ in pairs), right, tuple(b[1] for _, b in pairs))
        return replace(edge, evidence=BY_USER)

    def _column(self, text: str) -> tuple[TableRef, str]:
        """Table and column; names may hold dots, so every way of reading it is tried."""
        found = []
        known: list[Table] = []
        for dot in _dots(text):
            for table in map(self._tables.__getitem__, self._named.get(text[:dot].casefold(), ())):
                known.append(table)
                column = table.column(text[dot + 1 :])
                if column is not None:
                    found.append((table.ref, column.name))
        if len(found) == 1:
            return found[0]
        if found:
            places = ", ".join(str(ref) for ref, _ in found[:_SHOWN])
            raise NotAJoin(f"{text!r} may be a column of {places}; write the source before it")
        if known:
            names = ", ".join(column.name for column in known[0].columns[:20])
            raise NotAJoin(f"{known[0].ref} has no such column as in {text!r}; it has {names}")
        raise NotAJoin(f"{text!r} names no indexed table and column")
