"""A planted password is found nowhere: index, cache, trace, logs, screen, JSON."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dbrag
from dbrag import scope
from dbrag.database import connect
from dbrag.interfaces.cli import main
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.settings import Settings

from .servers import mysql, postgres  # noqa: F401  fixtures

if TYPE_CHECKING:
    from .servers import TestDatabase

PASSWORD = "Zx9-planted-7Quokka"
FORMS = (PASSWORD, "planted-7Quokka", "Zx9%2Dplanted")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FunctionModel:
    """The fakes behind the command line."""
    fake = FunctionModel(lambda _: "SELECT COUNT(*) FROM stores")

    def with_fakes(*, settings: Settings) -> Any:
        return connect(settings=settings, chat_model=fake, embedder=HashEmbedder())

    monkeypatch.setitem(vars(dbrag), "connect", with_fakes)
    return fake


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def run_all(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> tuple[list[int], str]:
    """Every command, talkative; the exit codes and all that was said anywhere."""
    caplog.set_level(logging.DEBUG)
    index = ["--index", str(tmp_path / "index")]
    commands = [
        ["index", "-s", url, "-v"],
        ["index", "-s", f"named={url}", "--json", *index],
        ["ask", "-s", url, "How many stores are there?", "-v", "--explain", "--trace", "t.json"],
        ["ask", "-s", url, "How many stores?", "--json", "--trace", "u.json", *index],
        ["sql", "-s", url, "SELECT nothing FROM nowhere", "-v"],
        ["sql", "-s", url, "SELECT COUNT(*) FROM stores", "--json", "--csv", "a.csv"],
        ["search", "-s", url, "stores", "--explain", "-v"],
        ["status", "-s", url, "--json"],
        ["status", "-s", url],
        ["status", "--json", *index],
    ]
    codes = [main(command) for command in commands]
    out, err = capsys.readouterr()
    said = out + err + caplog.text + "".join(repr(vars(record)) for record in caplog.records)
    return codes, said


def check(said: str, tmp_path: Path, model: FunctionModel) -> None:
    said += "".join(prompt.text() for prompt in model.prompts)
    assert not [form for form in FORMS if form in said]
    for file in tmp_path.rglob("*"):
        assert not [form for form in FORMS if form in str(file)]
        if file.is_file():
            content = file.read_bytes()
            assert not [form for form in FORMS if form.encode() in content], file


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_of_a_server(
    engine: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    model: FunctionModel,
) -> None:
    server: TestDatabase = request.getfixturevalue(engine)
    if engine == "postgres":
        server.run("CREATE TABLE stores (id int)", "INSERT INTO stores VALUES (1), (2)")
        url = server.url_as(str(server.parsed.username), PASSWORD)  # trusted, whatever it says
    else:
        user = f"{server.name}_u"[-32:]
        server.run(
            "CREATE TABLE stores (id int)",
            "INSERT INTO stores VALUES (1), (2)",
            f"CREATE USER '{user}'@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT SELECT ON {server.name}.* TO '{user}'@'%'",
        )
        url = server.url_as(user, PASSWORD)
    try:
        codes, said = run_all(url, tmp_path, capsys, caplog)
    finally:
        if engine == "mysql":
            server.run(f"DROP USER '{user}'@'%'")
    assert codes == [0, 0, 0, 0, codes[4], 0, 0, 0, 0, codes[9]]
    assert codes[4] != 0
    check(said, tmp_path, model)
    assert json.loads(Path("t.json").read_text())["answer"]["rows"] == [[2]]


@pytest.mark.parametrize("scheme", ["postgresql", "mysql", "postgresql+psycopg", "oracle", "x"])
def test_of_a_server_that_does_not_answer(
    scheme: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    model: FunctionModel,
) -> None:
    url = f"{scheme}://me:{PASSWORD}@127.0.0.1:{free_port()}/shop"
    codes, said = run_all(url, tmp_path, capsys, caplog)
    assert 0 not in codes[:6]
    check(said, tmp_path, model)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{PASSWORD}@127.0.0.1:notaport/shop",
        f"postgresql://me:a/{PASSWORD}@127.0.0.1:1/shop",
        f"postgresql://me:a@{PASSWORD}@127.0.0.1:1/shop",
        f"postgresql://127.0.0.1:1/shop?user=me&password={PASSWORD}",
        f"postgresql://127.0.0.1:1/shop?nonsense=1&sslpassword={PASSWORD}",
        f"mysql://me:{PASSWORD}@127.0.0.1:1/shop?bad_option=1",
        f"=postgresql://me:{PASSWORD}@h/d",
        f"sqlite://me:{PASSWORD}@h/d",
    ],
)
def test_of_urls_that_are_wrong(
    url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    model: FunctionModel,
) -> None:
    codes, said = run_all(url, tmp_path, capsys, caplog)
    assert 0 not in codes[:6]
    check(said, tmp_path, model)


def test_bugs_are_told_without_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*, settings: Settings) -> Any:
        raise RuntimeError(f"cannot connect with postgresql://me:{PASSWORD}@h/d")

    monkeypatch.setitem(vars(dbrag), "connect", broken)
    assert main(["ask", "-s", "a.db", "q", "-v"]) == 1
    assert main(["ask", "-s", "a.db", "q", "--json"]) == 1
    out, err = capsys.readouterr()
    assert "RuntimeError" in err
    assert PASSWORD not in out + err


def test_the_default_index_stays_when_the_password_rotates(tmp_path: Path) -> None:
    settings = Settings(cache=str(tmp_path))
    folders = {
        scope.index_dir(settings, [url])
        for url in (
            "postgresql://me:old@h/d",
            f"postgresql://me:{PASSWORD}@h/d",
            "postgresql://me@h/d",
        )
    }
    assert len(folders) == 1
    assert scope.index_dir(settings, ["postgresql://you@h/d"]) not in folders
    assert scope.identity(f"shop=postgresql://me:{PASSWORD}@h/d") == "shop=postgresql://me@h/d"
