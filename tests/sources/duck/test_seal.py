"""What cannot be done with a sealed DuckDB, even where no guard looks at the statement."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from dbrag.errors import DbragError, ExecutionError
from dbrag.sources.duck.database import DuckDatabase
from dbrag.sources.duck.engine import SPILL, open_engine
from dbrag.sources.duck.files import FilesSource
from dbrag.sources.files.table import FileTable

from ..conftest import contents
from .conftest import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dbrag.sources.base import Source

# Refused by the engine itself. FOLDER stands for a folder of the user's.
ENGINE = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM read_parquet('FOLDER/user.parquet')",
    "SELECT * FROM parquet_metadata('FOLDER/user.parquet')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM 'FOLDER/user.parquet'",
    "SELECT * FROM 'FOLDER/*.parquet'",
    "SELECT * FROM read_duckdb('FOLDER/other.duckdb')",
    "SELECT * FROM 'FOLDER/other.duckdb'",
    "COPY (SELECT 1) TO 'FOLDER/out.csv'",
    "COPY (SELECT 1) TO 'FOLDER/user.parquet' (FORMAT parquet, USE_TMP_FILE false)",
    "COPY (SELECT 1) TO '/dev/stdout'",
    "COPY t FROM '/etc/passwd'",
    "EXPORT DATABASE 'FOLDER/export'",
    "IMPORT DATABASE 'FOLDER/export'",
    "ATTACH 'FOLDER/new.duckdb'",
    "ATTACH 'FOLDER/other.duckdb' AS o (READ_ONLY)",
    "ATTACH 'https://example.com/x.duckdb' AS h",
    "INSTALL httpfs",
    "LOAD httpfs",
    "INSTALL sqlite FROM community",
    "LOAD 'FOLDER/evil.duckdb_extension'",
    "UPDATE EXTENSIONS",
    "SELECT * FROM 'https://example.com/x.csv'",
    "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    "SELECT * FROM read_csv('http://127.0.0.1:1/x.csv')",
    "SET memory_limit = '100GB'",
    "SET GLOBAL threads = 64",
    "RESET memory_limit",
    "PRAGMA memory_limit = '100GB'",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET lock_configuration = false",
    "RESET lock_configuration",
    "SET temp_directory = 'FOLDER'",
    "SET python_enable_replacements = true",
    "SET profiling_output = 'FOLDER/profile.json'",
    "PRAGMA enable_profiling = 'json'",
    "SET log_query_path = 'FOLDER/log'",
    "CALL enable_logging(storage := 'file', storage_path := 'FOLDER/log')",
    "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')",
    "SELECT getenv('DBRAG_TEST_SECRET')",
    "SELECT * FROM secret_table",
    "SELECT * FROM secret_frame",
]
# Refused by the engine where the database is the user's file.
WRITES = [
    "CREATE TABLE x (a INT)",
    "CREATE TABLE x AS SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "CREATE MACRO m() AS 1",
    "CREATE SCHEMA s",
    "CREATE SEQUENCE q",
    "CREATE TYPE e AS ENUM ('a')",
    "INSERT INTO t VALUES (2)",
    "WITH x AS (INSERT INTO t VALUES (2) RETURNING *) SELECT * FROM x",
    "UPDATE t SET a = 3",
    "DELETE FROM t",
    "TRUNCATE t",
    "DROP TABLE t",
    "ALTER TABLE t ADD COLUMN b INT",
    "COMMENT ON TABLE t IS 'x'",
    "COPY (SELECT 1) TO 'FOLDER/user.duckdb' (FORMAT csv, USE_TMP_FILE false)",
    "COPY (SELECT 1) TO 'FOLDER/user.duckdb.wal' (FORMAT csv, USE_TMP_FILE false)",
    "ATTACH 'FOLDER/user.duckdb' AS again (READ_WRITE)",
]
# What DuckDB lets a sealed connection do; the session does not let it in.
SESSION = [
    "CREATE TEMP TABLE x (a INT)",
    "CREATE TEMP VIEW v AS SELECT 1",
    "CREATE TEMP MACRO m() AS 1",
    "CREATE TABLE x (a INT)",
    "WITH x AS (INSERT INTO t VALUES (2) RETURNING *) SELECT * FROM x",
    "COPY (SELECT 1) TO 'SPILL/out.csv'",
    "SELECT * FROM read_csv('SPILL/in.csv')",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('t')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM checkpoint()",
    "SELECT * FROM enable_logging()",
    "SELECT * FROM add_grammar_extension('x', 'y')",
    "SELECT * FROM read_duckdb('FOLDER/user.duckdb')",
    "SET schema = 'main'",
    "USE main",
    "SET VARIABLE x = 1",
    "PREPARE p AS SELECT 1",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "ANALYZE",
    "CALL pragma_version()",
    "EXPLAIN ANALYZE SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT ?",
    "DESCRIBE t",
    "SUMMARIZE t",
]
secret_table = pa.table({"secret": ["from a global variable"]})


@pytest.fixture(scope="module")
def user_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder with files in it."""
    own = tmp_path_factory.mktemp("user")
    with duckdb.connect() as plain:
        plain.execute(f"COPY (SELECT 1 AS a) TO '{own}/user.parquet' (FORMAT parquet)")
    for name in ("user", "other", "sealed"):
        with duckdb.connect(str(own / f"{name}.duckdb")) as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    return own


@pytest.fixture
def folder(user_files: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory; at the end of the test its files are as they were."""
    monkeypatch.setenv("DBRAG_TEST_SECRET", "hunter2")
    monkeypatch.chdir(user_files)
    before = contents(user_files)
    yield user_files
    assert contents(user_files) == before


@pytest.fixture(scope="module", params=["files", "database"])
def sealed(request: pytest.FixtureRequest, user_files: Path) -> Iterator[Source]:
    """A source of either kind, with a table ``t``."""
    source: Source
    if request.param == "files":
        path = str(user_files / "user.parquet")
        source = FilesSource("f", [FileTable("t", path, (path,))], path, path, OPTIONS)
    else:
        path = str(user_files / "sealed.duckdb")
        source = DuckDatabase("d", path, path, OPTIONS)
    yield source
    source.close()


def attempt(run: Callable[[str], Any], sql: str, folder: Path, spill: str = "") -> None:
    """Everything that ``sql`` may do is an error, and it shows no secret."""
    written = sql.replace("FOLDER", str(folder)).replace("SPILL", spill)
    secret_frame = pa.table({"secret": ["from a local variable"]})
    with pytest.raises((duckdb.Error, DbragError)) as caught:
        run(written)
    assert secret_frame["secret"][0].as_py() not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("sql", ENGINE)
def test_the_engine_refuses_it_over_files(sql: str, folder: Path, tmp_path: Path) -> None:
    with open_engine(memory_mb=64, threads=1, spill=str(tmp_path / "spill")) as engine:
        attempt(lambda sql: engine.cursor().execute(sql).fetchall(), sql, folder)


@pytest.mark.parametrize("sql", ENGINE + WRITES)
def test_the_engine_refuses_it_over_a_database(sql: str, folder: Path, tmp_path: Path) -> None:
    path, spill = str(folder / "user.duckdb"), str(tmp_path / "spill")
    with open_engine(memory_mb=64, threads=1, path=path, spill=spill) as engine:
        attempt(lambda sql: engine.cursor().execute(sql).fetchall(), sql, folder)


@pytest.mark.parametrize("sql", WRITES)
def test_the_engine_refuses_it_over_a_database_under_another_name(
    sql: str, folder: Path, tmp_path: Path
) -> None:
    path, spill = str(folder / "user.duckdb"), str(tmp_path / "spill")
    with open_engine(memory_mb=64, threads=1, path=path, catalog="c", spill=spill) as engine:

        def run(sql: str) -> None:
            cursor = engine.cursor()
            cursor.execute("USE c")
            cursor.execute(sql).fetchall()

        attempt(run, sql, folder)


@pytest.mark.parametrize("sql", ENGINE + WRITES + SESSION)
def test_the_session_refuses_it(sql: str, folder: Path, sealed: Any) -> None:
    with sealed.session() as session:
        own = sealed._engine._spill.peek()[2][0]
        assert os.path.isdir(own)
        attempt(session.execute, sql, folder, os.path.join(own, SPILL))
        assert os.listdir(own) == ["alive"]
        # It can still do its work.
        session.execute("SELECT a FROM t")
        assert session.fetch(2) == [(1,)]


def test_nothing_stands_beside_a_database_that_needs_disk(
    folder: Path, database: Callable[..., Any]
) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a", "work/spilling.duckdb", memory_mb=64)
    beside = os.path.dirname(source.location)
    big = "SELECT count(DISTINCT i || repeat('x', 80)) FROM range(1_200_000) r(i)"
    with source.session() as session:
        spill = source._engine._spill.peek()[2][0]
        session.execute(big)
        assert session.fetch(1) == [(1_200_000,)]
        assert os.stat(spill).st_mode & 0o077 == 0
        assert os.listdir(os.path.join(spill, SPILL))
        assert os.listdir(beside) == ["spilling.duckdb"]
    source.close()
    assert not os.path.exists(spill)


def test_a_view_over_files_reads_none(folder: Path, database: Callable[..., Any]) -> None:
    source = database(f"CREATE VIEW v AS SELECT * FROM read_parquet('{folder}/user.parquet')")
    with source.session() as session, pytest.raises(ExecutionError, match="only reading"):
        session.execute("SELECT * FROM v")


def test_a_macro_over_files_reads_none(folder: Path, database: Callable[..., Any]) -> None:
    source = database(
        "CREATE TABLE t AS SELECT 1 AS a;"
        "CREATE MACRO peek(p) AS (SELECT min(content) FROM read_text(p));"
        "CREATE MACRO peeks(p) AS TABLE SELECT * FROM read_text(p)"
    )
    with source.session() as session:
        for sql in ("SELECT peek('/etc/passwd')", "SELECT * FROM peeks('/etc/passwd')"):
            with pytest.raises(ExecutionError, match="only reading"):
                session.execute(sql)
    assert source.functions() == frozenset()
