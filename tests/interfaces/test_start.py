"""``dbrag`` alone: the next command, by what there is, and at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dbrag.interfaces.cli import start
from dbrag.interfaces.cli.complete import VARIABLE
from dbrag.sources.files.names import DATA_EXTENSIONS
from dbrag.sources.kinds import DATABASE_EXTENSIONS
from tests.test_architecture import HEAVY


@pytest.fixture
def weights_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "missing_models", lambda settings: [])


def test_weights_come_first(cli) -> None:
    done = cli()
    assert done.code == 0
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[0] == "1. Fetch the model, once (1.14 GB):"
    assert lines[1] == "   dbrag models pull"
    assert lines[3] == "   dbrag demo"
    assert "dbrag doctor" in lines[-1]
    assert len(lines) <= 8


def test_a_missing_package_comes_before_its_weights(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert cli().out.splitlines()[1] == "   pip install 'dbrag[local]'"
    remote = cli("--model", "openai:x").out
    assert "dbrag[local]" not in remote
    assert "(23 MB)" in remote  # the encoder is here all the same


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ((), "dbrag demo"),
        (("notes.txt", ".hidden.csv", "~$a.xlsx"), "dbrag demo"),
        (("my sales.CSV",), "dbrag ask -s 'my sales.CSV' \"How many rows are there?\""),
        (("-a.csv",), 'dbrag ask -s ./-a.csv "How many rows are there?"'),
        (("a.csv", "b.db"), 'dbrag ask -s . "How many rows are there?"'),
        (("a.csv", "demo/shop.db"), 'dbrag ask -s demo/shop.db "How many customers'),
        (("a.csv", "dbrag.toml"), 'dbrag ask "How many rows are there?"'),
    ],
)
@pytest.mark.usefixtures("weights_here")
def test_what_is_here(cli, files: tuple[str, ...], command: str) -> None:
    for file in files:
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text('sources = ["a.csv"]' if file == "dbrag.toml" else "a\n1\n")
    lines = cli().out.splitlines()
    assert lines[1].strip().startswith(command)
    assert len(lines) == 4


@pytest.mark.usefixtures("weights_here")
def test_sources_that_are_named(cli, small_shop: Path) -> None:
    line = cli("-s", small_shop, "--index", "my index").out.splitlines()[1]
    assert line.strip().startswith(f"dbrag ask -s '{small_shop}' --index 'my index' \"")
    hidden = cli("-s", "postgresql://me:geheim@h/d").out
    assert "postgresql://me@h/d" in hidden
    assert "geheim" not in hidden


def test_wrong_settings_are_told(cli) -> None:
    Path("dbrag.toml").write_text("vots = 3")
    done = cli()
    assert done.code == 2
    assert "unknown setting 'vots'" in done.err


def test_the_endings_are_those_that_are_read() -> None:
    assert set(start.ENDINGS) == {*DATA_EXTENSIONS, *DATABASE_EXTENSIONS}


@pytest.mark.parametrize("order", ["", "bash_source"])
def test_nothing_heavy_is_loaded(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if order:
        monkeypatch.setenv(VARIABLE, order)
    code = (
        "from dbrag.interfaces.cli import main; import sys; assert main([]) == 0; "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert not {name.split(".")[0] for name in done.stderr.split()} & HEAVY
