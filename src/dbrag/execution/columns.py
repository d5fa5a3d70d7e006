"""Resolving single names against what they can see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from dbrag.errors import Refused
from dbrag.execution.schema import spelling
from dbrag.execution.scope import Unknown, has
from dbrag.execution.strings import is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.execution.schema import Schema
    from dbrag.execution.scope import Frame, Visible
    from dbrag.types import Table, TableRef

_RESEMBLES = 0.75


class NameCheck:
    """Looks single names up and keeps what it found.

    Attributes:
        used: tables that are read, in order of appearance.
        unknown: names that do not exist, by their place and spelling.
        edits: start of a word → what must stand there instead (None: nothing).
    """

    def __init__(self, schema: Schema) -> None:
        self.used: dict[TableRef, None] = {}
        self.unknown: dict[tuple[int, str], Unknown] = {}
        self.edits: dict[int, str | None] = {}
        self._schema = schema

    def known(self, place: exp.Expr, name: str, prefixes: Sequence[str] = ()) -> Table | None:
        """The table of that name; noted as used, or as unknown."""
        table = self._schema.find(name, prefixes)
        if table is None and not prefixes and (table := self._schema.find_joined(name)):
            self._replace(place, table.ref.name)
        if table is not None:
            self.used[table.ref] = None
            return table
        folded = name.casefold()
        if folded.startswith(("sqlite_", "pragma_")) or folded == "dbstat":
            raise Refused(
                f"{name!r} is internal to the engine", "the catalog is shown by: dbrag status"
            )
        written = ".".join([*prefixes, name])
        self.note(place, Unknown("table", written, tuple(self._schema.near_tables(name))))
        return None

    def column(self, node: exp.Column, frame: Frame) -> None:
        """Look up one column (or ``t.*``) of a query that sees ``frame``."""
        if isinstance(node.this, exp.Star) or not isinstance(node.this, exp.Identifier):
            if node.table and self._qualified(node, frame) is None:
                self.note(node, Unknown("table", node.table, tuple(self._aliases(frame))))
            return
        if node.table:
            self._qualified_column(node, frame)
        elif not self._sees(frame, node.name) and not self._split(node, frame):
            self._unqualified(node, frame)

    def _qualified(self, node: exp.Column, frame: Frame) -> list[Visible] | None:
        """The FROM entries that a column's prefix means, None if there is none."""
        table = node.args["table"]
        names = [node.table.casefold(), node.table.split(".")[-1].casefold()]
        for name in names:
            for seen in frame.chain():
                matches = [v for v in seen.visible if v.alias == name]
                if not matches:
                    continue
                if name != names[0]:
                    self._replace(table, node.table.split(".")[-1])
                for part in ("catalog", "db"):
                    if node.args.get(part) is not None:
                        self.drop(node.args[part])
                return matches
        return None

    def _qualified_column(self, node: exp.Column, frame: Frame) -> None:
        matches = self._qualified(node, frame)
        written = f"{node.table}.{node.name}"
        if matches is None:
            near = self._schema.near_columns(node.name, frame.tables())
            hint = f"{node.table!r} is not in FROM; there is: {', '.join(self._aliases(frame))}"
            self.note(node, Unknown("column", written, tuple(near), hint))
            return
        if any(has(v, node.name) for v in matches):
            return
        last = node.name.rpartition(".")[2]
        if last != node.name and any(has(v, last) for v in matches):
            self._replace(node.this, last)  # T1."T1.name"
            return
        tables = [v.table for v in matches if v.table is not None]
        near = self._schema.near_columns(node.name, tables)
        self.note(node, Unknown("column", written, tuple(near)))

    def _unqualified(self, node: exp.Column, frame: Frame) -> None:
        """A name that no FROM entry has: text in double quotes, or unknown."""
        near = self._near(node.name, frame)
        hint = ""
        if node.this.quoted:
            if is_text(node, resembles=bool(near)):
                text = node.name.replace("'", "''")
                self.edits[node.this.meta["start"]] = f"'{text}'"
                return
            hint = "text needs single quotes: '" + node.name.replace("'", "''") + "'"
        found = self._schema.near_columns(node.name, frame.tables())
        self.note(node, Unknown("column", node.name, tuple(found), hint))

    def _near(self, name: str, frame: Frame) -> list[str]:
        """Visible columns that ``name`` may be a misspelling of."""
        names = {n for seen in frame.chain() for v in seen.visible for n in v.names}
        return [n for n in names if spelling(name, n) >= _RESEMBLES]

    def _sees(self, frame: Frame, name: str) -> bool:
        folded = name.casefold()
        for seen in frame.chain():
            if folded in seen.aliases or any(has(v, name) for v in seen.visible):
                return True
        return False

    def _split(self, node: exp.Column, frame: Frame) -> bool:
        """``"table.column"`` quoted as one name, taken apart."""
        table, dot, column = node.name.rpartition(".")
        if not dot or not node.this.quoted:
            return False
        folded = table.split(".")[-1].casefold()
        for seen in frame.chain():
            for v in seen.visible:
                if v.alias == folded and has(v, column):
                    alias = '"' + table.split(".")[-1].replace('"', '""') + '"'
                    name = '"' + column.replace('"', '""') + '"'
                    self.edits[node.this.meta["start"]] = f"{alias}.{name}"
                    return True
        return False

    @staticmethod
    def _aliases(frame: Frame) -> list[str]:
        return [v.label for seen in frame.chain() for v in seen.visible if v.label]

    def note(self, place: exp.Expr, unknown: Unknown) -> None:
        """Keep an unknown name, once per place."""
        identifier = place if isinstance(place, exp.Identifier) else place.find(exp.Identifier)
        start = identifier.meta.get("start", -1) if identifier is not None else -1
        self.unknown[start, unknown.name] = unknown

    def _replace(self, place: exp.Expr, name: str) -> None:
        self.edits[place.meta["start"]] = '"' + name.replace('"', '""') + '"'

    def drop(self, place: exp.Expr) -> None:
        """Take away a prefix and (``guard``) the dot after it."""
        self.edits[place.meta["start"]] = None
