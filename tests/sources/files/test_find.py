from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from dbrag.errors import UsageError
from dbrag.options import FileOptions, OpenOptions
from dbrag.sources.files import DATA_EXTENSIONS, find_tables, is_data_file
from dbrag.sources.files import unpack as unpacking
from dbrag.sources.files.names import numbered, unique_table_names

from .conftest import Folder, load

CSV = b"id,name\n1,x\n2,y\n"


def parquet_file(path: Path, **columns: list[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", True), ("A.CSV", True), ("a.csv.gz", True), ("a.tsv.bz2", True), ("a.zip", True),
        ("a.jsonl.zst", True), ("a.pq", True), ("a.xlsm", True), ("a.txt", False), ("a.gz", False),
        ("csv", False), ("a.db", False), ("a.csv.bak", False), ("a.zip.gz", False),
    ],
)  # fmt: skip
def test_data_files_by_their_names(name: str, data: bool) -> None:
    assert is_data_file(name) is data
    assert ".csv" in DATA_EXTENSIONS


def test_a_folder(folder: Folder) -> None:
    for name in ("b.csv", "sub/a.csv", "销售.tsv", "sub/deep/c.jsonl", "notes.txt", ".hidden.csv",
                 "~$open.csv", ".git/x.csv"):  # fmt: skip
        folder.write(name, b'{"a": 1}' if name.endswith("jsonl") else CSV)
    seen: list[str] = []
    tables, skipped = find_tables(str(folder.path), folder.options(), seen.append)
    assert [table.name for table in tables] == ["b", "a", "c", "销售"]
    assert not skipped
    assert [os.path.basename(path) for path in seen] == ["b.csv", "a.csv", "c.jsonl", "销售.tsv"]
    assert all(os.path.isabs(table.path) for table in tables)


def test_names_that_collide(folder: Folder) -> None:
    for name in ("2023/sales.csv", "2024/Sales.csv", "x/2024/sales.csv", "other.csv"):
        folder.write(name, CSV)
    names = [table.name for table in folder.find()[0]]
    assert names == ["2023_sales", "2024_Sales", "other", "2024_sales_2"]


def test_names_are_unique_without_regard_to_case() -> None:
    assert numbered(["a", "A", "a_2", "a"]) == ["a", "A_3", "a_2", "a_4"]
    assert unique_table_names([("x", "p"), ("X", "p"), ("y", "p")]) == ["p_x", "p_X_2", "y"]


def test_a_pattern(folder: Folder) -> None:
    for name in ("2023/a.csv", "2024/b.csv", "2024/c.json", "d.csv", "2024/[x].csv"):
        folder.write(name, CSV if name.endswith("csv") else b'[{"a": 1}]')
    assert [table.name for table in folder.find("2024/*.csv")[0]] == ["[x]", "b"]
    assert [table.name for table in folder.find("**/*.csv")[0]] == ["a", "[x]", "b", "d"]
    assert [table.name for table in folder.find("2024/[x].csv")[0]] == ["[x]"]
    assert folder.find("none*.csv") == ([], [])


def test_unreadable_files_are_named_and_the_others_read(folder: Folder) -> None:
    folder.write("a.csv", CSV)
    folder.write("b.csv", b"")
    folder.write("c.parquet", b"no parquet")
    folder.write("d.json", b"{")
    folder.write("e.xlsx", b"x")
    (folder.path / "f.csv").symlink_to(folder.path / "gone.csv")
    os.mkfifo(folder.path / "g.csv")
    tables, skipped = folder.find()
    assert [table.name for table in tables] == ["a"]
    assert [one.name for one in skipped] == ["b.csv", "c.parquet", "d.json", "e.xlsx"]
    assert all(one.reason and one.location.startswith("/") for one in skipped)


def test_a_pipe_that_is_named_is_not_opened(folder: Folder) -> None:
    os.mkfifo(folder.path / "g.csv")
    assert folder.reason("g.csv") == "is no regular file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(folder: Folder) -> None:
    folder.write("a.csv", CSV).chmod(0)
    assert "Permission denied" in folder.reason("a.csv")


def test_text_files_are_read_where_they_are_named(folder: Folder) -> None:
    assert folder.read("a.txt", CSV).rows == [(1, "x"), (2, "y")]
    assert "no data file's" in folder.reason("a.doc", b"x")


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst"])
def test_compressed_files(folder: Folder, ending: str) -> None:
    pack = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    }[ending]
    read = folder.read(f"a.csv.{ending}", pack(CSV))
    assert read.table.name == "a"
    assert read.rows == [(1, "x"), (2, "y")]
    assert "damaged" in folder.reason(f"b.csv.{ending}", pack(CSV * 100)[:-9])
    assert folder.reason(f"c.csv.{ending}", b"nothing of the kind")


def test_archives(folder: Folder) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("in/a.csv", CSV)
        archive.writestr("../../evil.json", b'[{"a": 1}]')
        archive.writestr("bad.xlsx", b"x")
        archive.writestr("readme.md", b"x")
        archive.writestr("__MACOSX/a.csv", b"x")
    folder.write("all.zip", data.getvalue())
    tables, skipped = folder.find("all.zip")
    assert [table.name for table in tables] == ["a", "evil"]
    assert load(tables[0]).rows == [(1, "x"), (2, "y")]
    assert [one.name for one in skipped] == ["bad.xlsx"]
    assert not list(folder.path.parent.rglob("evil.json"))
    assert "no zip" in folder.reason("b.zip", b"x")


@pytest.mark.parametrize("ending", ["gz", "zip"])
def test_bombs_are_refused(folder: Folder, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "FREE_BYTES", 1 << 20)
    bomb = b"a,b\n" * (8 << 20)
    if ending == "zip":
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", bomb)
        packed = data.getvalue()
    else:
        packed = gzip.compress(bomb)
    assert "refused" in folder.reason(f"a.{'csv.gz' if ending == 'gz' else 'zip'}", packed)


def test_parquet_is_read_in_place(folder: Folder) -> None:
    parquet_file(folder.path / "a.parquet", x=[1, 2])
    tables, skipped = folder.find()
    assert tables[0].parquet == (str(folder.path / "a.parquet"),)
    assert not skipped
    assert not folder.cache.exists()
    assert find_tables(str(folder.path), OpenOptions())[0][0].name == "a"


def test_partitioned_folders_are_one_table(folder: Folder) -> None:
    for year in (2023, 2024):
        parquet_file(folder.path / f"sales/year={year}/part-0.parquet", x=[year])
    folder.write("sales/_SUCCESS", b"")
    parquet_file(folder.path / "other.parquet", y=[1])
    tables, skipped = folder.find()
    assert not skipped
    assert [(table.name, table.partitioned, len(table.parquet)) for table in tables] == [
        ("other", False, 1),
        ("sales", True, 2),
    ]
    assert tables[1].path == str(folder.path / "sales")
    assert "2 files as one table" in tables[1].guessed
    whole = folder.find("sales")[0]
    assert [table.name for table in whole] == ["sales"]


@pytest.mark.parametrize(
    "names",
    [
        ["part-00000-0a1b.snappy.parquet", "part-00001-9f.snappy.parquet"],
        ["data_1.parquet", "data_2.parquet", "data_10.parquet"],
        ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"],
    ],
)
def test_parts_of_one_table(folder: Folder, names: list[str]) -> None:
    for number, name in enumerate(names):
        parquet_file(folder.path / "events" / name, x=[number])
    tables, _ = folder.find()
    assert [table.name for table in tables] == ["events"]
    assert len(tables[0].parquet) == len(names)


def test_files_that_are_no_parts_are_tables_each(folder: Folder) -> None:
    parquet_file(folder.path / "a/users_1.parquet", x=[1])
    parquet_file(folder.path / "a/users_2.parquet", y=["other columns"])
    parquet_file(folder.path / "b/users.parquet", x=[1])
    parquet_file(folder.path / "b/orders.parquet", x=[1])
    names = [table.name for table in folder.find()[0]]
    assert names == ["users_1", "users_2", "orders", "users"]


def test_a_damaged_part_leaves_out_its_table_and_is_named(folder: Folder) -> None:
    parquet_file(folder.path / "s/year=1/a.parquet", x=[1])
    folder.write("s/year=2/b.parquet", b"bad")
    tables, skipped = folder.find()
    assert not tables
    assert "'b.parquet'" in skipped[0].reason


def test_lake_tables_are_not_read_as_plain_parquet(folder: Folder) -> None:
    parquet_file(folder.path / "t/a.parquet", x=[1])
    folder.write("t/_delta_log/0.json", b"{}")
    tables, skipped = folder.find()
    assert not tables
    assert "Delta Lake" in skipped[0].reason


def test_arrow_files(folder: Folder) -> None:
    table = pa.table({"x": [1, 2], "s": ["a", None]})
    feather.write_feather(table, folder.path / "a.feather")
    read = folder.read("a.feather")
    assert read.rows == [(1, "a"), (2, None)]
    assert "no feather" in folder.reason("b.feather", b"x")
    sink = io.BytesIO()
    pq.write_table(table, sink)
    assert folder.read("c.parquet.gz", gzip.compress(sink.getvalue())).rows == read.rows


def test_settings_by_pattern(folder: Folder) -> None:
    folder.write("2024/a.csv", b"a;b\n1,5;2\n")
    folder.write("b.csv", b"a,b\n01,2\n")
    folder.write("c.csv", CSV)
    files = {
        "*": FileOptions(types={"a": "string"}),
        "2024/*.csv": FileOptions(decimal=","),
        str(folder.path / "b.csv"): FileOptions(types={"b": "double"}),
        "c.*": FileOptions(skip=True),
    }
    tables, _ = find_tables(str(folder.path), OpenOptions(cache=folder.cache, files=files))
    assert [table.name for table in tables] == ["a", "b"]
    assert load(tables[0]).rows == [("1,5", 2)]
    assert load(tables[1]).rows == [("01", 2.0)]


def test_without_a_cache_nothing_is_converted(folder: Folder) -> None:
    path = folder.write("a.csv", CSV)
    tables, skipped = find_tables(str(path), OpenOptions())
    assert not tables
    assert "cache" in skipped[0].reason


def test_the_cache_below_the_folder_is_not_read(folder: Folder) -> None:
    folder.write("a.csv", CSV)
    options = OpenOptions(cache=folder.path / "cache")
    for _ in range(2):
        assert [table.name for table in find_tables(str(folder.path), options)[0]] == ["a"]


def test_names_that_are_no_text(folder: Folder) -> None:
    path = os.fsencode(folder.path) + b"/caf\xe9.csv"
    try:
        with open(path, "wb") as file:
            file.write(CSV)
    except OSError:
        pytest.skip("this file system takes no such names")
    assert [table.name for table in folder.find()[0]] == ["caf\ufffd"]
    assert load(folder.find()[0][0]).rows == [(1, "x"), (2, "y")]


def test_an_archive_of_many_bombs_is_refused(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(unpacking, "MAX_RATIO", 1)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(4):
            archive.writestr(f"{number}.csv", b"a,b\n" + b"1,2\n" * 100_000)
    folder.write("a.zip", data.getvalue())
    tables, skipped = folder.find("a.zip")
    assert [table.name for table in tables] == ["0", "1"]
    assert ["refused" in one.reason for one in skipped] == [True, True]


def test_a_later_pattern_takes_skip_back(folder: Folder) -> None:
    for name in ("a.csv", "keep.csv"):
        folder.write(name, CSV)
    files = {"*": FileOptions(skip=True, delimiter=","), "keep.csv": FileOptions(skip=False)}
    tables, _ = find_tables(str(folder.path), OpenOptions(cache=folder.cache, files=files))
    assert [table.name for table in tables] == ["keep"]
    assert tables[0].guessed == ("header in line 1",)  # what else the first one says holds


def test_an_error_names_every_pattern_that_may_have_said_it(folder: Folder) -> None:
    folder.write("a.csv", CSV)
    files = {"*": FileOptions(types={"name": "int64"}), "a.csv": FileOptions(delimiter=",")}
    with pytest.raises(UsageError) as caught:
        find_tables(str(folder.path), OpenOptions(cache=folder.cache, files=files))
    assert caught.value.hint == 'change types.name in [files."*"] or [files."a.csv"], or the value'


def test_an_index_or_cache_in_the_folder_is_none_of_the_data(folder: Folder) -> None:
    folder.write("a.csv", CSV)
    folder.write("index/writer.lock", b"")
    folder.write("index/manifest.json", b'{"format": 1}')
    folder.write("index/gen-000001/catalog/1.json", b'[{"a": 1}]')
    for name in ("files/x/current.json", "indexes/y/manifest.json", "weights/tokenizer.json"):
        folder.write(f"cache/{name}", b'[{"a": 1}]')
    folder.write("weights/b.csv", CSV)  # a folder of the user's, whatever its name
    tables, skipped = find_tables(
        str(folder.path), OpenOptions(cache=folder.path / "cache" / "files")
    )
    assert [table.name for table in tables] == ["a", "b"]
    assert not skipped
