"""When votes split, the other meaning is told with its answer and its difference."""

from __future__ import annotations

from pathlib import Path

import pytest

import dbrag
from dbrag.demo import write_demo
from dbrag.models.testing import HashEmbedder, ScriptedModel
from dbrag.reasoning.explanation import Account, account
from dbrag.reasoning.readings import difference
from dbrag.reasoning.vote import Ballot, tally
from dbrag.types import Answer, Column, Program, Table, TableRef

TABLES = [
    Table(TableRef("shop", None, name), tuple(map(Column, columns)))
    for name, columns in {
        "orders": ("order_id", "status", "total"),
        "payments": ("payment_id", "order_id", "amount", "method"),
    }.items()
]


def told(sql: str) -> Account:
    used = tuple(table.ref for table in TABLES if table.ref.name in sql)
    return account(Program((), sql, "sqlite", used), TABLES)


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        (
            "SELECT SUM(total) FROM orders",
            "SELECT SUM(amount) FROM payments",
            "reads shop.payments instead of shop.orders; "
            "shows the sum of payments.amount instead of the sum of orders.total",
        ),
        (
            "SELECT total FROM orders",
            "SELECT total FROM orders WHERE status = 'paid'",
            "keeps only what fulfils: orders.status is 'paid'",
        ),
        (
            "SELECT total FROM orders WHERE status = 'paid'",
            "SELECT DISTINCT total FROM orders",
            "does not ask that orders.status is 'paid'; also: equal rows are shown once",
        ),
        (
            "SELECT total FROM orders ORDER BY total LIMIT 1",
            "SELECT total FROM orders ORDER BY total DESC LIMIT 1",
            "orders by orders.total, descending instead of orders.total, ascending",
        ),
        (
            "SELECT SUM(total) AS t FROM orders ORDER BY t DESC",
            "SELECT AVG(total) AS t FROM orders ORDER BY t DESC",
            "shows t: the average of orders.total instead of t: the sum of orders.total",
        ),
        (
            "SELECT total FROM orders",
            "SELECT (total) FROM orders",
            "does the same in other words: compare the SQL",
        ),
    ],
)
def test_the_difference_in_words(first: str, other: str, said: str) -> None:
    assert difference(told(first), told(other)) == said


def test_rivals_are_the_groups_as_large_as_the_winner() -> None:
    found = tally([Ballot(key, hollow=False) for key in "abcab"])
    assert found is not None
    assert (found.winners, found.rivals, found.split) == ((0, 3), ((1, 4),), True)
    found = tally([Ballot(key, hollow=key == "0") for key in "a00"])
    assert found is not None
    assert (found.winners, found.rivals, found.split) == ((0,), (), False)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "shop.db"
    write_demo(path)
    return path


def asked(demo: Path, *replies: str, votes: int = 2) -> Answer:
    database = dbrag.connect(
        demo, chat_model=ScriptedModel(list(replies)), embedder=HashEmbedder(), max_rows=2
    )
    with database as db:
        return db.ask("How many customers are there in each city?", votes=votes)


ALL = "SELECT city, COUNT(*) AS n FROM customers GROUP BY city"
NAMED = "SELECT city, COUNT(email) AS n FROM customers GROUP BY city"


def test_both_readings_of_a_split_vote_are_told(demo: Path) -> None:
    answer = asked(demo, ALL, NAMED)
    (reading,) = answer.readings
    assert answer.sql == ALL
    assert (reading.program.sql, reading.votes) == (NAMED, 1)
    assert reading.difference == (
        "shows n: the number of rows with a value of customers.email instead of "
        "n: the number of rows"
    )
    told = answer.to_dict()["readings"][0]
    assert told["text"] == reading.text
    assert (len(told["rows"]), told["truncated"]) == (2, True)
    assert told["row_count"] == len(reading.execution.rows)
    assert told["tables"] == answer.to_dict()["tables"]


def test_no_other_reading_where_votes_agree_or_one_is_ahead(demo: Path) -> None:
    assert asked(demo, ALL, ALL).readings == ()
    assert asked(demo, ALL, NAMED, ALL, votes=3).readings == ()
    assert len(asked(demo, ALL, NAMED, "SELECT COUNT(*) FROM customers", votes=3).readings) == 2
