"""Indexing what is large: a PostgreSQL with 2,000 tables, a folder of 100 million Parquet rows.

    python bench/index_server.py postgres postgresql://root@127.0.0.1/postgres
    python bench/index_server.py parquet /tmp/parquet --rows 100_000_000
    … --scale 0.05          # a twentieth of it
    … --hash-encoder        # without the real encoder: reading and full text only

``postgres`` creates a database of its own beside the one named, fills it, indexes it twice
(the second time after one changed row) and drops it. ``parquet`` writes the files (once),
indexes the folder, and compares COUNT and SUM over all rows with what was written.
Prints one JSON object per step.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCHEMAS, TABLES = 20, 2_000
LARGE_ROWS = (1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000)
TOPICS = ("orders", "customers", "items", "visits", "invoices", "sensors", "payments", "teams")
FILES = 20
GROUP = 500_000

HASHED = """
import json, sys, dbrag
from dbrag.models.testing import HashEmbedder
with dbrag.connect(sys.argv[1], index=sys.argv[2], embedder=HashEmbedder()) as database:
    print(json.dumps(database.index().to_dict()))
"""


def main() -> None:
    """Parse arguments and run one mode."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=("postgres", "parquet"))
    parser.add_argument("place", help="URL of a server, or folder for the files")
    parser.add_argument("--rows", type=lambda text: int(text.replace("_", "")), default=100_000_000)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--hash-encoder", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the database")
    options = parser.parse_args()
    (postgres if options.mode == "postgres" else parquet)(options)


def say(step: str, **facts: Any) -> None:
    """One line of the record."""
    print(json.dumps({"step": step, **facts}), flush=True)


def index(source: str, directory: str, options: argparse.Namespace) -> dict[str, Any]:
    """Index in a process of its own, so that its peak memory is its own."""
    cli = ["-m", "dbrag.interfaces.cli", "index", "--json", "-s", source, "--index", directory]
    arguments = ["-c", HASHED, source, directory] if options.hash_encoder else cli
    done = subprocess.run(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def say_index(step: str, report: dict[str, Any]) -> None:
    """The figures of an indexing run."""
    (source,) = report["sources"]
    facts = {name: report[name] for name in ("seconds", "peak_mb", "bytes")}
    names = ("status", "tables", "tables_read", "rows", "rows_indexed", "sampled", "reason")
    say(step, **facts, **{name: source[name] for name in names}, read_s=source["seconds"])


def ask(source: str, sql: str) -> list[Any]:
    """The first row of a statement, through the command line."""
    cli = [sys.executable, "-m", "dbrag.interfaces.cli", "sql", "--json", "-s", source, sql]
    done = subprocess.run(cli, stdout=subprocess.PIPE, text=True, check=True)
    row: list[Any] = json.loads(done.stdout)["rows"][0]
    return row


def postgres(options: argparse.Namespace) -> None:
    """2,000 tables in 20 schemas, five of them large."""
    import psycopg
    from sqlalchemy.engine import make_url

    server = make_url(options.place).set(drivername="postgresql")
    name = f"dbrag_bench_{secrets.token_hex(4)}"
    url = server.set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(server.render_as_string(hide_password=False), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        directory = tempfile.mkdtemp(prefix="dbrag-bench-")
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                changed = fill(connection, options.scale)
                time.sleep(12)  # until the server's counters are written
                say_index("index", index(url, directory, options))
                say_index("index again, nothing changed", index(url, directory, options))
                connection.execute(f"UPDATE {changed} SET amount = amount + 1 WHERE id = 1")
                time.sleep(12)  # until the server's counters are written
                say_index(f"index after one row of {changed}", index(url, directory, options))
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            if not options.keep:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]


def fill(connection: Any, scale: float) -> str:
    """Make the tables; the name of a small one."""
    started = time.perf_counter()
    tables, total = max(SCHEMAS, round(TABLES * scale)), 0
    large = {SCHEMAS * i + i: round(rows * scale) for i, rows in enumerate(LARGE_ROWS)}
    for schema in range(SCHEMAS):
        connection.execute(f"CREATE SCHEMA area_{schema:02}")
    for i in range(tables):
        name = f"area_{i % SCHEMAS:02}.{TOPICS[i % len(TOPICS)]}_{i:04}"
        rows = large.get(i, 20 + (i * 37) % 1_000)
        total += rows
        connection.execute(
            f"CREATE TABLE {name} (id integer PRIMARY KEY, place text, made timestamptz, "
            f"amount numeric(12,2), note varchar(80))"
        )
        connection.execute(
            f"INSERT INTO {name} SELECT n, 'place ' || n % {50 + i}, "
            f"timestamptz '2020-01-01' + n * interval '1 minute', (n % 10007) / 7.0, "
            f"'note {i} ' || md5(n::text) FROM generate_series(1, {rows}) n"
        )
    connection.execute("ANALYZE")
    say("filled", tables=tables, rows=total, seconds=round(time.perf_counter() - started, 1))
    return f"area_{7 % SCHEMAS:02}.{TOPICS[7 % len(TOPICS)]}_{7:04}"


def parquet(options: argparse.Namespace) -> None:
    """One table of many files, larger than memory."""
    rows = round(options.rows * options.scale)
    # A folder for each size: files are written once and used again.
    folder = Path(options.place) / f"rows_{rows}"
    expected = write_parquet(folder / "trips", rows)
    with tempfile.TemporaryDirectory(prefix="dbrag-bench-") as directory:
        say_index("index", index(str(folder), directory, options))
        say_index("index again, nothing changed", index(str(folder), directory, options))
    started = time.perf_counter()
    count, total = ask(str(folder), 'SELECT COUNT(*), SUM("amount") FROM "trips"')
    say(
        "COUNT and SUM over all rows",
        count=count,
        sum=total,
        exact=(int(count), int(total)) == expected,
        seconds=round(time.perf_counter() - started, 1),
    )


def write_parquet(folder: Path, rows: int) -> tuple[int, int]:
    """About 20 files, written in pieces; number of rows and sum of amounts."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    total, writer = 0, None
    per_file = -(-rows // FILES // GROUP) * GROUP
    for start in range(0, rows, GROUP):
        ids = np.arange(start, min(start + GROUP, rows), dtype=np.int64)
        amounts = ids * 7919 % 100_003
        total += int(amounts.sum())
        path = folder / f"part-{start // per_file:04}.parquet"
        if writer is None and path.exists():
            continue
        places = pa.DictionaryArray.from_arrays(
            pa.array((ids % 997).astype(np.int32)), pa.array([f"place {i}" for i in range(997)])
        )
        piece = pa.table({"id": ids, "amount": amounts, "place": places.cast(pa.string())})
        writer = writer or pq.ParquetWriter(path.with_suffix(".part"), piece.schema)
        writer.write_table(piece, row_group_size=GROUP)
        if (start + GROUP) % per_file == 0 or start + GROUP >= rows:
            writer.close()
            path.with_suffix(".part").rename(path)
            writer = None
    files = list(folder.glob("*.parquet"))
    size = sum(file.stat().st_size for file in files)
    say("written", rows=rows, files=len(files), mb=size >> 20,
        seconds=round(time.perf_counter() - started, 1))  # fmt: skip
    return rows, total


if __name__ == "__main__":
    main()
