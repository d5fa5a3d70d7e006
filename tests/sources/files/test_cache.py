from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dbrag.errors import SourceError
from dbrag.options import OpenOptions
from dbrag.sources.files import cache as store
from dbrag.sources.files import convert, find_tables

from .conftest import Folder, load

CSV = "id,name\n1,x\n"


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_file_is_converted_once(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    first = folder.read("a.csv", "id,x\n007,NA\n8,1\n")
    before = {path: path.stat().st_mtime_ns for path in files(folder.cache)}
    monkeypatch.setattr(convert, "_tables", None)  # not called again
    assert folder.read("a.csv") == first
    assert {path: path.stat().st_mtime_ns for path in files(folder.cache)} == before


def test_it_is_converted_again_when_it_changes(folder: Folder) -> None:
    first = folder.read("a.csv", CSV)
    folder.write("a.csv", "id,name\n1,x\n2,y\n")
    second = folder.read("a.csv")
    assert len(second.rows) == 2
    assert second.table.mark != first.table.mark
    # A process that still reads what held before can go on.
    assert load(first.table).rows == first.rows
    folder.write("a.csv", "id,name\n1,x\n2,y\n3,z\n")
    folder.read("a.csv")
    assert not os.path.exists(first.table.parquet[0])


def test_it_is_converted_again_when_its_settings_change(folder: Folder) -> None:
    first = folder.read("a.csv", CSV)
    second = folder.read("a.csv", types={"id": "string"})
    assert second.rows == [("1", "x")]
    assert second.table.mark != first.table.mark
    assert folder.read("a.csv").table.mark == first.table.mark


def test_a_replaced_file_of_the_same_size_and_time_is_noticed(folder: Folder) -> None:
    path = folder.write("a.csv", CSV)
    first = folder.read("a.csv")
    times = path.stat()
    other = folder.write("new", CSV.replace("x", "y"))
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(path)
    assert folder.read("a.csv").rows == [(1, "y")]
    assert folder.read("a.csv").table.mark != first.table.mark


def test_the_mark_of_parquet_in_place_changes_with_it(folder: Folder) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1]}), folder.path / "a.parquet")
    first = folder.find()[0][0]
    pq.write_table(pa.table({"x": [1, 2]}), folder.path / "a.parquet")
    assert folder.find()[0][0].mark != first.mark


def test_the_cache_is_private_and_nothing_is_written_beside_the_file(folder: Folder) -> None:
    folder.read("a.csv", "café\nx\n".encode("latin-1"))
    assert [path.name for path in files(folder.path)] == ["a.csv"]
    for path in folder.cache.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE(folder.cache.stat().st_mode) == 0o700
    assert sorted(path.name for path in files(folder.cache)) == ["0.parquet", "current.json"]


def test_a_damaged_cache_is_made_anew(folder: Folder) -> None:
    first = folder.read("a.csv", CSV)
    record = next(folder.cache.rglob("current.json"))
    record.write_text("{")
    assert folder.read("a.csv").rows == first.rows
    os.unlink(first.table.parquet[0])
    assert folder.read("a.csv").rows == first.rows
    json.loads(record.read_text())


def test_leftovers_of_killed_processes_are_removed(folder: Folder) -> None:
    folder.read("a.csv", CSV)
    home = next(folder.cache.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    left = home / f"work-{int(done.stdout)}-x"
    left.mkdir()
    (left / "utf8").write_text("private")
    folder.read("a.csv")
    assert left.exists()  # it may be at work in another container
    for path in (left / "utf8", left):
        os.utime(path, (1, 1))
    folder.read("a.csv")
    assert not left.exists()


def test_an_unreadable_file_is_not_read_again_until_it_changes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = folder.reason("a.json", b'{"a": ')
    assert [path.name for path in files(folder.cache)] == ["current.json"]
    with monkeypatch.context() as patch:
        patch.setattr(convert, "_tables", None)  # not called again
        assert folder.reason("a.json") == reason
    assert folder.read("a.json", b'{"a": 1}').rows == [(1,)]


def test_a_file_that_changes_while_it_is_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder.write("a.csv", CSV)
    tables, changes = convert._tables, [1]

    def changing(*arguments: object) -> object:
        result = tables(*arguments)  # type: ignore[arg-type]
        if changes:
            path.write_text(CSV + f"{changes.pop()},y\n")
        return result

    monkeypatch.setattr(convert, "_tables", changing)
    assert len(folder.read("a.csv").rows) == 2
    path.write_text(CSV)
    changes.extend([5, 66, 777, 8888])
    assert "changed while it was read" in folder.reason("a.csv")


def test_a_full_disk_is_an_error_that_says_so(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder.write("a.csv", CSV)
    monkeypatch.setattr(convert, "write_parquet", full)
    with pytest.raises(SourceError, match="No space left") as caught:
        folder.find("a.csv")
    assert "cache" in caught.value.hint


def test_a_cache_that_cannot_be_made(folder: Folder) -> None:
    path = folder.write("a.csv", CSV)
    with pytest.raises(SourceError, match="cannot be converted into"):
        find_tables(str(path), OpenOptions(cache=path / "cache"))


def test_several_may_convert_at_the_same_time(folder: Folder) -> None:
    folder.write("a.csv", "id,name\n" + "".join(f"{i},n{i}\n" for i in range(20_000)))

    def one(_: int) -> int:
        return len(load(folder.find("a.csv")[0][0]).rows)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(8))) == [20_000] * 8
    assert len(files(folder.cache)) == 2


def test_conversions_of_files_that_are_gone_are_removed_after_a_week(folder: Folder) -> None:
    folder.read("a.csv", CSV)
    folder.read("b.csv", CSV)
    (folder.path / "a.csv").unlink()
    folder.read("b.csv")
    assert len(list(folder.cache.iterdir())) == 2
    for record in folder.cache.rglob("current.json"):
        os.utime(record, (1, 1))
    store.remove_orphans(folder.cache)
    assert len(list(folder.cache.iterdir())) == 1
