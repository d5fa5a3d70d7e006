"""Shell completion: commands, flags, paths, and tables of an index that exists.

The commands of docs/doctor.md are run here.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from dbrag.interfaces.cli import complete
from dbrag.interfaces.cli.app import cli as group
from dbrag.interfaces.cli.complete import VARIABLE
from dbrag.interfaces.cli.completion import INSTALL
from dbrag.interfaces.cli.options import Run
from tests.conftest import connect
from tests.test_architecture import HEAVY


def offered(*words: str | Path) -> list[str]:
    """What is offered for the last word; paths as ``<file>``."""
    *args, incomplete = map(str, words)
    kind = get_completion_class("zsh")
    made = kind(group, {"obj": Run()}, "dbrag", VARIABLE)
    items = made.get_completions(args, incomplete)
    return [item.value if item.type == "plain" else f"<{item.type}>" for item in items]


@pytest.fixture
def index(small_shop: Path, tmp_path: Path) -> Path:
    with connect(small_shop, index=tmp_path / "index") as database:
        database.index()
    return tmp_path / "index"


def test_commands_and_flags() -> None:
    assert {"doctor", "demo"} <= set(offered("d")) <= set(group.commands)
    assert set(offered("")) == set(group.commands)
    assert offered("completion", "") == ["bash", "zsh", "fish"]
    assert set(offered("ask", "--ma")) == {"--max-rows"}
    assert offered("models", "pu") == ["pull"]
    assert "qwen2.5-coder-1.5b" in offered("models", "pull", "q")
    assert offered("ask", "--model", "local:") == ["local:qwen2.5-coder-1.5b"]
    assert offered("ask", "q", "more") == []


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("-s", "da"), "<file>"),
        (("ask", "--source", ""), "<file>"),
        (("sql", "--csv", "o"), "<file>"),
        (("ask", "--index", "x"), "<dir>"),
        (("ask", "--config", ""), "<file>"),
    ],
)
def test_paths(words: tuple[str, ...], kind: str) -> None:
    assert offered(*words) == [kind]


def test_tables_of_the_index(small_shop: Path, index: Path) -> None:
    at = ("-s", small_shop, "--index", index)
    assert offered("ask", *at, "--tables", "o") == ["order lines", "order_sizes", "orders"]
    assert offered("ask", *at, "--tables", "small shop.c") == ["small shop.customers"]
    # A second value, before there is a question, and after there seems to be one.
    assert offered("ask", *at, "--tables", "orders", "cu") == ["customers"]
    assert offered("ask", *at, "--tables", "orders", "customers", "order ") == ["order lines"]
    assert "--exclude" in offered("ask", *at, "--tables", "orders", "--e")
    assert offered("search", *at, "--exclude", "CU") == ["customers"]
    assert offered("joins", *at, "orders", "cu") == ["customers"]
    assert offered("index", *at, "--drop", "s") == ["small shop"]
    assert offered("ask", *at, "cu") == []  # a question


def test_the_index_of_the_settings(small_shop: Path) -> None:
    with connect(small_shop) as database:
        database.index()
    assert offered("ask", "-s", small_shop, "--tables", "cu") == ["customers"]
    Path("dbrag.toml").write_text(f'sources = ["{small_shop}"]')
    assert offered("ask", "--tables", "cu") == ["customers"]


def test_without_an_index_nothing_is_offered(small_shop: Path, tmp_path: Path) -> None:
    assert offered("ask", "-s", small_shop, "--tables", "") == []
    assert offered("ask", "--tables", "") == []
    Path("dbrag.toml").write_text("vots = 1")
    assert offered("ask", "--tables", "") == []
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "manifest.json").write_text("{")
    assert offered("ask", "--index", tmp_path / "bad", "--tables", "") == []
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("shell", sorted(INSTALL))
def test_the_script(cli, shell: str) -> None:
    done = cli("completion", shell)
    assert done.code == 0
    assert f"{VARIABLE}={shell}_complete" in done.out
    assert "%(" not in done.out
    assert f"dbrag completion -q {shell}" in done.err
    quiet = cli("completion", "-q", shell)
    assert (quiet.out, quiet.err) == (done.out, "")
    value = cli("completion", shell, "--json").json
    assert value["script"].rstrip("\n") == done.out.rstrip("\n")
    assert value["install"] == INSTALL[shell]


def test_usage(cli) -> None:
    assert cli("completion").code == 2
    done = cli("completion", "tcsh")
    assert done.code == 2
    assert "'bash', 'zsh', 'fish'" in done.err


HOSTILE = (
    "cust$(touch pwned)",
    "cust`touch pwned`",
    'cu"st',
    "cu'st",
    "cust!x",
    "cust\\x",
    "cust a",
)


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ('--tables\n"cu', ["cust a"]),
        ("--tables\n'cu", ["cust a"]),
        ("--tables\n$'cu", ["cust a"]),
        ('--tables\ncu"', ["cust a"]),
        ('--tables\n"cu"', ["cust a"]),
        ("--tables\ncu", sorted(shlex.quote(name) for name in HOSTILE if "\\" not in name)),
        ("'a\nb'\ncu", sorted(shlex.quote(name) for name in HOSTILE if "\\" not in name)),
    ],
)
def test_bash_runs_no_name(monkeypatch: pytest.MonkeyPatch, typed: str, names: list[str]) -> None:
    """A name that is put between quotes which the user typed may not be a command there."""
    monkeypatch.setenv(VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"dbrag\nask\n{typed}")
    monkeypatch.setenv("COMP_CWORD", "3" if typed.startswith("--") else "4")
    assert [item.value for item in complete._items(list(HOSTILE), "cu")] == names


SCRIPT = """
source "$1"
COMP_WORDS=(dbrag ask -s "$2" --index "$3" --tables ord)
COMP_CWORD=7
_dbrag_completion dbrag
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_in_a_real_bash(cli, small_shop: Path, index: Path, tmp_path: Path) -> None:
    (tmp_path / "dbrag.bash").write_text(cli("completion", "-q", "bash").out)
    command = tmp_path / "bin" / "dbrag"
    command.parent.mkdir()
    run = "from dbrag.interfaces.cli import main; sys.exit(main())"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "import sys; {run}" "$@"\n')
    command.chmod(0o755)
    link = tmp_path / "shop.db"
    link.symlink_to(small_shop)
    done = subprocess.run(
        ["bash", "-c", SCRIPT, "-", tmp_path / "dbrag.bash", link, index],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"},
    )
    assert done.stdout.splitlines() == ["'order lines'", "order_sizes", "orders"]
    assert done.stderr == ""


def test_completing_loads_nothing_heavy(small_shop: Path, index: Path) -> None:
    code = (
        "from dbrag.interfaces.cli import main; import sys; assert main([]) == 0; "
        "print(*sys.modules, file=sys.stderr)"
    )
    words = f"dbrag ask --index {index} --tables ord"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, VARIABLE: "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "5"},
    )
    assert "plain,orders" in done.stdout
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert not loaded & (HEAVY - {"platformdirs"})
