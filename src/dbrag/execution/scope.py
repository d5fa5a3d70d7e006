"""What the expressions of a query can see: FROM entries, aliases, the queries around."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from dbrag.errors import Refused
from dbrag.execution.parts import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dbrag.execution.dialects import Rules
    from dbrag.types import Table

Columns = list[str] | None
"""Names of result columns; None where they cannot be known."""


@dataclass(slots=True)
class Visible:
    """One entry of a FROM: its alias as the engine reads it and folded, its columns.

    ``loose``: it has more columns, whose names only the engine knows.
    """

    label: str | None
    alias: str | None
    columns: frozenset[str] | None
    names: list[str]
    table: Table | None = None
    loose: bool = False

    def hides(self, name: str) -> bool:
        """True for a redacted column, and for what may show one: a row's number, a search."""
        if self.table is None or not self.table.redacted:
            return False
        folded = name.casefold()
        return (
            folded in {column.casefold() for column in self.table.redacted}
            or folded in ("rowid", "oid", "_rowid_", self.table.ref.name.casefold())
        ) and folded not in (self.columns or ())

    def show(self, name: str) -> None:
        """Add a column."""
        self.names.append(name)
        if self.columns is not None:
            self.columns |= {name.casefold()}

    @property
    def redacted(self) -> bool:
        """True when something in it may not be read."""
        return self.table is not None and bool(self.table.redacted)


@dataclass(slots=True)
class Frame:
    """What the expressions of one SELECT can see, and the SELECT around it.

    ``aliases``: names of its result columns, folded → as the engine reads them.
    """

    outer: Frame | None
    visible: list[Visible] = field(default_factory=list)
    aliases: dict[str, list[str]] = field(default_factory=dict)

    def chain(self) -> Iterator[Frame]:
        """This frame and those around it, from the inside out."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.outer

    def tables(self) -> list[Table]:
        """The real tables in sight."""
        return [v.table for frame in self.chain() for v in frame.visible if v.table is not None]

    def name(self, alias: str) -> None:
        """Add the name of a result column."""
        self.aliases.setdefault(alias.casefold(), []).append(alias)

    @property
    def redacted(self) -> bool:
        """True when something in its own FROM may not be read."""
        return any(v.redacted for v in self.visible)


@dataclass(slots=True)
class Cte:
    """A WITH entry, looked into when it is first used."""

    node: exp.CTE | None
    outer: Frame | None = None
    scope: Mapping[str, Cte] = field(default_factory=dict)
    columns: Columns = None
    state: str = "new"
    name: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A name that does not exist, as written, with near real ones.

    ``several``: it does, more than once.
    """

    kind: str
    name: str
    suggestions: tuple[str, ...]
    hint: str = ""
    several: bool = False


def has(visible: Visible, name: str, rules: Rules) -> bool:
    """True when a FROM entry has a column of that name, or may have."""
    if visible.columns is None or visible.loose or name.casefold() in visible.columns:
        return not visible.hides(name)
    return (
        name.casefold() in rules.row_ids and visible.table is not None and not visible.hides(name)
    )


def real_name(candidates: Sequence[str], name: str, read: str) -> str | None:
    """Which of the columns ``name`` means, which the engine reads as ``read``.

    The very same name first, else the one that differs in letter case alone; None where
    there is none, or several.
    """
    if read in candidates:
        return read
    folded = name.casefold()
    found = {other for other in candidates if other.casefold() == folded}
    return found.pop() if len(found) == 1 else None


MOST_COLUMNS = 100_000
"""Columns that all queries and entries of FROM in one statement may show together.

Each step of ``SELECT x.*, y.* FROM a x, a y`` doubles them: thirty lines are a billion.
"""


def check_width(columns: int) -> None:
    """Refuse what is too wide.

    Raises:
        Refused: there are more than ``MOST_COLUMNS``.
    """
    if columns > MOST_COLUMNS:
        raise Refused(
            f"the statement has more than {MOST_COLUMNS:,} columns",
            "name the columns that you need",
        )


UNNAMED = "\0"
"""Stands for a result column whose name only the engine knows."""


def output_columns(node: exp.Select, frame: Frame, rules: Rules) -> Columns:
    """Names of the columns of a SELECT."""
    names: list[str] = []
    for item in node.expressions:
        if isinstance(item, exp.Columns) or _unpacks(item):
            return None
        if not item.is_star or item.key == "count":
            names.append(_name(item, rules))
            continue
        star = item.this if item.key == "column" else item
        if star.args.get("except_") or star.args.get("replace") or star.args.get("rename"):
            return None
        wanted = item.table.casefold() if item.key == "column" else None
        for v in frame.visible:
            if wanted is None or v.alias == wanted:
                if v.columns is None:
                    return None
                names += v.names
                names += [UNNAMED] * v.loose
                check_width(len(names))
    return names


def _name(item: exp.Expr, rules: Rules) -> str:
    if rules.own_words:
        return item.alias_or_name if item.key in ("alias", "column") else text_of(item, "sqlite")
    if isinstance(item, exp.Alias):
        alias = item.args["alias"]
        return rules.server_name(alias.name, quoted=bool(alias.args.get("quoted")))
    if isinstance(item, exp.Column):
        return str(item.meta.get("real", item.name))
    return UNNAMED


def _unpacks(item: exp.Expr) -> bool:
    """``UNNEST(struct)`` and ``(row).*`` bring columns nobody has named."""
    return isinstance(item, (exp.Explode, exp.Unnest, exp.Dot))
