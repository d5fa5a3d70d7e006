"""Chains: the steps of a program as the one statement that runs, and nothing else does.

``WITH a AS (…), b AS (…) SELECT …`` creates nothing in the user's database, any engine can
run it, and it sees one state of the data. What steps mean beside that:

- A step reads earlier ones by their names. Where a name is that of a real table or of
  another step, the step is called otherwise in the statement, and those who read it follow:
  within a step its own name means the table, in later ones the step.
- Steps within a step (its own WITH) are seen by it alone.
- Column names of earlier steps are unique, since a later one could not tell them apart.
- Rows of earlier steps have no order. ORDER BY without LIMIT is dropped there; a later step
  that only passes the rows on gets it. It stays where its meaning would change: before a
  LIMIT or an aggregate that takes rows as they come and cannot get the order itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.errors import ExecutionError
from dbrag.reasoning.blocks import cte_in_sight, is_star
from dbrag.reasoning.names import identifier
from dbrag.reasoning.repair import TableNames
from dbrag.reasoning.row_order import move_order
from dbrag.reasoning.step_columns import first_select, output_names, unique
from dbrag.reasoning.step_names import name_read, names_read
from dbrag.types import Step, Table

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Link:
    """One step as it stands in the statement.

    Attributes:
        name: its name there.
        said: what later steps call it; empty for a step within a step.
        query: its SELECT, without a WITH of its own.
        aliases: names that its WITH entry gives to its columns.
        outputs: its columns as the engine named them, duplicates included; None: not known.
    """

    name: str
    said: str
    query: exp.Query
    aliases: tuple[str, ...] = ()
    outputs: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Chain:
    """Steps that have been written so far, in order.

    Attributes:
        tables: the real ones, whose columns are known.
        table_names: their names, folded.
    """

    dialect: str
    tables: TableNames
    table_names: frozenset[str]
    links: tuple[Link, ...] = ()
    recursive: bool = False

    @classmethod
    def over(cls, dialect: str, tables: Iterable[Table]) -> Chain:
        """A chain without steps over these tables."""
        named = TableNames(tuple(tables))
        return cls(dialect, named, frozenset(t.ref.name.casefold() for t in named.tables))

    def plus(self, step: Step) -> Chain:
        """This chain with one more step; those within it come before it.

        Raises:
            ExecutionError: it does not parse, or is no SELECT.
        """
        tree = _parsed(step, self.dialect)
        with_ = tree.args.get("with_")
        inner = [one for one in with_.expressions if isinstance(one, exp.CTE)] if with_ else []
        hidden = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
        taken = {link.name.casefold() for link in self.links}
        given: dict[int, str] = {}
        for one in inner:
            given[id(one)] = self._free(one.alias, taken, hidden)
            taken.add(given[id(one)].casefold())
        for node in list(tree.find_all(exp.Table, exp.In)):
            self._follow(node, given)
        if with_ is not None:
            with_.pop()
        own = [
            Link(given[id(one)], "", one.this, tuple(c.name for c in one.args["alias"].columns))
            for one in inner
        ]
        link = Link(self._free(step.name, taken, hidden), step.name, tree)
        recursive = self.recursive or bool(with_ is not None and with_.args.get("recursive"))
        return replace(self, links=(*self.links, *own, link), recursive=recursive)

    def mended(self, sql: str) -> Chain:
        """The chain whose last step is that of a statement which came from this one.

        Args:
            sql: ``statement()`` with names and values put right.
        """
        tree = sqlglot.parse_one(sql, dialect=self.dialect)
        with_ = tree.args.get("with_")
        if with_ is not None:
            with_.pop()
        *earlier, last = self.links
        assert isinstance(tree, exp.Query)  # noqa: S101 - the guard has admitted it
        return replace(self, links=(*earlier, replace(last, query=tree)))

    def told(self, outputs: Sequence[str]) -> Chain:
        """The chain whose last step has these result columns, as the engine says."""
        *earlier, last = self.links
        return replace(self, links=(*earlier, replace(last, outputs=tuple(outputs))))

    def columns(self) -> list[str]:
        """The last step's columns by the names that a later step reads them by.

        Empty where they are not known.
        """
        return unique(self._outputs(self.links[-1]) or [])

    def name(self) -> str:
        """What later steps call the last one."""
        return self.links[-1].said

    def last_sql(self) -> str:
        """The SELECT of the last step."""
        return self.links[-1].query.sql(dialect=self.dialect)

    def statement(self, *, whole: bool = True) -> str:
        """The one statement.

        Args:
            whole: with all steps; else without those that the last does not need.

        Raises:
            ExecutionError: there is no step.
        """
        if not self.links:
            raise ExecutionError("the program has no step")
        links = self.links if whole else self._needed()
        links = tuple(replace(link, query=link.query.copy()) for link in links)
        move_order([(link.name, link.query) for link in links], self.dialect)
        *earlier, last = links
        if not earlier:
            return last.query.sql(dialect=self.dialect)
        entries = [self._entry(link) for link in earlier]
        last.query.set("with_", exp.With(expressions=entries, recursive=self.recursive or None))
        return last.query.sql(dialect=self.dialect)

    def _entry(self, link: Link) -> exp.CTE:
        """A step as a WITH entry, its column names unique."""
        aliases = list(link.aliases)
        outputs = [] if aliases else self._outputs(link) or []
        names = unique(outputs)
        if names != list(outputs):
            select = first_select(link.query)
            items = select.expressions if select is not None else []
            if len(items) == len(names) and not any(is_star(item) for item in items):
                for item, old, new in zip(list(items), outputs, names, strict=True):
                    if old != new:
                        item.replace(exp.alias_(item.unalias().copy(), new, quoted=_needs(new)))
            elif all(names):
                aliases = names
        columns = [exp.to_identifier(name, quoted=_needs(name)) for name in aliases]
        alias = exp.TableAlias(this=self._identifier(link.name), columns=columns)
        return exp.CTE(this=link.query, alias=alias)

    def _outputs(self, link: Link) -> Sequence[str] | None:
        if link.aliases:
            return link.aliases
        return link.outputs or output_names(link.query, self._columns_of)

    def _columns_of(self, table: exp.Table) -> Sequence[str] | None:
        """The columns of what a FROM entry names: a step, or a real table."""
        if not table.db:
            for link in self.links:
                if link.name.casefold() == table.name.casefold():
                    return unique(self._outputs(link) or []) or None
        real = self.tables.of(table)
        return [column.name for column in real.columns] if real is not None else None

    def _needed(self) -> tuple[Link, ...]:
        """The last step and those that it reads, in order."""
        needed, waiting = {self.links[-1].name}, [self.links[-1]]
        by_name = {link.name.casefold(): link for link in self.links}
        while waiting:
            for read in names_read(waiting.pop().query):
                link = by_name.get(read)
                if link is not None and link.name not in needed:
                    needed.add(link.name)
                    waiting.append(link)
        return tuple(link for link in self.links if link.name in needed)

    # -- names -------------------------------------------------------------------

    def _free(self, name: str, taken: set[str], hidden: Collection[str]) -> str:
        """The name itself if it is free, else one that is; taken from now on.

        Args:
            hidden: names that a new one must not have, either: something stands before it.
        """
        free, number = name, 1
        if name.casefold() in self.table_names:
            free = f"step_{name}"
            taken = taken | set(hidden)
        while free.casefold() in taken or free.casefold() in self.table_names:
            number += 1
            free = f"{name}_{number}"
        return free

    def _follow(self, node: exp.Expr, given: dict[int, str]) -> None:
        """Let a FROM entry (in SQLite also ``x IN name``) read the step that it means."""
        said = name_read(node)
        if said is None:
            return
        name = self._meant(node, said.name, given)
        if name is None or name == said.name:
            return
        identifier = self._identifier(name)
        if name.casefold() == said.name.casefold() and not (identifier.quoted or said.quoted):
            return
        if isinstance(node, exp.Table) and not node.alias:
            node.set("alias", exp.TableAlias(this=said.copy()))
        said.replace(identifier)

    def _meant(self, node: exp.Expr, name: str, given: dict[int, str]) -> str | None:
        """The step's name in the statement; None for a real table or a deeper WITH."""
        cte = cte_in_sight(node, name)
        if cte is not None:
            return given.get(id(cte))
        folded = name.casefold()
        for link in reversed(self.links):
            if link.said.casefold() == folded:
                return link.name
        around = node.find_ancestor(exp.CTE)
        while around is not None and id(around) not in given:
            around = around.find_ancestor(exp.CTE)
        # SQLite takes a WITH entry that reads itself for a recursive one, said or not.
        recursive = around is not None and around.alias.casefold() == folded
        return given[id(around)] if recursive and folded not in self.table_names else None

    def _identifier(self, name: str) -> exp.Identifier:
        # Engines fold unquoted names: quoting a plain one would part it from its references.
        plain = _PLAIN_NAME.match(name) is not None
        reserved = plain and identifier(name.lower(), self.dialect) != name.lower()
        return exp.Identifier(this=name, quoted=reserved or not plain)


def compose(steps: Sequence[Step], dialect: str, tables: Iterable[Table] = ()) -> str:
    """The single statement that a chain of steps becomes.

    Args:
        tables: the real ones, with whose names no step's may collide.

    Raises:
        ExecutionError: there is no step, or one does not parse.
    """
    if len(steps) == 1:
        return steps[0].sql.strip().rstrip(";")
    chain = Chain.over(dialect, tables)
    for step in steps:
        chain = chain.plus(step)
    return chain.statement()


def _needs(name: str) -> bool:
    return _PLAIN_NAME.match(name) is None


def _parsed(step: Step, dialect: str) -> exp.Query:
    try:
        tree = sqlglot.parse_one(step.sql, dialect=dialect)
    except (SqlglotError, RecursionError) as error:
        first = str(error).splitlines()[0]
        raise ExecutionError(f"step {step.name!r} is not valid SQL: {first}") from error
    if not isinstance(tree, exp.Query):
        raise ExecutionError(f"step {step.name!r} is not a SELECT")
    while isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
        if any(value for part, value in tree.args.items() if part != "this"):
            break
        tree = tree.this  # WITH … (SELECT …) is no statement in SQLite
    tree.parent = None
    return tree
