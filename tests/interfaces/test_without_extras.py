"""dbrag without its extras: everything imports, and what is missing is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BLOCK = """
import sys
SERVE = ("fastapi", "starlette", "pydantic", "uvicorn", "h11", "prometheus_client", "vl_convert")
OTHERS = ("xllamacpp", "pydantic_ai", "pandas", "openai", "pytest", "hypothesis")
for name in (*OTHERS, *SERVE):
    sys.modules[name] = None  # an import then fails as if it were not installed
"""
IMPORT_ALL = (
    BLOCK
    + """
import importlib, pkgutil, dbrag
names = [m.name for m in pkgutil.walk_packages(dbrag.__path__, "dbrag.")]
for name in names:
    if not name.endswith("__main__"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:  # the server is made of what the extra brings
            missing = str(error.name).partition(".")[0]
            if not (name.startswith("dbrag.interfaces.http.") and missing in SERVE):
                raise
print(len(names))
"""
)
RUN = BLOCK + "from dbrag.interfaces.cli import main; sys.exit(main(sys.argv[1:]))"


def python(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_module_imports() -> None:
    done = python(IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30


def test_commands_that_need_no_model() -> None:
    assert python(RUN, "--help").returncode == 0
    assert python(RUN, "demo").returncode == 0
    assert python(RUN, "models", "list").returncode == 0


def test_a_missing_extra_is_named() -> None:
    done = python(RUN, "models", "check", "--model", "openai:gpt-x")
    assert done.returncode == 5
    assert "remote" in done.stderr
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr


def test_serving_names_the_extra() -> None:
    done = python(RUN, "serve", "--port", "0", "-s", "shop.db")
    assert done.returncode == 2
    assert "fastapi, uvicorn, prometheus_client, vl_convert" in done.stderr
    assert "pip install 'dbrag[serve]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert python(RUN, "serve", "--help").returncode == 0
