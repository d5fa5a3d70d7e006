"""The HTTP API against its OpenAPI document, tried by schemathesis on a running server.

    python bench/serve_fuzz.py --cases 100            # of each of 27 operations and kind
    python bench/serve_fuzz.py --cases 5 --quick      # random cases only: what CI does

The server runs on a free port over the demo shop, with a scripted model. Every response has
to be as described: no 5xx, no undocumented status, type or body, nothing valid refused,
nothing invalid taken. Exit code 0: nothing found.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from dbrag.demo import write_demo

HERE = Path(__file__).parent
# A question may name a table that does not exist, a statement may be no SQL: what is well
# formed may still be answered by these.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "404", "409", "422"]
"""


@contextmanager
def demo_server(folder: Path, *flags: str, think_s: float = 0.0) -> Iterator[tuple[str, int]]:
    """URL and process id of a server over the demo shop; ``folder`` gets index and log."""
    shop = write_demo(folder / "shop.db").path
    command = [sys.executable, str(HERE / "serve_demo.py"), "--think", str(think_s), "serve"]
    command += ["-s", str(shop), "--index", str(folder / "index"), "--port", "0", "--json"]
    environ = {**os.environ, "DBRAG_LEARNED": str(folder / "learned.sql")}
    with (folder / "log.jsonl").open("w") as log:
        process = subprocess.Popen(
            [*command, "--rate", "0", *flags],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environ,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            sys.exit((folder / "log.jsonl").read_text())
        url = json.loads(line)["url"]
        _wait_for_the_index(url)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(60)


def _wait_for_the_index(url: str) -> None:
    while httpx.get(f"{url}/api/v1/ready", timeout=60).status_code != 200:
        time.sleep(0.1)


def bugs(log: Path) -> list[str]:
    """Lines of the log that tell of a bug."""
    lines = log.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if '"event": "bug"' in line]


def main() -> int:
    """Run it; 0 when nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("more", nargs="*", help="further arguments of `st run`")
    arguments = parser.parse_args()
    phases = "fuzzing" if arguments.quick else "examples,coverage,fuzzing,stateful"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "schemathesis.toml").write_text(CONFIG)
        with demo_server(folder, "--request-timeout", "30") as (url, _):
            command = [sys.executable, "-m", "schemathesis.cli"]
            command += ["--config-file", str(folder / "schemathesis.toml"), "run"]
            command += [f"{url}/api/v1/openapi.json", "--wait-for-schema", "60"]
            command += ["--phases", phases, "-n", str(arguments.cases), "--no-color"]
            command += ["--seed", str(arguments.seed), "--generation-database", "none"]
            command += ["--request-timeout", "60", "--checks", "all", *arguments.more]
            code = subprocess.run(command, cwd=folder, check=False).returncode
        found = bugs(folder / "log.jsonl")
    print(f"bugs in the log: {len(found)}", *found[:3], sep="\n")
    return code or bool(found)


if __name__ == "__main__":
    sys.exit(main())
