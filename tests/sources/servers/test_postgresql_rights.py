"""The rights that docs/sources.md asks for are enough, and no more than enough."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from dbrag.catalog.profile import profile_table
from dbrag.errors import ExecutionError
from dbrag.execution.run import run
from dbrag.options import OpenOptions
from dbrag.sources.servers.open import open_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import TestDatabase

PAGE = Path(__file__).parents[3] / "docs" / "sources.md"


@pytest.fixture
def reader(postgres: TestDatabase) -> Iterator[str]:
    """A role made by the statements of the page, in a database with two schemas."""
    names = {
        "dbrag_reader": f"{postgres.name}_reader",
        "shop_owner": f"{postgres.name}_owner",
        "DATABASE shop": f"DATABASE {postgres.name}",
    }
    page = PAGE.read_text(encoding="utf-8").partition("### A role that can only read")[2]
    (grants,) = re.findall(r"```sql\n(.*?)```", page.partition("\n### ")[0], re.DOTALL)
    for shown, real in names.items():
        grants = grants.replace(shown, real)
    owner, role = names["shop_owner"], names["dbrag_reader"]
    postgres.run(
        f"CREATE ROLE {owner}",
        "CREATE SCHEMA sales",
        f"GRANT ALL ON SCHEMA public, sales TO {owner}",
        f"SET ROLE {owner}",
        "CREATE TABLE public.cities (id int PRIMARY KEY, name text)",
        "INSERT INTO public.cities VALUES (1, 'Rome'), (2, 'Oslo')",
        "CREATE TABLE sales.orders (id int PRIMARY KEY, city int REFERENCES public.cities)",
        "INSERT INTO sales.orders VALUES (1, 1), (2, 1), (3, 2)",
    )
    with postgres.connect() as connection:
        connection.execute(grants)
    # Made after the grants.
    postgres.run(f"SET ROLE {owner}", "CREATE TABLE sales.later AS SELECT 1 AS n")
    yield role
    postgres.run(
        f"DROP OWNED BY {owner} CASCADE",
        f"DROP OWNED BY {role} CASCADE",
        f"DROP ROLE {owner}",
        f"DROP ROLE {role}",
    )


def test_the_rights_in_the_docs(postgres: TestDatabase, reader: str) -> None:
    url = postgres.url_as(reader, "change me")
    source = open_server("shop", url, url, OpenOptions())
    tables = source.reflect()
    assert [str(table.ref) for table in tables] == [
        "shop.public.cities",
        "shop.sales.later",
        "shop.sales.orders",
    ]
    for table in tables:
        profiled, rows = profile_table(source, table, profile_rows=100, profile_s=5)
        assert profiled.row_count == len(rows) > 0
    assert len(source.marks()) == 3
    statement = (
        "SELECT c.name, count(*) FROM sales.orders o JOIN cities c ON c.id = o.city "
        "GROUP BY c.name ORDER BY 2 DESC"
    )
    result = run(source, statement, timeout_s=10, max_rows=10, max_mb=10)
    assert result.rows == (("Rome", 2), ("Oslo", 1))
    for write in (
        "INSERT INTO sales.orders VALUES (9, 1)",
        "UPDATE cities SET name = 'x'",
        "CREATE TABLE sales.mine (id int)",
        "DROP TABLE sales.orders",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT * FROM pg_authid",
    ):
        with source.session(5) as session, pytest.raises(ExecutionError):
            session.execute(write)
    source.close()
    # Not even without dbrag's read-only session.
    with psycopg.connect(url.replace(" ", "%20"), autocommit=True) as raw:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            raw.execute("INSERT INTO sales.orders VALUES (9, 1)")
        raw.execute("SET default_transaction_read_only = off")
        for write in ("INSERT INTO sales.orders VALUES (9, 1)", "CREATE TABLE sales.mine (id int)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                raw.execute(write)
