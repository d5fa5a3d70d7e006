"""A token file that others may read is told of at the start, and used all the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dbrag.interfaces.http.token_file import exposure
from tests.interfaces.http.conftest import TOKEN
from tests.interfaces.http.test_serve_command import serving, wait_ready

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")


def written(path: Path, mode: int) -> str:
    path.write_text(f"{TOKEN}\n")
    path.chmod(mode)
    return str(path)


@POSIX
@pytest.mark.parametrize("mode", [0o644, 0o604, 0o444, 0o666])
def test_every_user_may_read_it(tmp_path: Path, mode: int) -> None:
    file = written(tmp_path / "my token", mode)
    said = f"warning: every user may read the token in {file!r} (mode {mode:04o}): "
    assert exposure(file) == f"{said}chmod 600 '{file}'"


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o660, 0o602])
def test_others_may_not(tmp_path: Path, mode: int) -> None:
    assert exposure(written(tmp_path / "token", mode)) is None


@POSIX
def test_a_link_is_as_open_as_its_file(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(written(tmp_path / "token", 0o600))
    assert exposure(str(link)) is None
    (tmp_path / "token").chmod(0o644)
    assert exposure(str(link)) is not None


@POSIX
def test_the_command_names_the_file_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = written(tmp_path / "token", 0o644)
    assert str(exposure("~/token")).endswith(f"chmod 600 {file}")


@POSIX
def test_what_is_no_file_keeps_nothing(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    fifo.chmod(0o644)
    assert exposure(str(fifo)) is None
    assert exposure(str(tmp_path / "none")) is None
    assert exposure(None) is None


def test_nothing_is_said_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "token", 0o644)
    monkeypatch.setattr(os, "name", "nt")
    said = exposure(file)
    monkeypatch.undo()
    assert said is None


@POSIX
@pytest.mark.parametrize(
    ("mode", "flags", "warned"), [(0o644, (), True), (0o600, (), False), (0o644, ("-q",), False)]
)
def test_serve_says_so_at_the_start(
    shop: Path, index: Path, tmp_path: Path, mode: int, flags: tuple[str, ...], warned: bool
) -> None:
    file = written(tmp_path / "token", mode)
    with serving(shop, index, "--token-file", file, *flags) as (process, told):
        assert told["token"] is True
        wait_ready(told["url"])
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert [line for line in err.splitlines() if "token" in line] == (
        [exposure(file)] if warned else []
    )
    assert TOKEN not in err
