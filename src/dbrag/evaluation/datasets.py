"""Questions with gold tables and gold answers, from the formats people have.

=========================  =========================================================
our pack, ``*.json``       ``db_id, question, tables, query, answer {columns, rows}``
Spider's own ``*.json``    ``db_id, question, query``: gold tables from the SQL
``*.csv``                  ``question,tables[,sql]``: qualified tables, ``;`` between
=========================  =========================================================

Gold answers that a file does not hold are computed by running the gold SQL
(:func:`with_answers`), after sampling.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag import scope
from dbrag.errors import DbragError, UsageError

if TYPE_CHECKING:
    from dbrag.catalog.catalog import Catalog
    from dbrag.types import Execution, TableRef

_FORMATS = (
    "a JSON list of {db_id, question, query[, tables, answer]}, or a CSV question,tables[,sql]"
)
_CHECK = "check --questions"
_NAMED = 'mend it, or name its tables beside it: "tables": ["…"]'

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
_WHERE = re.compile(r"\bwhere\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """The table that a right answer equals: names ``[n_columns]``, rows ``[n_rows][n_columns]``."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what is known about its right answer.

    ``id`` is ``<file stem>-<index>``, counted from 0 before any sampling. ``db_id`` is
    the name of the source that holds the gold tables. ``ordered`` tells whether the
    rows' order counts: only where the gold SQL orders its outermost query.
    """

    id: str
    db_id: str
    question: str
    tables: tuple[TableRef, ...]
    sql: str | None = None
    answer: GoldAnswer | None = None
    ordered: bool = False

    @property
    def has_where(self) -> bool | None:
        """Whether the gold SQL says WHERE outside of quotes and remarks; None without SQL.

        Source: the paper groups its figures by this word.
        """
        if self.sql is None:
            return None
        return bool(_WHERE.search(_QUOTED.sub(" ", self.sql)))


def load_questions(
    path: Path, catalog: Catalog, dialects: Mapping[str, str] | None = None
) -> list[Question]:
    """The questions of a file, every gold table checked against the catalog.

    Args:
        dialects: sqlglot's dialect of each source's gold SQL; "sqlite" where not given.

    Raises:
        UsageError: the file is missing or not in a known format, a ``db_id`` or gold
            table does not exist, a record is incomplete; the message names the place.
    """
    text = read_text(path)
    if path.suffix.lower() == ".csv":
        records = _csv_records(text, path)
    else:
        records = _json_records(text, path)
    lookup = _Lookup(catalog, dialects or {})
    questions, unknown = [], []
    for index, (place, record) in enumerate(records):
        try:
            questions.append(_question(f"{path.stem}-{index}", record, lookup))
        except UsageError as error:
            unknown.append((f"{place} of {path.name!r}: {error.message}", error.hint))
    if unknown:
        message, hint = unknown[0]
        more = f" (and {len(unknown) - 1} more such records)" if len(unknown) > 1 else ""
        raise UsageError(message + more, hint)
    if not questions:
        raise UsageError(f"{str(path)!r} holds no question", f"expected {_FORMATS}")
    return questions


def read_text(path: Path) -> str:
    """The text of a question file.

    Raises:
        UsageError: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(f"no question file {str(path)!r}", _CHECK) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read the questions {str(path)!r}: {reason}", _CHECK) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8 text", f"expected {_FORMATS}") from error


def file_hash(path: Path) -> str:
    """SHA-256 of a question file, so that a run can tell whether it still is the same.

    Raises:
        UsageError: it cannot be read.
    """
    return hashlib.sha256(read_text(path).encode()).hexdigest()


def sample(questions: Sequence[Question], limit: int | None, seed: int = 0) -> list[Question]:
    """At most ``limit`` questions, stratified by database, in the order of the file.

    Every database gets its share, rounded by largest remainder (ties by the seed); inside
    a database questions are drawn without replacement. The same arguments give the same
    sample on every machine.

    Raises:
        UsageError: a limit below 1.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be at least 1, not {limit!r}", "leave it out for all")
    if limit is None or limit >= len(questions):
        return list(questions)
    members: dict[str, list[int]] = {}
    for i, question in enumerate(questions):
        members.setdefault(question.db_id, []).append(i)
    shares = {db: limit * len(rows) / len(questions) for db, rows in members.items()}
    quota = {db: int(share) for db, share in shares.items()}
    ties = list(members)
    random.Random(f"{seed}").shuffle(ties)  # noqa: S311
    ties.sort(key=lambda db: quota[db] - shares[db])
    for db in ties[: limit - sum(quota.values())]:
        quota[db] += 1
    chosen = [
        row
        for db, rows in members.items()
        for row in random.Random(f"{seed}:{db}").sample(rows, quota[db])  # noqa: S311
    ]
    return [questions[i] for i in sorted(chosen)]


def with_answers(
    questions: Iterable[Question], run: Callable[[str, str], Execution]
) -> tuple[list[Question], dict[str, str]]:
    """The questions with gold answers, computed by their SQL where the file has none.

    Args:
        run: runs a statement on a named source, read-only.

    Returns:
        The questions, and for each whose gold SQL fails the reason by question id; those
        keep no answer and count as failed.

    Raises:
        UsageError: a question has neither a gold answer nor gold SQL.
    """
    done, failures = [], {}
    for question in questions:
        if question.answer is None:
            if question.sql is None:
                raise UsageError(
                    f"question {question.id!r} has neither a gold answer nor gold SQL",
                    "add a column sql to the CSV, or use: dbrag eval retrieval",
                )
            try:
                result = run(question.db_id, question.sql)
            except DbragError as error:
                failures[question.id] = error.message
            else:
                names = tuple(column.name for column in result.columns)
                question = replace(question, answer=GoldAnswer(names, result.rows))
        done.append(question)
    return done, failures


def is_ordered(sql: str, dialect: str = "sqlite") -> bool:
    """Whether a statement orders the rows of its outermost query.

    An ORDER BY in a subquery or CTE alone does not count. SQL that does not parse counts
    as unordered, the milder rule.
    """
    if "order" not in sql.lower():  # most gold SQL; parsing takes 2 ms
        return False
    try:
        tree: exp.Expr | None = sqlglot.parse_one(sql, dialect=dialect)
    except (SqlglotError, RecursionError):
        return False
    while isinstance(tree, exp.Subquery | exp.Paren):
        if tree.args.get("order"):
            return True
        tree = tree.this
    return tree is not None and tree.args.get("order") is not None


def tables_in(sql: str, dialect: str = "sqlite") -> list[str]:
    """Names of the tables that a statement reads, in order of appearance, CTEs left out.

    Raises:
        UsageError: it does not parse.
    """
    try:
        tree = sqlglot.parse_one(sql, dialect=dialect)
    except (SqlglotError, RecursionError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"the gold SQL {sql!r:.80} does not parse: {first}", _NAMED) from error
    own = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    names = [table.name for table in tree.find_all(exp.Table, bfs=False)]
    return list(dict.fromkeys(name for name in names if name and name.casefold() not in own))


# ---- records ------------------------------------------------------------------------


class _Lookup:
    """Finds sources and tables by name, letter case ignored, quickly."""

    def __init__(self, catalog: Catalog, dialects: Mapping[str, str]) -> None:
        self.catalog = catalog
        self.dialects = dialects
        self.sources: dict[str, str] = {}
        self.tables: dict[tuple[str, str], list[TableRef]] = {}
        for ref in catalog.refs:
            self.sources.setdefault(ref.source.casefold(), ref.source)
            key = (ref.source, ref.name.casefold())
            self.tables.setdefault(key, []).append(ref)
        self._resolved: dict[str, TableRef] = {}

    def dialect(self, source: str) -> str:
        """The dialect of a source's gold SQL."""
        return self.dialects.get(source, "sqlite")

    def source(self, db_id: str) -> str:
        """The source of that name."""
        found = self.sources.get(db_id.casefold())
        if found is None:
            near = difflib.get_close_matches(db_id, self.sources.values(), n=3)
            hint = f"did you mean {', '.join(near)}?" if near else "check --data"
            raise UsageError(f"there is no database {db_id!r} under --data", hint)
        return found

    def table(self, source: str, name: str) -> TableRef:
        """The gold table of that name in that source."""
        found = self.tables.get((source, name.casefold()))
        if not found:
            raise UsageError(f"the database {source!r} has no table {name!r}", "dbrag status")
        if len(found) > 1:
            raise UsageError(
                f"{source!r} has {len(found)} tables {name!r}", f"write for example {found[0]}"
            )
        return found[0]

    def anywhere(self, name: str) -> TableRef:
        """A table by its qualified name."""
        if name not in self._resolved:
            self._resolved[name] = scope.resolve(self.catalog, name)
        return self._resolved[name]


def _json_records(text: str, path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{str(path)!r} is not JSON: {error}", f"expected {_FORMATS}") from error
    if not isinstance(data, list):
        raise UsageError(
            f"{str(path)!r} holds a {type(data).__name__}, not a list", f"expected {_FORMATS}"
        )
    records: list[tuple[str, Mapping[str, Any]]] = []
    for i, record in enumerate(data):
        if not isinstance(record, dict):
            raise _unfit(f"record {i} of {path.name!r} is not an object: {record!r:.80}")
        records.append((f"record {i}", record))
    return records


def _csv_records(text: str, path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    records: list[tuple[str, Mapping[str, Any]]] = []
    try:
        names = [name.strip().lower() for name in reader.fieldnames or ()]
        if "question" not in names or "tables" not in names:
            raise UsageError(
                f"{str(path)!r} lacks the columns question and tables; it has {names!r}",
                "the first line must be: question,tables or question,tables,sql",
            )
        if any(names.count(name) > 1 for name in ("question", "tables", "sql")):
            raise _unfit(f"{str(path)!r} names a column twice: {names!r}")
        reader.fieldnames = names
        for row in reader:
            place = f"line {reader.line_num}"
            if None in row or row.get("tables") is None:
                raise UsageError(
                    f"{place} of {path.name!r} has not {len(names)} fields",
                    'quote fields that hold a comma: "…, …"',
                )
            tables = [name.strip() for name in row["tables"].split(";") if name.strip()]
            records.append((place, {**row, "tables": tables, "csv": True}))
    except csv.Error as error:
        raise _unfit(f"line {reader.line_num} of {path.name!r} is not CSV: {error}") from error
    return records


def _unfit(message: str) -> UsageError:
    return UsageError(message, f"expected {_FORMATS}")


def _question(id_: str, record: Mapping[str, Any], lookup: _Lookup) -> Question:
    question = record.get("question")
    if not isinstance(question, str) or not question.strip():
        raise _unfit(f"no question but {question!r:.80}")
    sql = record.get("sql") if record.get("csv") else record.get("query")
    if sql is not None and not isinstance(sql, str):
        raise _unfit(f"the gold SQL is not text but {sql!r:.80}")
    sql = sql.strip() if sql and sql.strip() else None
    tables = _gold_tables(record, sql, lookup)
    return Question(
        id=id_,
        db_id=tables[0].source,
        question=question.strip(),
        tables=tables,
        sql=sql,
        answer=_gold_answer(record.get("answer")),
        ordered=sql is not None and is_ordered(sql, lookup.dialect(tables[0].source)),
    )


def _gold_tables(
    record: Mapping[str, Any], sql: str | None, lookup: _Lookup
) -> tuple[TableRef, ...]:
    names = record.get("tables")
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise _unfit(f"tables is not a list of names but {names!r:.80}")
    if record.get("csv"):
        found = [lookup.anywhere(name) for name in names or ()]
    else:
        db_id = record.get("db_id")
        if not isinstance(db_id, str):
            raise _unfit(f"no db_id but {db_id!r:.80}")
        source = lookup.source(db_id)
        if names is None:
            if sql is None:
                raise UsageError("neither tables nor query is given", f"expected {_FORMATS}")
            names = tables_in(sql, lookup.dialect(source))
        found = [lookup.table(source, name) for name in names]
    if not found:
        raise UsageError("the question has no gold table", f"expected {_FORMATS}")
    return tuple(dict.fromkeys(found))


def _gold_answer(answer: Any) -> GoldAnswer | None:
    if answer is None:
        return None
    try:
        names, listed = answer["columns"], answer["rows"]
        if not all(isinstance(one, list) for one in (names, listed, *listed)):
            raise TypeError("a text is no list of its letters")
        columns = tuple(str(name) for name in names)
        rows = tuple(tuple(row) for row in listed)
    except (KeyError, TypeError) as error:
        raise _unfit(f"answer is not {{columns, rows}} but {answer!r:.80}") from error
    for row in rows:
        if len(row) != len(columns):
            raise _unfit(f"a row of the gold answer has not {len(columns)} values: {row!r:.80}")
    return GoldAnswer(columns, rows)
