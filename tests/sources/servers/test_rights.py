"""What an account may do beside reading, as the server tells."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dbrag.options import OpenOptions
from dbrag.sources.servers.open import open_server
from dbrag.sources.servers.rights import mysql_rights, write_rights
from tests.servers import TestDatabase, mysql, postgres

__all__ = ["mysql", "postgres"]


def rights(url: str) -> tuple[str, ...]:
    source = open_server("s", url, url, OpenOptions())
    try:
        return write_rights(source)
    finally:
        source.close()


@pytest.fixture
def accounts(postgres: TestDatabase) -> Iterator[tuple[str, str]]:
    """A role that reads, and one that also inserts into one table."""
    reader, writer = f"{postgres.name}_r", f"{postgres.name}_w"
    postgres.run(
        "CREATE TABLE cities (id int)",
        f"CREATE ROLE {reader} LOGIN",
        f"CREATE ROLE {writer} LOGIN",
        f"GRANT SELECT ON cities TO {reader}, {writer}",
        f"GRANT INSERT ON cities TO {writer}",
    )
    yield reader, writer
    for role in (reader, writer):
        postgres.run(f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")


def test_postgresql(postgres: TestDatabase, accounts: tuple[str, str]) -> None:
    reader, writer = accounts
    everything = rights(postgres.url)  # of a superuser
    assert everything[0] == "superuser"
    assert set(everything[1:]) == {"INSERT", "UPDATE", "DELETE", "TRUNCATE"}
    assert rights(postgres.url_as(reader)) == ()
    assert rights(postgres.url_as(writer)) == ("INSERT",)


def test_mysql(mysql: TestDatabase) -> None:
    assert "ALL PRIVILEGES" in rights(mysql.url)


@pytest.mark.parametrize(
    ("grants", "found"),
    [
        (["GRANT USAGE ON *.* TO `r`@`%`", "GRANT SELECT, SHOW VIEW ON `d`.* TO `r`@`%`"], ()),
        (["GRANT SELECT, INSERT, UPDATE ON `d`.* TO `w`@`%`"], ("INSERT", "UPDATE")),
        (["GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION"], ("ALL PRIVILEGES",)),
        (["GRANT SELECT (`a`, `b`), UPDATE (`a`) ON `d`.`t` TO `c`@`%`"], ("UPDATE",)),
        (["GRANT `reader`@`%` TO `r`@`%`", "GRANT FILE ON *.* TO `r`@`%`"], ("FILE",)),
        ([], ()),
    ],
)
def test_lines_of_show_grants(grants: list[str], found: tuple[str, ...]) -> None:
    assert mysql_rights(grants) == found
