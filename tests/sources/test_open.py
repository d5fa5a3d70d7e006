"""What a user may name as a source, and what the sources are called."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import pytest

from dbrag.errors import SourceNotFound, SourceUnreadable, UsageError
from dbrag.options import OpenOptions
from dbrag.sources import Source, open_sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., Path]


def names(*specs: object) -> list[str]:
    return [source.name for source in open_sources([str(spec) for spec in specs])[0]]


def test_a_file_is_one_source_named_by_its_stem(make_db: Make) -> None:
    path = make_db("my shop.sqlite3")
    (source,), skipped = open_sources([str(path)])
    assert isinstance(source, Source)
    assert (source.name, source.location, source.origin) == ("my shop", str(path), str(path))
    assert source.dialect == "sqlite"
    assert skipped == []


def test_a_relative_path_gets_an_absolute_location(
    make_db: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_db("shop.db")
    monkeypatch.chdir(tmp_path)
    (source,), _ = open_sources(["shop.db"])
    assert source.location == str(tmp_path / "shop.db")


def test_a_folder_gives_every_database_below_it_by_its_header(
    make_db: Make, tmp_path: Path
) -> None:
    make_db("in/a.db")
    make_db("in/deep/er/b.sqlite")
    make_db("in/no_extension")
    (tmp_path / "in/readme.txt").write_text("hello")
    (tmp_path / "in/nothing.txt").write_text("")
    sources, skipped = open_sources([str(tmp_path / "in")])
    assert [s.name for s in sources] == ["a", "no_extension", "b"]
    assert {s.origin for s in sources} == {str(tmp_path / "in")}
    assert skipped == []


def test_a_file_that_only_looks_like_a_database_is_skipped_by_name(
    make_db: Make, tmp_path: Path
) -> None:
    make_db("good.db")
    (tmp_path / "bad.db").write_text("this is no database")
    sources, (skipped,) = open_sources([str(tmp_path)])
    assert [s.name for s in sources] == ["good"]
    assert (skipped.name, skipped.location) == ("bad", str(tmp_path / "bad.db"))
    assert "not a SQLite or DuckDB database" in skipped.reason


def test_a_broken_link_is_skipped(make_db: Make, tmp_path: Path) -> None:
    make_db("good.db")
    (tmp_path / "gone.db").symlink_to(tmp_path / "nowhere")
    sources, (skipped,) = open_sources([str(tmp_path)])
    assert [s.name for s in sources] == ["good"]
    assert skipped.name == "gone"


def test_a_folder_of_none_but_bad_files_says_why(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("this is no database")
    with pytest.raises(SourceUnreadable, match="not a SQLite or DuckDB database"):
        open_sources([str(tmp_path)])


def test_a_folder_without_databases(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match="no database and no data file in folder") as error:
        open_sources([str(tmp_path)])
    assert "SQLite" in error.value.hint


def test_a_named_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("no table here")
    with pytest.raises(SourceUnreadable, match=r"notes\.md' is neither a database nor"):
        open_sources([str(path)])


def test_a_missing_file_says_what_is_near(make_db: Make, tmp_path: Path) -> None:
    make_db("customers.db")
    with pytest.raises(SourceNotFound, match="no such file") as error:
        open_sources([str(tmp_path / "customer.db")])
    assert "customers.db" in error.value.hint


def test_a_pipe_is_no_database_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    with pytest.raises(SourceUnreadable, match="is not a file"):
        open_sources([str(tmp_path / "pipe.db")])


def test_colliding_stems_get_the_folder_then_a_number(make_db: Make, tmp_path: Path) -> None:
    for place in ("north/shop.db", "south/shop.db", "x/south/shop.db", "other.db"):
        make_db(place)
    assert names(tmp_path) == ["other", "north_shop", "south_shop", "south_shop_2"]


def test_names_that_differ_in_case_only_collide(make_db: Make, tmp_path: Path) -> None:
    make_db("a/Shop.db")
    make_db("b/shop.db")
    assert names(tmp_path) == ["a_Shop", "b_shop"]


def test_a_given_name(make_db: Make) -> None:
    path = make_db("shop.db")
    assert names(f"sales={path}") == ["sales"]


def test_a_given_name_is_not_taken_by_a_file(make_db: Make, tmp_path: Path) -> None:
    one, two = make_db("a/one.db"), make_db("b/two.db")
    assert names(f"two={one}", two) == ["two", "b_two"]


def test_the_same_file_twice_is_one_source_and_a_name_wins(make_db: Make, tmp_path: Path) -> None:
    path = make_db("shop.db")
    assert names(tmp_path, path) == ["shop"]
    assert names(tmp_path, f"sales={path}") == ["sales"]


def test_one_name_for_two_sources(make_db: Make) -> None:
    one, two = make_db("one.db"), make_db("two.db")
    with pytest.raises(UsageError, match="'x' is used twice"):
        open_sources([f"x={one}", f"X={two}"])


def test_a_name_for_a_folder_of_many(make_db: Make, tmp_path: Path) -> None:
    make_db("one.db")
    assert names(f"x={tmp_path}") == ["x"]
    make_db("two.db")
    with pytest.raises(UsageError, match="holds 2 sources"):
        open_sources([f"x={tmp_path}"])


def test_an_equals_sign_in_an_existing_path_is_no_name(
    make_db: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_db("a=b.db")
    monkeypatch.chdir(tmp_path)
    assert names("a=b.db") == ["a=b"]


@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite+pysqlite:///{}", "SQLITE:///{}"])
def test_urls(make_db: Make, url: str) -> None:
    path = make_db("a b#1%20?.db")
    (source,), _ = open_sources([url.format(path)])
    assert source.location == str(path)


def test_a_url_with_escapes_and_a_query(make_db: Make) -> None:
    path = make_db("a b.db")
    (source,), _ = open_sources(["sqlite:///" + str(path).replace(" ", "%20") + "?timeout=3"])
    assert source.location == str(path)


@pytest.mark.parametrize(
    "url", ["postgresql://me:secret@host/db", "mysql+pymysql://me:secret@h/db"]
)
def test_a_server_is_named_by_its_database_and_never_shows_its_password(url: str) -> None:
    (source,), _ = open_sources([url])
    assert source.name == "db"
    assert "secret" not in f"{source!r} {source.location} {source.origin}"


def test_an_unknown_engine_does_not_repeat_the_password() -> None:
    with pytest.raises(UsageError) as error:
        open_sources(["nosuch://me:secret@host/db"])
    assert "secret" not in f"{error.value} {error.value.hint}"


def test_all_data_files_of_a_folder_are_one_source(make_db: Make, tmp_path: Path) -> None:
    make_db("shop.db")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.csv.gz").write_bytes(gzip.compress(b"x,y\n1,2\n"))
    sources, skipped = open_sources([str(tmp_path)])
    assert [s.name for s in sources] == ["shop", tmp_path.name]
    assert not skipped


def test_a_glob_is_one_source_of_data_files(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "c.json"):
        (tmp_path / name).write_text("x,y\n1,2\n")
    options = OpenOptions(cache=tmp_path / "cache")
    (source,), _ = open_sources([str(tmp_path / "*.csv")], options)
    assert source.name == tmp_path.name
    assert [table.ref.name for table in source.reflect()] == ["a", "b"]
    source.close()


def test_an_index_inside_a_folder_is_not_data(make_db: Make, tmp_path: Path) -> None:
    make_db("shop.db")
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "manifest.json").write_text('{"format": "dbrag-index"}')
    (tmp_path / "index" / "other.json").write_text("[]")
    assert [s.name for s in open_sources([str(tmp_path)])[0]] == ["shop"]


@pytest.mark.parametrize("spec", ["", " ", "sqlite://", "sqlite:///:memory:", "x=", "a\0b"])
def test_specs_that_name_nothing(spec: str) -> None:
    with pytest.raises((UsageError, SourceNotFound)):
        open_sources([spec])


def test_no_spec_at_all() -> None:
    with pytest.raises(UsageError, match="no source"):
        open_sources([])


@pytest.mark.parametrize(
    "name",
    [
        "hash#tag.db",
        "what?.db",
        "50%.db",
        "%41.db",
        "two words.db",
        'it\'s "quoted".db',
        "größe 数据.db",
        "a&mode=rwc.db",
        "semi;colon.db",
        "back\\slash.db",
    ],
)
def test_difficult_file_names_open_and_create_nothing(
    make_db: Make, untouched: Callable[[], None], name: str
) -> None:
    path = make_db(name)
    untouched()
    (source,), _ = open_sources([str(path)])
    assert [table.ref.name for table in source.reflect()] == ["t"]
    with source.session() as session:
        session.execute("SELECT a FROM t")
        assert session.fetch(5) == [(1,)]
    assert source.stamp()
    assert source.fingerprint()
    source.close()


def test_an_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    (tmp_path / "empty.db").write_bytes(b"")
    (source,), skipped = open_sources([str(tmp_path)])
    assert skipped == []
    with pytest.raises(SourceUnreadable, match="it has no tables"):
        source.reflect()
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_many_sources_do_not_run_out_of_files(
    make_db: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbrag.sources.sql._IDLE_SOURCES", 3)
    for i in range(8):
        make_db(f"d{i}.db")
    sources, _ = open_sources([str(tmp_path)])
    for source in sources:
        source.reflect()
    open_files = sum(
        os.path.realpath(f"/proc/self/fd/{fd}").startswith(str(tmp_path))
        for fd in os.listdir("/proc/self/fd")
    )
    assert open_files <= 3
    with sources[0].session() as session:
        session.execute("SELECT a FROM t")
        assert session.fetch(1) == [(1,)]
    for source in sources:
        source.close()
