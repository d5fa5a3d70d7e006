"""Programs of several steps over data files and on servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers import mysql, postgres  # noqa: F401  fixtures

from .test_steps import ask


def test_steps_over_files(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "sales.csv").write_text("city,amount\nRome,10\nOslo,5\nRome,7\n", encoding="utf-8")
    asked = ask(
        folder,
        "sales: SELECT city, amount FROM sales WHERE amount > 5 ORDER BY amount DESC",
        "top: SELECT * FROM sales LIMIT 1",
        "answer: SELECT city, amount FROM top",
        question="Which city has the largest amount of sales?",
    )
    assert asked.rows == (("Rome", 10),)
    assert asked.told(1).splitlines()[:3] == [
        "Step sales: 2 rows.",
        "-- columns: city string, amount int64",
        "-- rows:",
    ]
    assert "ORDER BY" in (asked.answer.sql or "")


@pytest.mark.parametrize("said", ["auto", "on"])
@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_steps_on_a_server(engine: str, said: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(engine)
    server.run(
        "DROP TABLE IF EXISTS orders",
        "CREATE TABLE orders (id int PRIMARY KEY, city varchar(50), total int)",
        "INSERT INTO orders VALUES (1, 'Rome', 10), (2, 'Oslo', 5), (3, 'Rome', 7)",
    )
    asked = ask(
        server.url,
        "orders: SELECT o.city, p.city, o.total FROM orders AS o JOIN orders AS p ON p.id = o.id "
        "ORDER BY o.total DESC",
        "Sums: SELECT city_2, SUM(total) AS total FROM orders GROUP BY city_2",
        "answer: SELECT city_2 FROM sums WHERE total > 6",
        question="Which city has a total of orders above 6?",
        looks=said,
    )
    assert asked.rows == (("Rome",),)
    told = asked.told(1)
    if said == "on":
        assert told.startswith(
            "Step orders: 3 rows.\n-- columns: city string, city_2 string, total"
        )
    else:
        assert told.startswith("Step orders: not looked at")
        assert "-- columns: city, city_2, total" in told
