"""``--csv`` and ``--parquet``: the whole result, exactly, and never over something else."""

from __future__ import annotations

import csv
import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.arrow import arrow_type
from dbrag.interfaces.cli.export import csv_lines
from dbrag.sources.files.names import numbered
from dbrag.types import Execution, ResultColumn

from .conftest import an_answer

NUMBERS = (
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1000) "
    "SELECT n, n AS n, NULL AS z, '' AS e FROM c"
)
ODD = (
    (Decimal("1.10"), 2**60, UUID(int=7), dt.datetime(1901, 2, 3, 4, 5, 6, 7), None, "", b"\0a"),
    (Decimal("1E+3"), None, None, dt.datetime(2300, 1, 1), "a,b", 'q"\n', None),
)


def execution(rows: tuple[tuple[object, ...], ...]) -> Execution:
    columns = zip(*rows, strict=True)
    return Execution(
        tuple(ResultColumn(f"c{i}", arrow_type(values)) for i, values in enumerate(columns)),
        rows,
        0.0,
    )


def test_files_hold_what_the_screen_does_not_show(cli, small_shop: Path) -> None:
    done = cli(
        "sql", "-s", small_shop, NUMBERS, "--max-rows", "2", "--csv", "a.csv", "--parquet", "a.pq"
    )
    assert done.code == 0, done.err
    assert "2 of 1,000 rows shown" in done.out
    assert "1,000 rows written to" in done.err
    assert "repeated column names: 'n_2'" in done.err
    lines = Path("a.csv").read_text().split("\n")
    assert lines[:3] == ["n,n,z,e", '1,1,,""', '2,2,,""']
    assert len(lines) == 1002
    table = pq.read_table("a.pq")
    assert table.column_names == ["n", "n_2", "z", "e"]
    assert sum(table.column("n").to_pylist()) == 500_500
    assert table.column("z").null_count == 1000
    assert not list(Path().glob(".*part"))


def test_values_are_exact(cli, fake) -> None:
    fake.result = an_answer(execution=execution(ODD))
    assert cli("ask", "-s", "a.db", "q", "--csv", "a.csv", "--parquet", "a.pq").code == 0
    row = pq.read_table("a.pq").to_pylist()[0]
    assert [*row.values()] == [
        Decimal("1.10"), 2**60, str(UUID(int=7)), ODD[0][3], None, "", b"\0a",
    ]  # fmt: skip
    text = Path("a.csv").read_text()
    assert f'1.10,{2**60},{UUID(int=7)},1901-02-03T04:05:06.000007,,"",AGE=' in text
    assert '1000,,,2300-01-01T00:00:00,"a,b","q""\n",' in text


CELLS = st.none() | st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(CELLS, CELLS)))
def test_any_csv_reader_gets_the_texts(rows: list[tuple[str | None, str | None]]) -> None:
    text = "".join(csv_lines(["a", "b"], rows))
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read == [["a", "b"], *([c or "" for c in row] for row in rows)]
    for row in rows:
        for cell in row:
            assert cell != "" or '""' in text


@given(st.lists(st.sampled_from(["n", "N", "n_2", "m", ""])))
def test_repeated_names_get_numbers(names: list[str]) -> None:
    unique = numbered(names)
    assert len({name.casefold() for name in unique}) == len(names)
    for i, name in enumerate(names):
        if name.casefold() not in {earlier.casefold() for earlier in names[:i]}:
            assert unique[i] == name


class TestRefused:
    """Nothing that is there is replaced unasked; a source never."""

    @pytest.mark.parametrize("flag", ["--csv", "--parquet"])
    def test_an_existing_file(self, cli, small_shop: Path, flag: str) -> None:
        Path("a").write_text("mine")
        done = cli("sql", "-s", small_shop, "SELECT 1", flag, "a")
        assert done.code == 2
        assert "'a' exists" in done.err
        assert "--force" in done.err
        assert Path("a").read_text() == "mine"
        assert cli("sql", "-s", small_shop, "SELECT 1", flag, "a", "--force").code == 0
        assert Path("a").read_bytes() != b"mine"

    @pytest.mark.parametrize("form", ["{}", "shop={}", "sqlite:///{}"])
    def test_a_source(self, cli, small_shop: Path, form: str) -> None:
        before = small_shop.read_bytes()
        source = form.format(small_shop)
        done = cli("sql", "-s", source, "SELECT 1", "--csv", small_shop, "--force")
        assert done.code == 2
        assert "belongs to a source" in done.err
        Path("link").symlink_to(small_shop)
        assert cli("sql", "-s", source, "SELECT 1", "--csv", "link", "--force").code == 2
        folder = small_shop.parent
        done = cli("sql", "-s", folder, "SELECT 1", "--csv", small_shop, "--force")
        assert done.code == 2
        assert small_shop.read_bytes() == before

    @pytest.mark.parametrize("end", ["-wal", "-shm", "-journal", ".wal"])
    @pytest.mark.parametrize("there", [True, False])
    def test_what_an_engine_keeps_beside_a_source(
        self, cli, small_shop: Path, end: str, there: bool
    ) -> None:
        """It holds changes that are not in the database yet, or would be taken for such."""
        beside = Path(f"{small_shop}{end}")
        if there:
            beside.write_bytes(b"changes")
        for spec in (small_shop, small_shop.parent, f"shop={small_shop}"):
            done = cli("sql", "-s", spec, "SELECT 1", "--csv", beside, "--force")
            assert done.code == 2
            assert "belongs to a source" in done.err
        assert beside.exists() == there
        assert not there or beside.read_bytes() == b"changes"

    def test_other_paths(self, cli, small_shop: Path) -> None:
        for target in ("no/such/folder/a.csv", ".", "a\0b"):
            assert cli("sql", "-s", small_shop, "SELECT 1", "--csv", target).code == 2
        done = cli("sql", "-s", small_shop, "SELECT 1", "--csv", "a", "--parquet", "a")
        assert done.code == 2
        done = cli("ask", "-s", small_shop, "q", "--csv", "a", "--dry-run")
        assert done.code == 2

    def test_nothing_is_written_without_a_result(self, cli, fake) -> None:
        fake.result = an_answer(execution=None, status="failed", exit_code=1)
        assert cli("ask", "-s", "a.db", "q", "--csv", "a.csv").code == 1
        assert not Path("a.csv").exists()


def test_json_output_stays_one_object(cli, small_shop: Path) -> None:
    done = cli("sql", "-s", small_shop, "SELECT 1 AS n", "--csv", "a.csv", "--json")
    assert done.json["rows"] == [[1]]
    assert Path("a.csv").read_text() == "n\n1\n"
