"""Passwords from the environment or a command; shown nowhere."""

from __future__ import annotations

import sys

import pytest

from dbrag.errors import DbragError, SourceError, UsageError
from dbrag.options import SourceOptions
from dbrag.sources.servers import passwords
from dbrag.sources.servers.passwords import Password


def command(code: str) -> SourceOptions:
    return SourceOptions(password_command=f'{sys.executable} -c "{code}"')


def test_nothing_said_means_the_drivers_own_ways() -> None:
    assert Password("shop", None).get() is None
    assert Password("shop", SourceOptions()).get() is None


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    password = Password("shop", SourceOptions(password_env="SHOP_PASSWORD"))
    with pytest.raises(SourceError, match="'SHOP_PASSWORD' is not set") as caught:
        password.get()
    assert "export SHOP_PASSWORD" in caught.value.hint
    monkeypatch.setenv("SHOP_PASSWORD", " ä secret ")
    assert password.get() == " ä secret "


def test_from_a_command() -> None:
    assert Password("shop", command("print('  first '); print('second')")).get() == "  first "


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "e")
    options = SourceOptions(password_env="SHOP_PASSWORD", password_command="false")
    assert Password("shop", options).get() == "e"


def test_a_command_runs_without_a_shell(tmp_path: object) -> None:
    options = SourceOptions(password_command=f"echo a; touch {tmp_path}/made && $HOME")
    assert Password("shop", options).get() == f"a; touch {tmp_path}/made && $HOME"


def test_a_commands_answer_is_used_for_a_while(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    code = f"f = open('{tmp_path}/count', 'a+'); f.write('x'); f.seek(0); print(len(f.read()))"
    password = Password("shop", command(code))
    assert [password.get(), password.get()] == ["1", "1"]
    monkeypatch.setattr(passwords, "KEPT_S", 0.0)
    assert password.get() == "2"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (command("import sys; print('s3cret'); sys.exit(3)"), "status 3"),
        (command("import sys; sys.stderr.write('s3cret'); sys.exit(1)"), "status 1"),
        (command("print()"), "printed no password"),
        (command("print(); print('s3cret')"), "printed no password"),
        (command("import time; print('s3cret', flush=True); time.sleep(9)"), "longer than"),
        (SourceOptions(password_command="/no/such/program s3cret"), "No such file"),
    ],
)
def test_a_command_that_fails(
    monkeypatch: pytest.MonkeyPatch, options: SourceOptions, words: str
) -> None:
    monkeypatch.setattr(passwords, "COMMAND_S", 1.0)
    with pytest.raises(SourceError, match=words) as caught:
        Password("shop", options).get()
    error: BaseException | None = caught.value
    assert isinstance(error, DbragError)
    assert "password_command in [source.shop]" in error.message
    while error is not None:
        assert "s3cret" not in str(error)
        error = error.__cause__


@pytest.mark.parametrize("text", ["", "   ", "'unclosed"])
def test_a_command_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="is no command"):
        Password("shop", SourceOptions(password_command=text)).get()
