"""The running server keeps what its OpenAPI document promises: random requests, few in CI."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[3] / "bench" / "serve_fuzz.py"


def test_random_requests_find_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH), "--cases", "6", "--quick"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "bugs in the log: 0" in done.stdout
    generated = re.search(r"(\d+) generated", done.stdout)
    assert generated
    assert 50 < int(generated[1]) <= 200
