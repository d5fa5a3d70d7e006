"""Messages name only commands, flags and settings that exist."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import dbrag
from dbrag.interfaces.cli.app import cli
from dbrag.settings import Settings

ROOT = Path(dbrag.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
# Of other programs: hf download, pip install.
FOREIGN = {"--local-dir", "--force-reinstall"}
# What stands behind dbrag in sentences.
PROSE = {"connects", "do", "in", "itself", "only", "reads", "that", "trace"}
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
_CSS_VARIABLE = re.compile(r"\bvar\(--[\w-]+")
_COMMAND = re.compile(r"(?<!\.)\bdbrag ([a-z]+)(?: ([a-z]+)\b)?(?=[ :;,.)\"'{]|$)")


def texts(path: Path) -> Iterator[str]:
    """All texts of a module but its docstrings, f-strings with their gaps as ``{}``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and type(node.value) is str and id(node) not in inner:
            yield node.value


def commands(command: click.Command, name: str = "") -> dict[str, click.Command]:
    """Every command by the words after ``dbrag``."""
    found = {name: command} if name else {}
    if isinstance(command, click.Group):
        for word, inner in command.commands.items():
            found |= commands(inner, f"{name} {word}".strip())
    return found


COMMANDS = commands(cli)
FLAGS = {
    flag
    for command in [cli, *COMMANDS.values()]
    for parameter in command.params
    for flag in [*parameter.opts, *parameter.secondary_opts]
} | {"--help"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_flags_and_commands_exist(path: Path) -> None:
    for text in texts(path):
        flags = set(_FLAG.findall(_CSS_VARIABLE.sub("", text)))
        unknown = flags - FLAGS - FOREIGN
        assert not unknown, (text, unknown)
        for first, second in _COMMAND.findall(text):
            if first not in PROSE:
                assert first in COMMANDS, text
                if isinstance(COMMANDS[first], click.Group) and second:
                    assert f"{first} {second}" in COMMANDS, text


SECRETS = ("API_TOKEN",)
"""Variables that are no settings: a secret belongs in no file that is read otherwise."""


def test_variables_of_the_environment_are_settings() -> None:
    names = {field.name for field in dataclasses.fields(Settings)}
    for path in FILES:
        for text in texts(path):
            for name in re.findall(r"\bDBRAG_([A-Z][A-Z_]*[A-Z])\b", text):
                assert name.lower() in names or name in SECRETS, (path, text)


def test_the_test_sees_what_it_looks_for() -> None:
    assert {"--rerank", "--no-rerank", "--force", "-s"} <= FLAGS
    assert "models cache" in COMMANDS
    assert _FLAG.findall("use it (--encoder), or --no-x; a--b, ---") == ["--encoder", "--no-x"]
    assert _COMMAND.findall("dbrag index --force, then dbrag models pull; dbrag no") == [
        ("index", ""),
        ("models", "pull"),
        ("no", ""),
    ]
