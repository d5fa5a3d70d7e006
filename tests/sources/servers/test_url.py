"""URLs of servers: nothing secret is ever shown, and what is shown can be opened again."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL
from sqlalchemy.engine import make_url

from dbrag.errors import DbragError, UsageError
from dbrag.options import OpenOptions
from dbrag.sources.servers.open import open_server
from dbrag.sources.servers.url import (
    default_name,
    host_name,
    location_of,
    parse_url,
    secrets_of,
    without_password,
    without_secrets,
)

SHOWN = {
    "postgresql://ann:s3cret@db:5433/shop": "postgresql://ann@db:5433/shop",
    "postgresql://ann:s3cret@db/shop": "postgresql://ann@db:5432/shop",
    "postgres://ann:s3cret@db/shop": "postgresql://ann@db:5432/shop",
    "POSTGRES://ann:s3cret@db/shop": "postgresql://ann@db:5432/shop",
    "postgresql+psycopg://ann:s3cret@db/shop": "postgresql://ann@db:5432/shop",
    "postgresql+psycopg2://ann:s3cret@db/shop": "postgresql://ann@db:5432/shop",
    "postgresql://db/shop?user=ann&password=s3cret": "postgresql://ann@db:5432/shop",
    "postgresql://ann@db/shop?sslpassword=s3cret&sslmode=require": (
        "postgresql://ann@db:5432/shop?sslmode=require"
    ),
    "postgresql:///shop?host=/run/postgresql": "postgresql:///shop?host=%2Frun%2Fpostgresql",
    "postgresql://[::1]/shop": "postgresql://[::1]:5432/shop",
    "postgresql://a%40b:p%3As%2F@db/shop": "postgresql://a%40b@db:5432/shop",
    "postgresql://ann@/shop?passfile=/home/ann/.pgpass": (
        "postgresql://ann@/shop?passfile=%2Fhome%2Fann%2F.pgpass"
    ),
    "mssql+pyodbc://?odbc_connect=DRIVER%3Dx%3BUID%3Dann%3BPWD%3Ds3cret%3BDATABASE%3Dshop": (
        "mssql+pyodbc://?odbc_connect=DRIVER%3Dx%3BUID%3Dann%3BDATABASE%3Dshop"
    ),
    "snowflake://ann:s3cret@acc/db?warehouse=w&token=s3cret&private_key=s3cret": (
        "snowflake://ann@acc/db?warehouse=w"
    ),
}


@pytest.mark.parametrize(("place", "shown"), SHOWN.items())
def test_what_is_shown(place: str, shown: str) -> None:
    assert without_password(place) == shown
    # Opened again it is the same place.
    assert without_password(shown) == shown


_words = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@given(user=_words, password=st.text("abcdefgh", min_size=9, max_size=20), database=_words)
def test_no_password_is_shown(user: str, password: str, database: str) -> None:
    url = URL.create("postgresql", user, password, "db", 5432, database, {"sslpassword": password})
    place = url.render_as_string(hide_password=False)
    shown = without_password(place)
    assert password not in shown.replace(user, "").replace(database, "")
    again = make_url(shown)
    assert (again.username, again.host, again.database) == (user, "db", database)
    assert again.password is None
    assert secrets_of(parse_url(place)) == {password}


@given(st.text(max_size=60))
def test_any_text_is_a_url_or_an_error_that_does_not_repeat_it(text: str) -> None:
    place = f"postgresql://{text}"
    try:
        location_of(parse_url(place))
    except UsageError as error:
        assert len(text) < 8 or text not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "place",
    ["postgresql://ann:s3cret@db:port/shop", "postgresql://ann:s3cr/et@db:1x/shop", "x y://s3cret"]
    + [f"postgresql://ann:a@{rest}" for rest in ("s3cr/et@db/shop", "s3cret?b@db/shop")],
)
def test_an_unreadable_url_is_not_repeated(place: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_server(None, place, place, OpenOptions())
    assert "s3cr" not in caught.value.message + caught.value.hint
    assert caught.value.__cause__ is None
    assert "%40" in caught.value.hint


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_name("postgresql://ann@db/shop") == "shop"
    assert default_name("postgresql://ann@db") == "ann"
    assert default_name("postgresql://db") == "db"
    assert default_name("mysql://ann@db") == "db"
    monkeypatch.setenv("PGDATABASE", "other")
    assert default_name("postgresql://ann@db") == "other"
    assert host_name("postgresql://ann:x@db:1/shop") == "db"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nosuch://ann:s3cret@db/shop", "no dialect for 'nosuch://…'"),
        ("postgresql+nosuch://ann:s3cret@db/shop", None),
        ("postgresql+asyncpg://ann:s3cret@db/shop", "asynchronous"),
        ("postgresql+psycopg_async://ann:s3cret@db/shop", "asynchronous"),
        ("mysql+aiomysql://ann:s3cret@db/shop", "asynchronous"),
        ("sqlite:///x.db", "not a server"),
        ("duckdb:///x.db", "not a server"),
    ],
)
def test_what_cannot_be_opened(place: str, words: str | None) -> None:
    if words is None:  # the driver is ours to choose
        open_server(None, place, place, OpenOptions()).close()
        return
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        open_server(None, place, place, OpenOptions())
    assert "s3cret" not in str(caught.value) + caught.value.hint
    if "nosuch" in place:
        assert "postgresql://" in caught.value.hint
        assert "pip install" in caught.value.hint


def test_a_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DbragError, match="'psycopg'") as caught:
        open_server(None, "postgresql://ann:s3cret@db/shop", "x", OpenOptions())
    assert caught.value.hint == "pip install 'dbrag[servers]'"
    assert caught.value.exit_code == 3


def test_opening_connects_to_nothing() -> None:
    place = "postgresql://ann:s3cret@no.such.host/shop?password=x"
    source = open_server(None, place, place, OpenOptions())
    assert source.name == "shop"
    assert source.dialect == "postgres"
    assert source.location == source.origin == "postgresql://ann@no.such.host:5432/shop"
    assert repr(source) == "ServerSource('shop', 'postgresql://ann@no.such.host:5432/shop')"
    assert "s3cret" not in repr(vars(source)["_location"])
    source.close()


def test_secrets_are_replaced() -> None:
    secrets = frozenset({"long.secret", "ab"})
    text = "password long.secret, 'ab', about abba"
    assert without_secrets(text, secrets) == "password ***, '***', about abba"
