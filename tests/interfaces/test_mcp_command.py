"""The command line of ``dbrag mcp`` before anything is served."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import UsageError
from dbrag.interfaces.mcp.transports import http_options

NOTHING = """
import sys
for name in ("mcp", "mcp_types", "pydantic", "starlette", "uvicorn", "anyio"):
    sys.modules[name] = None  # an import then fails as if it were not installed
"""
RUN = NOTHING + "from dbrag.interfaces.cli import main; sys.exit(main(sys.argv[1:]))"


def python(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_without_the_extra(small_shop: Path) -> None:
    done = python(RUN, "mcp", "-s", small_shop)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "error: dbrag mcp needs packages that are not installed: mcp\n"
        "  try: pip install 'dbrag[mcp]'\n"
    )
    help_ = python(RUN, "mcp", "--help")
    assert help_.returncode == 0
    assert "--http" in help_.stdout


def test_its_modules_import_without_the_extra() -> None:
    code = NOTHING + (
        "import importlib, pkgutil, dbrag.interfaces.mcp as package\n"
        "names = [m.name for m in pkgutil.iter_modules(package.__path__)]\n"
        "for name in names: importlib.import_module(f'dbrag.interfaces.mcp.{name}')\n"
        "print(len(names))"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 8


def test_help_is_quick() -> None:
    code = (
        "from dbrag.interfaces.cli import main; assert main(['mcp', '--help']) == 0\n"
        "import sys\nprint(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    loaded = {name.split(".")[0] for name in python(code).stderr.split()}
    assert "dbrag" in loaded
    assert not loaded & {"mcp", "mcp_types", "pydantic", "starlette", "uvicorn", "anyio", "httpx"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--json"], "--json has nothing to print: standard output belongs to the protocol"),
        (["--token-file", "t"], "--token-file and --allow-host are for --http"),
        (["--allow-host", "x.example"], "--token-file and --allow-host are for --http"),
        (["--http", "nonsense"], "--http must be HOST:PORT or PORT, not 'nonsense'"),
        (["--http", "8322", "--request-timeout", "0"], "0.0 is not in the range"),
        (["--http", "example.org:8322"], "without a token nothing but this machine"),
    ],
)
def test_what_is_refused(cli: Any, small_shop: Path, given: list[str], told: str) -> None:
    import tests.interfaces.mcp_bed  # noqa: F401 - skips, or fails in CI, without the extra

    done = cli("mcp", "-s", small_shop, *given)
    assert done.code == 2
    assert told in done.err + done.out


def test_no_source(cli: Any) -> None:
    import tests.interfaces.mcp_bed  # noqa: F401 - skips, or fails in CI, without the extra

    done = cli("mcp")
    assert done.code == 2
    assert "no source is named" in done.err


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("8322", "127.0.0.1", 8322),
        ("0", "127.0.0.1", 0),
        ("localhost:1", "localhost", 1),
        ("127.0.0.5:8322", "127.0.0.5", 8322),
        ("[::1]:8322", "::1", 8322),
    ],
)
def test_addresses(address: str, host: str, port: int) -> None:
    options = http_options(address, None, (), 10.0)
    assert (options.host, options.port, options.token) == (host, port, None)


@pytest.mark.parametrize(
    "address",
    ["", ":8322", "::1:8322", "host", "1.2.3.4", "http://x:1", "x:99999", "x:-1", "[x]:1"],
)
def test_no_addresses(address: str) -> None:
    with pytest.raises(UsageError):
        http_options(address, None, (), 10.0)
    with pytest.raises(UsageError):
        http_options(address, None, ("a.example",), 10.0)
