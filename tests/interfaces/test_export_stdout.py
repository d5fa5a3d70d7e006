"""``--csv -``: the whole result on standard output, and nothing else there."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import an_answer

RUN = "import sys; from dbrag.interfaces.cli import main; sys.exit(main(sys.argv[1:]))"
NUMBERS = (
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {}) "
    "SELECT n, 'ä' || n AS t FROM c"
)


def test_only_the_rows(cli, small_shop: Path) -> None:
    done = cli("sql", "-s", small_shop, NUMBERS.format(1000), "--csv", "-")
    assert done.code == 0
    rows = list(csv.reader(io.StringIO(done.out)))
    assert len(rows) == 1001
    assert rows[-1] == ["1000", "ä1000"]
    assert "sql: " in done.err  # what there is to say is said elsewhere
    assert not Path("-").exists()
    quiet = cli("sql", "-s", small_shop, "SELECT 1 AS n", "--csv", "-", "-q")
    assert (quiet.out, quiet.err) == ("n\n1\n", "")


def test_of_an_answer(cli, fake) -> None:
    done = cli("ask", "-s", "a.db", "q", "--csv", "-", "--parquet", "a.pq")
    assert done.out == "name,n\nrow 0,0\nrow 1,1\nrow 2,2\n"
    assert "agreement: " in done.err
    assert "3 rows written to" in done.err
    fake.result = an_answer(
        execution=None, status="failed", exit_code=1, error={"code": "x", "message": "no"}
    )
    failed = cli("ask", "-s", "a.db", "q", "--csv", "-")
    assert (failed.code, failed.out) == (1, "")
    assert "error: no" in failed.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--csv", "-", "--json"), "both want standard output"),
        (("--parquet", "-"), "name a file"),
        (("--csv", "/dev/stdout", "--json"), "both want standard output"),
        (("--parquet", "/dev/stdout"), "name a file"),
        (("--csv", "/dev/full"), "is not a file"),
        (("--csv", "a" * 300), "cannot write"),
    ],
)
def test_what_cannot_be(cli, small_shop: Path, flags: tuple[str, ...], words: str) -> None:
    done = cli("sql", "-s", small_shop, "SELECT 1", *flags)
    assert done.code == 2
    assert words in done.err + done.out
    assert "Traceback" not in done.err


def test_bytes_are_utf_8_whatever_the_locale(small_shop: Path) -> None:
    statement = "SELECT name FROM customers WHERE customer_id = 3"
    done = subprocess.run(
        [sys.executable, "-c", RUN, "sql", "-s", small_shop, statement, "--csv", "/dev/stdout"],
        capture_output=True,
        timeout=300,
        check=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
    )
    assert done.stdout.decode("utf-8") == "name\n李雷\n"


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_a_reader_that_goes_away(small_shop: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "sql", "-s", small_shop, NUMBERS.format(200_000), "--csv", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"n,t\n"
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=300) == 1
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device(small_shop: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                RUN,
                "sql",
                "-s",
                small_shop,
                NUMBERS.format(9999),
                "--csv",
                "-",
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 1
    assert "cannot write the output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
