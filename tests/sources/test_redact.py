"""Redacted columns: gone from the schema, and their values found nowhere."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.database import connect
from dbrag.errors import UsageError
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.options import OpenOptions
from dbrag.sources import Source, open_sources
from dbrag.sources.redact import Pattern, redacted, unused_patterns
from dbrag.types import TableRef
from tests.servers import TestDatabase, mysql, postgres  # noqa: F401  fixtures

TOKEN = "Quetzalcoatl7731"
SCRIPT = f"""
CREATE TABLE people (
    id INTEGER PRIMARY KEY, name TEXT, Salary TEXT, boss TEXT REFERENCES people (Salary)
);
INSERT INTO people VALUES (1, 'Anna', '{TOKEN}', NULL), (2, 'Ben', '{TOKEN}b', NULL);
CREATE TABLE teams (team TEXT, salary TEXT, person INT REFERENCES people (id));
INSERT INTO teams VALUES ('red', '{TOKEN}c', 1);
CREATE VIEW plain AS SELECT id, name FROM people;
CREATE VIEW renamed AS SELECT id, salary AS pay, name || salary AS both FROM people;
CREATE VIEW star AS SELECT * FROM people;
CREATE VIEW nested AS SELECT pay AS p, id FROM (SELECT * FROM renamed) AS r;
CREATE VIEW cte AS WITH c AS (SELECT p.name AS n, p.salary AS s FROM people p) SELECT n, s FROM c;
CREATE VIEW joined AS SELECT t.team, (SELECT max(salary) FROM people) AS top, p.name
    FROM teams AS t JOIN people AS p ON p.id = t.person;
CREATE VIEW both_sides AS SELECT name AS x, id FROM people UNION ALL SELECT salary, id FROM people;
CREATE VIEW counted AS SELECT team, COUNT(*) AS n FROM teams GROUP BY team;
CREATE VIEW other AS SELECT team FROM teams;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "firm.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)
    return path


@pytest.fixture
def firm(path: Path) -> Source:
    (source,), _ = open_sources([str(path)])
    return source


def columns(source: Source) -> dict[str, list[str]]:
    return {table.ref.name: [c.name for c in table.columns] for table in source.reflect()}


def test_a_column_is_gone_with_its_keys_and_named(firm: Source) -> None:
    source = redacted(firm, ["people.salary"])
    assert isinstance(source, Source)
    tables = {table.ref.name: table for table in source.reflect()}
    assert [c.name for c in tables["people"].columns] == ["id", "name", "boss"]
    assert tables["people"].redacted == ("Salary",)
    assert tables["people"].primary_key == ("id",)
    assert not tables["people"].foreign_keys
    assert [c.name for c in tables["teams"].columns] == ["team", "salary", "person"]
    assert len(tables["teams"].foreign_keys) == 1
    with source.scan(tables["people"], 10) as rows:
        assert next(iter(rows)) == (1, "Anna", None)


def test_views_do_not_bring_it_back(firm: Source) -> None:
    found = columns(redacted(firm, ["people.salary"]))
    assert found["plain"] == ["id", "name"]
    assert found["renamed"] == ["id"]
    assert found["star"] == ["id", "name", "boss"]
    assert found["nested"] == ["id"]
    assert found["cte"] == ["n"]
    assert found["joined"] == ["team", "name"]
    assert found["both_sides"] == ["id"]
    assert found["counted"] == ["team", "n"]


def test_a_bare_column_is_meant_everywhere(firm: Source) -> None:
    found = columns(redacted(firm, ["SALARY"]))
    assert not any("salary" in map(str.casefold, names) for names in found.values())
    assert found["renamed"] == ["id"]


def test_marks_change_with_the_patterns(firm: Source) -> None:
    one, two = redacted(firm, ["people.salary"]), redacted(firm, ["people.name"])
    assert len({s.stamp() for s in (firm, one, two)}) == 3
    assert len({s.fingerprint() for s in (firm, one, two)}) == 3
    assert redacted(firm, ["people.salary"]).stamp() == one.stamp()
    assert redacted(firm, ["else.where.people.salary"]) is firm


@pytest.mark.parametrize(
    ("pattern", "schema", "hit"),
    [
        ("salary", "hr", True),
        ("SALARY", "hr", True),
        ("sal*", None, True),
        ("s?lary", None, True),
        ("salar", None, False),
        ("people.salary", "hr", True),
        ("teams.salary", "hr", False),
        ("hr.people.salary", "hr", True),
        ("hr.people.salary", "it", False),
        ("firm.people.salary", "hr", True),
        ("firm.people.salary", None, True),
        ("firm.hr.people.salary", "hr", True),
        ("firm.*.people.salary", None, True),
        ("other.hr.people.salary", "hr", False),
        ("firm.hr.people.*", "hr", True),
        ('"people".salary', "hr", True),
        ("sal[a]ry", None, False),
    ],
)
def test_patterns(pattern: str, schema: str | None, hit: bool) -> None:
    assert Pattern.of(pattern).matches(TableRef("firm", schema, "people"), "Salary") is hit


def test_names_with_dots_and_quotes() -> None:
    ref = TableRef("s", None, "a.b")
    assert Pattern.of('"a.b".c').matches(ref, "c")
    assert Pattern.of('"c""d"').matches(ref, 'c"d')
    assert Pattern.of("größe").matches(ref, "GRÖSSE")
    assert Pattern.of("gr\u00f6\u00dfe").matches(ref, "gro\u0308\u00dfe")


@pytest.mark.parametrize("pattern", ["", ".", "a.", ".a", "a..b", "a.b.c.d.e", '"a', 'a"b"', " "])
def test_no_patterns(firm: Source, pattern: str) -> None:
    with pytest.raises(UsageError, match="names no column"):
        redacted(firm, [pattern])


@given(st.text())
def test_patterns_are_read_or_refused(text: str) -> None:
    with suppress(UsageError):
        Pattern.of(text).matches(TableRef("s", None, "t"), "c")


def test_unused_patterns(firm: Source) -> None:
    tables = redacted(firm, ["people.salary", "people.salry"]).reflect()
    assert unused_patterns(["people.salary", "people.salry"], tables) == ("people.salry",)


def test_a_typo_is_told_in_every_answer(path: Path, tmp_path: Path) -> None:
    model = FunctionModel(lambda _: "SELECT name FROM people")
    with connect(
        path,
        index=tmp_path / "index",
        chat_model=model,
        embedder=HashEmbedder(),
        redact=("salary", "salry"),
    ) as database:
        for result in (
            database.sql("SELECT name FROM people"),
            database.ask("Which names?", votes=1),
            database.search("Which names?"),
        ):
            told = [w.message for w in result.warnings if w.code == "redact_unused"]
            assert told == ["redact holds 'salry', which names no column here"]


def test_its_value_is_found_nowhere(path: Path, tmp_path: Path) -> None:
    replies = [
        "SELECT salary FROM people",
        "SELECT * FROM people",
        "SELECT people.* FROM people",
        "SELECT pay FROM renamed",
        "SELECT s FROM cte",
        "SELECT max(salary) FROM teams",
        "SELECT name FROM people WHERE salary LIKE 'Quetzal%'",
        "SELECT name FROM people ORDER BY salary",
        "SELECT * FROM people NATURAL JOIN teams",
        "SELECT p.* FROM people AS p, teams",
    ]
    index = tmp_path / "index"
    events: list[object] = []
    for reply in replies:
        model = FunctionModel(lambda _, reply=reply: reply)
        with connect(
            path, index=index, chat_model=model, embedder=HashEmbedder(), redact=("salary",)
        ) as database:
            database.index()
            answer = database.ask("What is the salary of Anna?", on_event=events.append, votes=1)
            told = json.dumps(answer.to_dict()) + repr(answer.trace) + repr(events)
            told += repr(database.search("salary of Quetzalcoatl7731 Anna").to_dict()["candidates"])
            told += "".join(prompt.text() for prompt in model.prompts)
            assert "Quetzalcoatl7731" not in told, reply
            if answer.execution is not None:
                assert "Quetzal" not in repr(answer.execution.rows)
    cache = Path(str(tmp_path / "cache"))
    files = [f for root in (index, cache) for f in root.rglob("*") if f.is_file()]
    assert files
    assert not [f for f in files if b"quetzalcoatl" in f.read_bytes().lower()]


def test_other_patterns_rebuild_the_index(path: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"

    def found(*patterns: str) -> bool:
        with connect(
            path, index=index, chat_model=FunctionModel(lambda _: ""), embedder=HashEmbedder(),
            redact=patterns,
        ) as database:  # fmt: skip
            database.search("people")
            names = [
                column.name.casefold()
                for table in database.opened_index().catalog.tables
                for column in table.columns
            ]
            return "salary" in names

    assert found()
    assert any(TOKEN.encode() in f.read_bytes() for f in index.rglob("*") if f.is_file())
    assert not found("salary")
    assert not any(TOKEN.encode() in f.read_bytes() for f in index.rglob("*") if f.is_file())
    assert found()


VIEWS = (
    "CREATE TABLE people (id int, name varchar(50), ssn varchar(50))",
    "CREATE VIEW v1 AS SELECT id, ssn AS s, name FROM people",
    "CREATE VIEW v2 AS SELECT name, upper(s) AS u FROM v1",
    "CREATE VIEW v3 AS SELECT p.name, (SELECT count(*) FROM people) AS n FROM people p",
    "CREATE VIEW v4 AS SELECT id, name FROM people WHERE id > 0",
)
KEPT = {
    "people": ["id", "name"],
    "v1": ["id", "name"],
    "v2": ["name"],
    "v3": ["name", "n"],
    "v4": ["id", "name"],
}


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_views_of_servers(engine: str, request: pytest.FixtureRequest) -> None:
    server: TestDatabase = request.getfixturevalue(engine)
    more: tuple[str, ...] = ()
    kept = dict(KEPT)
    if engine == "postgres":
        more = (
            "CREATE MATERIALIZED VIEW v5 AS SELECT ssn || name AS both, id FROM people",
            "CREATE VIEW v6 AS SELECT id, row_to_json(p) AS j, p AS whole FROM people AS p",
        )
        kept |= {"v5": ["id"], "v6": ["id"]}
    server.run(*VIEWS, *more)
    (source,), _ = open_sources([server.url], OpenOptions(redact=("people.ssn",)))
    try:
        assert columns(source) == kept
    finally:
        source.close()


def test_views_of_duckdb(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in (
            *VIEWS,
            "CREATE VIEW v5 AS SELECT COLUMNS('s.*') FROM people",
            "CREATE VIEW v6 AS FROM people SELECT id, people AS whole",
        ):
            connection.execute(statement)
    (source,), _ = open_sources([str(path)], OpenOptions(redact=("people.ssn",)))
    try:
        assert columns(source) == KEPT | {"v5": [], "v6": ["id"]}
    finally:
        source.close()


def test_files_are_converted_without_it(tmp_path: Path) -> None:
    import gzip

    import pyarrow as pa
    from pyarrow import feather

    folder, cache = tmp_path / "firm", tmp_path / "cached"
    folder.mkdir()
    rows = "".join(f"{i},name {i},{TOKEN}{i},01/02/20{i % 100:02d}\n" for i in range(300))
    (folder / "people.csv").write_text("id,name,Salary,born\n" + rows)
    (folder / "packed.csv.gz").write_bytes(gzip.compress(f"id,salary\n1,{TOKEN}\n".encode()))
    (folder / "lines.jsonl").write_text(f'{{"id": 1, "salary": "{TOKEN}"}}\n{{"id": 2}}\n')
    feather.write_feather(
        pa.table({"id": [1], "salary": [TOKEN]}), folder / "old.feather", compression="uncompressed"
    )

    def held() -> int:
        import pyarrow.parquet as pq

        texts = [f.read_bytes() for f in cache.rglob("*") if f.is_file()]
        for file in cache.rglob("*.parquet"):
            texts.append(repr(pq.read_table(file).to_pylist()).encode())
        return sum(TOKEN.encode() in text for text in texts)

    def found(*patterns: str) -> dict[str, tuple[list[str], tuple[str, ...]]]:
        (source,), _ = open_sources([str(folder)], OpenOptions(cache=cache, redact=patterns))
        try:
            tables = source.reflect()
            with source.session() as session:
                session.execute("SELECT COUNT(*) FROM people")
                assert session.fetch(1) == [(300,)]
        finally:
            source.close()
        return {t.ref.name: ([c.name for c in t.columns], t.redacted) for t in tables}

    assert found()["people"] == (["id", "name", "Salary", "born"], ())
    assert held()
    tables = found("salary")
    assert tables["people"] == (["id", "name", "born"], ("Salary",))
    for name in ("packed", "lines", "old"):
        assert tables[name] == (["id"], ("salary",))
    assert not held()
    assert found("firm.people.salary")["people"][1] == ("Salary",)
    assert found("firm.people.salary")["lines"] == (["id", "salary"], ())
