"""Resolving single names against what they can see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from dbrag.errors import Refused
from dbrag.execution.parts import text_of
from dbrag.execution.schema import spelling
from dbrag.execution.scope import Unknown, check_width, has, real_name
from dbrag.execution.strings import is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.execution.dialects import Rules
    from dbrag.execution.schema import Schema
    from dbrag.execution.scope import Frame, Visible
    from dbrag.types import Table, TableRef

_RESEMBLES = 0.75
_INTERNAL = ("sqlite_", "pragma_", "pg_", "duckdb_")
_INTERNAL_SCHEMAS = frozenset(
    {"pg_catalog", "information_schema", "mysql", "performance_schema", "sys", "pg_toast", "system"}
)


class NameCheck:
    """Looks single names up and keeps what it found.

    Attributes:
        used: tables that are read, in order of appearance.
        unknown: names that do not exist, by their place and spelling.
        edits: start of a word → what must stand there instead (None: nothing).
    """

    def __init__(self, schema: Schema, rules: Rules) -> None:
        self.used: dict[TableRef, Table] = {}
        self.unknown: dict[tuple[int, str], Unknown] = {}
        self.edits: dict[int, str | None] = {}
        self._schema = schema
        self._rules = rules
        self._sure: set[int] = set()
        self._seen: set[int] = set()
        self._width = 0

    def widen(self, columns: int) -> None:
        """Count what the statement's queries and entries of FROM show.

        Raises:
            Refused: it is too much.
        """
        self._width += columns
        check_width(self._width)

    # -- tables ----------------------------------------------------------------

    def known(self, place: exp.Expr, name: str, prefixes: Sequence[str] = ()) -> Table | None:
        """The table of that name; noted as used, or as unknown."""
        joined = False
        found = self._schema.find(name, prefixes)
        if not found and not prefixes and (found := self._schema.find_joined(name)):
            joined = True
        table = self._one_of(found, place, name) if found else None
        if table is not None:
            if not self._rules.own_words:
                self.edits[place.meta["start"]] = self._qualified_name(table)
            elif joined:
                self._replace(place, table.ref.name)
            self.used[table.ref] = table
            return table
        written = ".".join([*prefixes, name])
        if len(found) > 1:
            names = tuple(f"{t.ref.schema}.{t.ref.name}" for t in found[:6])
            hint = f"write schema.table: {' or '.join(names)}"
            self.note(place, Unknown("table", written, names, hint, several=True))
            return None
        self._refuse_internal(name, prefixes)
        self.note(place, Unknown("table", written, tuple(self._schema.near_tables(name))))
        return None

    def _one_of(self, found: Sequence[Table], place: exp.Expr, name: str) -> Table | None:
        """The table that is meant: the only one, of the very spelling, of the usual schema."""
        if len(found) == 1 or self._rules.own_words:
            return found[0]
        read = self._rules.server_name(name, quoted=bool(place.args.get("quoted")))
        exact = [table for table in found if table.ref.name == read]
        found = self._spelled(exact or found, place.parent)
        usual = [table for table in found if table.ref.schema == self._rules.default_schema]
        found = usual or found
        return found[0] if len(found) == 1 else None

    def _spelled(self, found: Sequence[Table], node: exp.Expr | None) -> Sequence[Table]:
        """Of several tables those whose schema is spelled as in ``node``: "Sales", sales."""
        schema = node.args.get("db") if node is not None else None
        if schema is None or len(found) < 2:
            return found
        read = self._rules.server_name(schema.name, quoted=bool(schema.args.get("quoted")))
        return [table for table in found if table.ref.schema == read] or found

    def _qualified_name(self, table: Table) -> str:
        parts = [table.ref.schema, table.ref.name]
        return ".".join(self._rules.written(part) for part in parts if part is not None)

    @staticmethod
    def _refuse_internal(name: str, prefixes: Sequence[str]) -> None:
        folded = name.casefold()
        inside = {prefix.casefold() for prefix in prefixes} & _INTERNAL_SCHEMAS
        if folded.startswith(_INTERNAL) or folded == "dbstat" or inside:
            raise Refused(
                f"{name!r} is internal to the engine", "the catalog is shown by: dbrag status"
            )

    # -- columns ---------------------------------------------------------------

    def column(self, node: exp.Column, frame: Frame) -> None:
        """Look up one column (or ``t.*``) of a query that sees ``frame``."""
        self._seen.add(id(node))
        if isinstance(node.this, exp.Star):
            self._star(node, frame)
            return
        if not isinstance(node.this, exp.Identifier):
            # In SQLite t.'name' is a column; in DuckDB name.upper() calls a function.
            if not (isinstance(node.this, exp.Func) and self._rules.fields and node.table):
                written = text_of(node, self._rules.name)[:40]
                raise Refused(f"{written!r} is no column", "write its name without quotes")
            self.column(exp.Column(this=node.args["table"].copy()), frame)
            return
        if self._rules.fields and node.table:
            self._path(node, frame)
        elif node.table:
            self._qualified_column(node, frame)
        elif not self._sees(node, frame) and not self._split(node, frame):
            self._unqualified(node, frame)

    def _star(self, node: exp.Column, frame: Frame) -> None:
        """``t.*``: of an entry around the query it may not bring redacted columns."""
        matches = self._qualified(node, frame) if node.table else []
        if matches is None:
            self.note(node, Unknown("table", node.table, tuple(self._aliases(frame))))
        for v in matches or ():
            if v.redacted and not any(v is own for own in frame.visible):
                raise Refused("* is not possible in this place", "name the columns that you need")

    def _qualified(self, node: exp.Column, frame: Frame) -> list[Visible] | None:
        """The FROM entries that a column's prefix means, None if there is none."""
        table = node.args["table"]
        prefixes = [part.name for part in (node.args.get("catalog"), node.args.get("db")) if part]
        names = [node.table.casefold(), node.table.split(".")[-1].casefold()]
        for name in names:
            for seen in frame.chain():
                matches = [v for v in seen.visible if v.alias == name]
                if not matches:
                    continue
                if len(matches) > 1 and prefixes and not self._rules.own_words:
                    return self._of_schema(node, matches, prefixes)
                if name != names[0] and self._rules.own_words:
                    self._replace(table, node.table.split(".")[-1])
                elif not self._rules.own_words:
                    self._settle_alias(table, matches)
                for part in ("catalog", "db"):
                    if node.args.get(part) is not None:
                        self.drop(node.args[part])
                return matches
        return None

    def _of_schema(
        self, node: exp.Column, matches: list[Visible], prefixes: Sequence[str]
    ) -> list[Visible] | None:
        """``a.t.id`` where FROM reads ``a.t`` and ``b.t``: the prefix is needed."""
        own = [v for v in matches if v.table and self._schema.accepts(v.table, prefixes)]
        spelled = self._spelled([v.table for v in own if v.table], node)
        own = [v for v in own if v.table in spelled]
        if len(own) != 1 or own[0].table is None:
            return None
        for part in ("catalog", "db"):
            if node.args.get(part) is not None:
                self.drop(node.args[part])
        self.edits[node.args["table"].meta["start"]] = self._qualified_name(own[0].table)
        return own

    def _settle_alias(self, table: exp.Identifier, matches: Sequence[Visible]) -> None:
        labels = [v.label for v in matches if v.label]
        read = self._rules.server_name(table.name, quoted=bool(table.args.get("quoted")))
        label = read if read in labels else labels[0]
        self.settle(table, label, exact=self._rules.exact_aliases)

    def _qualified_column(self, node: exp.Column, frame: Frame) -> None:
        matches = self._qualified(node, frame)
        written = f"{node.table}.{node.name}"
        if matches is None:
            near = self._schema.near_columns(node.name, frame.tables())
            hint = f"{node.table!r} is not in FROM; there is: {', '.join(self._aliases(frame))}"
            self.note(node, Unknown("column", written, tuple(near), hint))
            return
        if self._take(node.this, matches):
            return
        last = node.name.rpartition(".")[2]
        if last != node.name and any(has(v, last, self._rules) for v in matches):
            self._replace(node.this, last)  # T1."T1.name"
            return
        tables = [v.table for v in matches if v.table is not None]
        near = self._schema.near_columns(node.name, tables)
        self.note(node, Unknown("column", written, tuple(near)))

    def _path(self, node: exp.Column, frame: Frame) -> None:
        """``schema.table.column.field`` and shorter, where values may have fields."""
        parts = [node.args.get(key) for key in ("catalog", "db", "table", "this")]
        names = [part for part in parts if part is not None]
        for i in range(len(names) - 1):
            for seen in frame.chain():
                matches = [v for v in seen.visible if v.alias == names[i].name.casefold()]
                prefixes = [part.name for part in names[:i]]
                if prefixes:
                    matches = [
                        v for v in matches if v.table and self._schema.accepts(v.table, prefixes)
                    ]
                if matches and self._take(names[i + 1], matches):
                    self._settle_alias(names[i], matches)
                    for part in names[:i]:
                        self.drop(part)
                    self._sure.update(part.meta["start"] for part in names)
                    return
                if any(v.hides(names[i + 1].name) for v in matches):
                    break
        if self._sees(exp.Column(this=names[0].copy()), frame, rows=False):
            self._sure.update(part.meta["start"] for part in names[1:])
            return
        self._qualified_column(node, frame)

    def _take(self, identifier: exp.Identifier, matches: Sequence[Visible]) -> bool:
        """True when one of the entries has that column; its real name is written."""
        name = identifier.name
        if any(v.hides(name) for v in matches):
            return False
        definite = [v for v in matches if v.columns is not None and name.casefold() in v.columns]
        if definite:
            self._settle_column(identifier, [n for v in definite for n in v.names])
        return bool(definite) or any(has(v, name, self._rules) for v in matches)

    def _settle_column(self, identifier: exp.Identifier, names: Sequence[str]) -> None:
        start = identifier.meta.get("start", -1)
        self._sure.add(start)
        read = self._rules.server_name(identifier.name, quoted=bool(identifier.args.get("quoted")))
        real = real_name(names, identifier.name, read)
        if real is None or self._rules.own_words:
            return
        if identifier.parent is not None:
            identifier.parent.meta["real"] = real
        self.settle(identifier, real)

    def settle(self, identifier: exp.Identifier, real: str, *, exact: bool = False) -> None:
        """Write a name so that the engine reads ``real``, if it does not already."""
        if self._rules.own_words or "start" not in identifier.meta:
            return
        # Engines that ignore letter case keep the spelling of the statement.
        same = not self._rules.folds and identifier.name.casefold() == real.casefold()
        meant = identifier.name if same and not exact else real
        text = self._rules.settled(
            identifier.name, meant, quoted=bool(identifier.args.get("quoted"))
        )
        if text is not None:
            self.edits[identifier.meta["start"]] = text

    def _unqualified(self, node: exp.Column, frame: Frame) -> None:
        """A name that no FROM entry has: text in double quotes, or unknown."""
        near = self._near(node.name, frame)
        hint = ""
        if node.this.args.get("quoted"):
            if is_text(node, resembles=bool(near)) and self._rules.quote[0] == '"':
                text = node.name.replace("'", "''")
                self.edits[node.this.meta["start"]] = f"'{text}'"
                self._sure.add(node.this.meta["start"])
                return
            hint = "text needs single quotes: '" + node.name.replace("'", "''") + "'"
        found = self._schema.near_columns(node.name, frame.tables())
        self.note(node, Unknown("column", node.name, tuple(found), hint))

    def _near(self, name: str, frame: Frame) -> list[str]:
        """Visible columns that ``name`` may be a misspelling of."""
        names = {n for seen in frame.chain() for v in seen.visible for n in v.names}
        return [n for n in names if spelling(name, n) >= _RESEMBLES]

    def _sees(self, node: exp.Column, frame: Frame, *, rows: bool = True) -> bool:
        """True when a name without a table can be meant: a column, an alias, a whole row."""
        name, folded = node.name, node.name.casefold()
        for seen in frame.chain():
            if any(v.hides(name) for v in seen.visible):
                return False
            definite = [v for v in seen.visible if v.columns is not None and folded in v.columns]
            names = [n for v in definite for n in v.names] + seen.aliases.get(folded, [])
            if names:
                start = node.this.meta.get("start", -1)
                known = start in self._sure
                self._settle_column(node.this, names)
                if (seen is not frame or not definite) and not known:
                    self._sure.discard(start)  # another entry may hide a column of that name
                return True
            if any(has(v, name, self._rules) for v in seen.visible):
                return True
        return rows and self._whole_row(node, frame)

    def _whole_row(self, node: exp.Column, frame: Frame) -> bool:
        if not self._rules.whole_rows:
            return False
        for seen in frame.chain():
            matches = [v for v in seen.visible if v.alias == node.name.casefold()]
            if matches:
                if any(v.redacted for v in matches):
                    return False
                self._settle_alias(node.this, matches)
                return True
        return False

    def _split(self, node: exp.Column, frame: Frame) -> bool:
        """``"table.column"`` quoted as one name, taken apart."""
        table, dot, column = node.name.rpartition(".")
        if not dot or not node.this.args.get("quoted"):
            return False
        folded = table.split(".")[-1].casefold()
        for seen in frame.chain():
            for v in seen.visible:
                if v.alias == folded and has(v, column, self._rules):
                    real = real_name(v.names, column, column) or column
                    alias = table.split(".")[-1] if self._rules.own_words else v.label or ""
                    column = column if self._rules.own_words else real
                    written = f"{self._rules.quoted(alias)}.{self._rules.quoted(column)}"
                    self.edits[node.this.meta["start"]] = written
                    self._sure.add(node.this.meta["start"])
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
        self.edits[place.meta["start"]] = self._rules.quoted(name)
        self._sure.add(place.meta["start"])

    def drop(self, place: exp.Expr) -> None:
        """Take away a prefix and (``guard``) the dot after it."""
        self.edits[place.meta["start"]] = None
