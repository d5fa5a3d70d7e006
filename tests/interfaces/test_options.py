"""Flags before and after the command, lists of tables, and the settings they become."""

from __future__ import annotations

import pytest

from dbrag.interfaces.cli.app import cli as group
from dbrag.interfaces.cli.options import Run


def test_flags_before_and_after(cli, fake) -> None:
    cli("-s", "a.db", "--model", "x:old", "ask", "q", "-s", "b=b.db", "--model", "x:new")
    assert fake.settings.sources == ("a.db", "b=b.db")
    assert fake.settings.model == "x:new"
    cli("--index", "one", "ask", "q")
    assert fake.settings.index == "one"


def test_the_file_and_the_environment(cli, fake, tmp_path, monkeypatch) -> None:
    config = tmp_path / "mine.toml"
    config.write_text("top = 7\nvotes = 2\n")
    monkeypatch.setenv("DBRAG_VOTES", "4")
    cli("ask", "q", "-s", "a.db", "--config", config)
    assert (fake.settings.top, fake.settings.votes) == (7, 4)
    done = cli("ask", "q", "-s", "a.db", "--config", tmp_path / "none.toml")
    assert done.code == 2
    assert "none.toml" in done.err


def test_an_index_alone_is_enough(cli, fake) -> None:
    assert cli("status", "--index", "folder").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["q", "--tables", "a", "b"],
        ["--tables", "a", "b", "q"],
        ["--tables", "a", "--tables", "b", "q"],
        ["--tables", "a", "--votes", "3", "q", "--tables", "b"],
        ["--votes", "3", "--tables", "a", "b", "q"],
        ["--tables", "a", "b", "--explain", "q"],
        ["-s", "c.db", "q", "--tables", "a", "b", "--dry-run"],
        ["--tables", "a", "b", "--", "q"],
        ["q", "--tables=a", "--tables=b"],
    ],
)
def test_tables_take_several_values(cli, fake, arguments) -> None:
    done = cli("ask", "-s", "a.db", *arguments)
    assert done.code == 0, done.err
    assert fake.calls[0][1]["question"] == "q"
    assert fake.calls[0][1]["tables"] == ("a", "b")


def test_tables_and_exclude(cli, fake) -> None:
    cli("ask", "-s", "a.db", "q", "--tables", "a", "b", "--exclude", "c", "d")
    assert fake.calls[0][1]["tables"] == ("a", "b")
    assert fake.calls[0][1]["exclude"] == ("c", "d")
    cli("ask", "-s", "a.db", "--tables", "a", "--exclude", "c", "d", "q")
    assert fake.calls[1][1]["exclude"] == ("c", "d")


def test_one_table_and_no_question(cli, fake) -> None:
    done = cli("ask", "-s", "a.db", "--tables", "a")
    assert done.code == 2
    assert "QUESTION" in done.err


def test_every_command_takes_the_common_flags() -> None:
    names = {"sources", "index", "config", "model", "json", "quiet", "verbose"}
    assert names <= set(Run.__dataclass_fields__)
    commands = dict(group.commands)
    for name in ("models", "eval"):
        commands |= {f"{name} {k}": c for k, c in commands[name].commands.items()}
    for name, command in commands.items():
        given = {parameter.name for parameter in command.params}
        assert names <= given, name
        assert command.help
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.help, (name, parameter.name)
