"""Do servers give the results that SQLite gives? Gold SQL and fixed programs, compared.

    python bench/load_pack.py PACK/database --postgres URL …      # first
    python bench/engines_agree.py --questions PACK/dev.json --pack PACK/database \
        --server postgresql://root@127.0.0.1/dbrag_spider [--limit 40] [--seed 0]

Each statement is written in SQLite's dialect, run on the SQLite file, transpiled by sqlglot,
its tables qualified by their schema, and run on the server: all of it through the guard and
the limits of dbrag. Results are equal as in the evaluation (``execution_match``); whatever
differs is printed with both results. The fixed programs, for every table of the questions'
databases: the number of rows; count, distinct count, least and greatest of each column, the
sum of the number columns; groups of the first column; the size of every declared join.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

import dbrag
from dbrag.catalog.catalog import Catalog
from dbrag.errors import DbragError
from dbrag.evaluation.datasets import is_ordered, load_questions, sample
from dbrag.evaluation.metrics import execution_match
from dbrag.types import Table


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def programs(table: Table) -> Iterator[str]:
    """The fixed programs of one table, in SQLite's dialect."""
    name = quoted(table.ref.name)
    yield f"SELECT COUNT(*) FROM {name}"
    for column in table.columns:
        c = quoted(column.name)
        yield f"SELECT COUNT({c}), COUNT(DISTINCT {c}), MIN({c}), MAX({c}) FROM {name}"
        if any(word in column.type.upper() for word in ("INT", "REAL", "NUM", "FLOA", "DEC")):
            yield f"SELECT SUM({c}) FROM {name}"
    first = quoted(table.columns[0].name)
    yield f"SELECT {first}, COUNT(*) FROM {name} GROUP BY {first} ORDER BY COUNT(*) DESC, {first}"
    for key in table.foreign_keys:
        on = " AND ".join(
            f"a.{quoted(ours)} = b.{quoted(theirs)}"
            for ours, theirs in zip(key.columns, key.target_columns, strict=True)
        )
        yield f"SELECT COUNT(*) FROM {name} AS a JOIN {quoted(key.target.name)} AS b ON {on}"


def translated(sql: str, dialect: str, schema: str) -> str:
    """The statement in another dialect, its tables in ``schema``."""
    tree = sqlglot.parse_one(sql, dialect="sqlite")
    ctes = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.name.casefold() not in ctes:
            table.set("db", exp.to_identifier(schema, quoted=True))
    return tree.sql(dialect)


def run(database: dbrag.Database, source: str, sql: str) -> Any:
    """Rows, or the error as text."""
    try:
        return database.run_sql(source, sql).rows
    except DbragError as error:
        return f"{type(error).__name__}: {error.message}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pack", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    lite = dbrag.connect(arguments.pack, index="/nonexistent")
    catalog = Catalog(tuple(t for source in lite.sources for t in source.reflect()))
    questions = sample(
        load_questions(arguments.questions, catalog), arguments.limit, arguments.seed
    )
    used = sorted({question.db_id for question in questions})
    server = dbrag.connect(
        f"server={arguments.server}", index="/nonexistent", schemas=",".join(used)
    )
    (target,) = server.sources
    statements = [(q.db_id, q.sql, f"gold {q.id}") for q in questions if q.sql]
    for name in used:
        for table in lite.source(name).reflect():
            statements += [(name, sql, "program") for sql in programs(table)]
    same = {"gold": 0, "program": 0}
    total = dict(same)
    for schema, sql, label in statements:
        kind = label.partition(" ")[0]
        total[kind] += 1
        ours = run(lite, schema, sql)
        theirs = run(server, "server", translated(sql, target.dialect, schema))
        ran = not isinstance(ours, str) and not isinstance(theirs, str)
        if ran and execution_match(theirs, ours, is_ordered(sql)):
            same[kind] += 1
            continue
        print(f"{label} [{schema}] {sql}\n  sqlite: {short(ours)}\n  server: {short(theirs)}")
    for kind, count in total.items():
        print(f"{kind}: {same[kind]} of {count} the same on {target.dialect}")
    lite.close()
    server.close()
    sys.exit(same != total)


def short(rows: Any) -> str:
    return str(rows if isinstance(rows, str) else list(rows)[:4])[:300]


if __name__ == "__main__":
    main()
