"""dbrag without its extras: everything imports, and what is missing is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BLOCK = """
import sys
for name in ("xllamacpp", "pydantic_ai", "pandas", "openai", "pytest", "hypothesis"):
    sys.modules[name] = None  # an import then fails as if it were not installed
"""
IMPORT_ALL = (
    BLOCK
    + """
import importlib, pkgutil, dbrag
names = [m.name for m in pkgutil.walk_packages(dbrag.__path__, "dbrag.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
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
