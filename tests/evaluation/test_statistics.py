"""Statistics of a small data set, counted by hand."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dbrag.errors import UsageError
from dbrag.evaluation.paper import CORPORA
from dbrag.evaluation.reports.dataset import statistics_document
from dbrag.evaluation.reports.document import Table
from dbrag.evaluation.reports.markdown import markdown_of
from dbrag.evaluation.statistics import DataStatistics, Spread, data_statistics
from dbrag.settings import Settings

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE "order" (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer, total REAL);
CREATE TABLE never (a, b, c, d);
CREATE VIEW big AS SELECT * FROM "order" WHERE total > 5;
INSERT INTO customer VALUES (1, 'Ada'), (2, 'Bob');
INSERT INTO "order" VALUES (1, 1, 9.5), (2, 1, 3.25), (3, 2, 1.0);
"""
ZOO = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO customer VALUES (1, 'Ada'), (2, 'Bob');
"""
QUESTIONS = [
    {"db_id": "shop", "question": "a", "query": "SELECT name FROM customer ORDER BY name"},
    {"db_id": "shop", "question": "b", "query": "SELECT COUNT(*), 1 FROM customer JOIN \"order\""},
    {"db_id": "zoo", "question": "c", "query": "SELECT name FROM customer WHERE id > 5"},
    {"db_id": "zoo", "question": "d", "query": "SELECT wrong FROM customer"},
    {"db_id": "zoo", "question": "e", "tables": ["customer"], "query": None},
    {"db_id": "zoo", "question": "f", "tables": ["customer"], "query": None,
     "answer": {"columns": ["a"], "rows": [[1], [2], [3], [4]]}},
]  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "pack"
    for name, script in (("shop", SHOP), ("zoo", ZOO)):
        (folder / name).mkdir(parents=True)
        with closing(sqlite3.connect(folder / name / f"{name}.sqlite")) as connection:
            connection.executescript(script)
    (tmp_path / "dev.json").write_text(json.dumps(QUESTIONS))
    (tmp_path / "few.json").write_text(json.dumps(QUESTIONS[:1]))
    return folder


def measured(data: Path, *names: str, distinct: bool = False) -> DataStatistics:
    settings = Settings(cache=str(data.parent / "cache"))
    files = [data.parent / name for name in names]
    return data_statistics(data, files, settings, distinct=distinct)


def test_the_corpus(data: Path) -> None:
    corpus = measured(data).corpus
    assert corpus.databases == 2
    assert corpus.tables == Spread(2, 4, 1, 2.0, 2.0, 3, 3)  # 3 and 1
    assert corpus.columns == Spread(4, 11, 2, 2.5, 2.75, 4, 4)  # 2 3 4 2
    assert corpus.rows == Spread(4, 7, 0, 2.0, 1.75, 3, 3)  # 2 3 0 2
    assert (corpus.views, corpus.empty, corpus.keys, corpus.same_name) == (1, 1, 1, 2)


def test_the_questions_and_their_answers(data: Path) -> None:
    (one,) = measured(data, "dev.json").questions
    assert (one.n, one.databases, one.by_tables) == (6, 2, {1: 5, 2: 1})
    assert (one.with_sql, one.where, one.ordered) == (4, 1, 1)
    # two names, one product row of two columns, nothing, four rows
    assert one.rows == Spread(4, 7, 0, 1.5, 1.75, 4, 4)
    assert one.columns == Spread(4, 5, 1, 1.0, 1.25, 2, 2)
    assert one.cells == Spread(4, 8, 0, 2.0, 2.0, 4, 4)
    assert (one.empty, one.failed, one.unknown) == (1, 1, 1)
    assert (one.gold, one.distinct) == (3, None)


def test_equal_tables_of_several_databases_are_told_apart_by_content(data: Path) -> None:
    found = measured(data, "dev.json", "few.json", distinct=True)
    # customer of the shop and of the zoo are the same, name and content.
    assert [(one.gold, one.distinct) for one in found.questions] == [(3, 2), (1, 1)]
    assert found.together is not None
    assert (found.together.n, found.together.gold, found.together.distinct) == (7, 3, 2)
    with closing(sqlite3.connect(data / "zoo" / "zoo.sqlite")) as connection:
        connection.execute("UPDATE customer SET name = 'Eve' WHERE id = 2")
        connection.commit()
    assert measured(data, "dev.json", distinct=True).questions[0].distinct == 3


def test_people_and_programs_read_it(data: Path) -> None:
    found = measured(data, "dev.json", "few.json")
    assert found.name == "pack"
    told = json.loads(json.dumps(found.to_dict()))
    assert told["corpus"]["rows"]["total"] == 7
    assert told["questions"][0]["by_tables"] == {"1": 5, "2": 1}
    assert told["paper"] is None
    text = markdown_of(statistics_document(found))
    assert "| declared foreign keys | 1 |" in text
    assert "| … of 2 tables | 1 | 0 | 1 |" in text
    assert "| rows of a table | 0 | 2 | 1.75 | 3 | 3 | 7 |" in text
    assert "paper" not in text


def test_the_papers_counts_stand_beside_its_data_sets(data: Path) -> None:
    found = measured(data, "dev.json")
    known = DataStatistics("Spider", found.corpus, found.questions, CORPORA["spider"])
    document = statistics_document(known)
    table = [one for one in document.blocks if isinstance(one, Table)][-1]
    assert table.header == ("", "paper, Spider", "here")
    assert ("tables", "729", "4") in table.rows
    assert ("questions, dev.json", "985", "6") in table.rows
    assert ("… of 2 tables", "366", "1") in table.rows
    assert "**tables**: there, the distinct tables" in markdown_of(document)


def test_what_is_not_there_is_told(data: Path) -> None:
    with pytest.raises(UsageError, match="no folder or database"):
        measured(data / "none")
    with pytest.raises(UsageError, match="no question file"):
        measured(data, "none.json")
    assert Spread.of([]) is None
