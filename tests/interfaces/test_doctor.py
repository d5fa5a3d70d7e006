"""``dbrag doctor``: every finding, with a way out; nothing made, nothing shown that is secret.

The commands of docs/doctor.md are run here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dbrag.doctor import extras, machine, weights
from dbrag.models import registry
from dbrag.models.testing import HashEmbedder
from tests.conftest import connect

PASSWORD = "geheimnis-4711"
STATUSES = {"ok", "warning", "problem"}


@pytest.fixture(autouse=True)
def _no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing runtimes takes seconds; how it is done has a test of its own."""
    monkeypatch.setattr(weights, "import_errors", lambda modules: [(one, "") for one in modules])


@pytest.fixture
def weights_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Small files in the cache that count as the weights; the folder they lie in."""
    folder = tmp_path / "cache" / "weights"
    folder.mkdir(parents=True)
    for name, spec in list(registry.REGISTRY.items()):
        data = f"weights of {name}".encode()
        small = dataclasses.replace(
            spec, bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), memory_bytes=1000
        )
        monkeypatch.setitem(registry.REGISTRY, name, small)  # type: ignore[arg-type]
        (folder / spec.file).write_bytes(data)
    return folder


def found(done: Any, name: str) -> dict[str, str]:
    """The one finding of that name."""
    (one,) = [check for check in done.json["checks"] if check["name"] == name]
    return one


def tree(folder: Path) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in folder.rglob("*")}


def test_the_shape(cli, small_shop: Path) -> None:
    done = cli("doctor", "-s", small_shop, "--json")
    assert set(done.json) == {"schema", "ok", "checks"}
    for one in done.json["checks"]:
        assert set(one) == {"name", "status", "message", "hint"}
        assert one["status"] in STATUSES
        assert one["message"]
        assert "\n" not in one["message"] + one["hint"]
        assert one["status"] == "ok" or one["hint"]
    assert done.json["ok"] == all(one["status"] != "problem" for one in done.json["checks"])
    names = [one["name"] for one in done.json["checks"]]
    assert names[:5] == ["python", "platform", "memory", "disk", "cache"]
    assert {"settings", "model", "model runtime", "encoder", "source small shop"} <= set(names)
    assert {f"extra {name}" for name in ("local", "remote", "servers", "mcp", "serve")} < set(names)


def test_text_has_a_line_and_a_way_out(cli, small_shop: Path) -> None:
    done = cli("doctor", "-s", small_shop)
    lines = done.out.splitlines()
    assert lines[0].startswith("ok       python            Python 3.")
    place = next(i for i, line in enumerate(lines) if line.startswith("problem  model "))
    assert "are not on this machine" in lines[place]
    assert lines[place + 1].strip() == "try: dbrag models pull qwen2.5-coder-1.5b"
    assert lines[-1].endswith("2 problems")
    assert done.code == 1
    quiet = cli("doctor", "-s", small_shop, "-q").out.splitlines()
    assert not [line for line in quiet if line.startswith("ok")]
    assert len(quiet) < len(lines)


def test_nothing_is_made(cli, small_shop: Path, tmp_path: Path) -> None:
    Path("x.csv").write_text("a,b\n1,2\n")
    before = tree(tmp_path)
    cli("doctor", "-s", small_shop, "--index", tmp_path / "index")
    assert tree(tmp_path) == before


def test_a_machine_in_order(cli, small_shop: Path, weights_here: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    with connect(small_shop, index=index) as database:
        database.index()
    before = tree(tmp_path)
    done = cli("doctor", "-s", small_shop, "--index", index, "--json")
    assert tree(tmp_path) == before
    model = found(done, "model")
    assert (model["status"], model["hint"]) == ("ok", "dbrag doctor --deep")
    assert "the SHA-256 not compared yet" in model["message"]
    assert "SHA-256 is right" in found(cli("doctor", "--deep", "--json"), "model")["message"]
    assert "SHA-256 is right" in found(done, "encoder")["message"]
    assert found(done, "source small shop")["message"].startswith(
        "SQLite, 4 tables, opened read-only: "
    )


def test_damaged_weights(cli, weights_here: Path) -> None:
    spec = registry.REGISTRY["qwen2.5-coder-1.5b"]
    path = weights_here / spec.file
    path.write_bytes(b"x" * spec.bytes)  # as long as it should be
    assert found(cli("doctor", "--json"), "model")["status"] == "ok"
    deep = found(cli("doctor", "--deep", "--json"), "model")
    assert deep["status"] == "problem"
    assert "SHA-256" in deep["message"]
    path.write_bytes(b"short")
    short = found(cli("doctor", "--json"), "model")
    assert (short["status"], "cut short" in short["message"]) == ("problem", True)
    assert "dbrag models pull" in short["hint"]
    (weights_here / registry.REGISTRY["all-minilm-l6-v2"].file).write_bytes(b"")
    assert found(cli("doctor", "--json"), "encoder")["status"] == "problem"


def test_a_model_without_a_provider(cli) -> None:
    one = found(cli("doctor", "--model", "gpt", "--json"), "model")
    assert one["status"] == "problem"
    assert "names no provider" in one["message"]


def test_the_key_of_a_remote_model(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Remote:
        endpoint, remote = "https://api.openai.com/v1", True

        def __init__(self, spec: str) -> None:
            from dbrag.errors import ModelNotInstalled

            made.append(spec)
            if not __import__("os").environ.get("OPENAI_API_KEY"):
                raise ModelNotInstalled("needs OPENAI_API_KEY", "export OPENAI_API_KEY=…")

    import dbrag.models.remote

    monkeypatch.setattr(dbrag.models.remote, "RemoteModel", Remote)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    one = found(cli("doctor", "--model", "openai:gpt-x", "--json"), "model")
    assert (one["status"], one["hint"]) == ("problem", "export OPENAI_API_KEY=…")
    monkeypatch.setenv("OPENAI_API_KEY", PASSWORD)
    done = cli("doctor", "--model", "openai:gpt-x", "--json")
    one = found(done, "model")
    assert one["status"] == "ok"
    assert "not called" in one["message"]
    assert PASSWORD not in done.out
    monkeypatch.setenv("DBRAG_OFFLINE", "1")
    one = found(cli("doctor", "--model", "openai:gpt-x", "--json"), "model")
    assert (one["status"], "offline" in one["message"]) == ("problem", True)
    assert set(made) == {"openai:gpt-x"}


def test_a_call_is_made_only_when_asked_for(
    cli, weights_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dbrag.models.load

    called: list[str] = []

    def try_it(spec: str, settings: object) -> object:
        called.append(spec)
        return dbrag.models.load.ModelCheck(spec, False, 8192, 0.1, 0.5, 9.0, "SELECT 1")

    monkeypatch.setattr(dbrag.models.load, "check", try_it)
    cli("doctor")
    assert not called
    one = found(cli("doctor", "--call", "--json"), "model call")
    assert one["status"] == "ok"
    assert called == ["local:qwen2.5-coder-1.5b"]


def test_every_wrong_setting_is_told(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("dbrag.toml").write_text(
        f'sources = ["postgresql://me:{PASSWORD}@127.0.0.1:1/db"]\n'
        'vots = 3\ntop = "many"\nk = 0\n[notes."orders"]\ndescripton = "x"\n'
    )
    monkeypatch.setenv("DBRAG_ROUNDS", "few")
    monkeypatch.setenv("DBRAG_MODLE", PASSWORD)
    done = cli("doctor", "--json")
    said = [one for one in done.json["checks"] if one["name"] == "settings"]
    text = " | ".join(one["message"] for one in said if one["status"] == "problem")
    for words in ("'vots'", "top in", "k must be at least 1", "'descripton'", "DBRAG_ROUNDS"):
        assert words in text
    assert any(one["hint"].endswith("write votes") for one in said)
    warned = " | ".join(one["message"] for one in said if one["status"] == "warning")
    assert "DBRAG_MODLE is set" in warned
    assert "a password is written in" in warned
    assert PASSWORD not in done.out + done.err
    assert found(done, "source db")["status"] == "problem"  # the good keys hold all the same
    assert done.code == 1


@pytest.mark.parametrize(
    ("text", "words"), [("top = ", "is not valid TOML"), (None, "cannot read the configuration")]
)
def test_a_settings_file_that_cannot_be_read(cli, text: str | None, words: str) -> None:
    if text is not None:
        Path("mine.toml").write_text(text)
    one = found(cli("doctor", "--config", "mine.toml", "--json"), "settings")
    assert (one["status"], words in one["message"]) == ("problem", True)


def test_settings_in_order(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBRAG_TOP", "7")
    monkeypatch.setenv("DBRAG_API_TOKEN", PASSWORD)
    done = cli("doctor", "--json")
    one = found(done, "settings")
    assert one["status"] == "ok"
    assert "no dbrag.toml here or above" in one["message"]
    assert "DBRAG_TOP" in one["message"]
    assert PASSWORD not in done.out


class TestIndex:
    @pytest.fixture
    def index(self, small_shop: Path, tmp_path: Path) -> Path:
        with connect(small_shop, index=tmp_path / "index") as database:
            database.index()
        return tmp_path / "index"

    def look(self, cli, small_shop: Path, index: Path) -> dict[str, dict[str, str]]:
        done = cli("doctor", "-s", small_shop, "--index", index, "--json")
        return {one["name"]: one for one in done.json["checks"]}

    def test_none(self, cli, small_shop: Path, tmp_path: Path) -> None:
        one = self.look(cli, small_shop, tmp_path / "new")["index"]
        assert one["status"] == "warning"
        assert one["hint"] == f"dbrag index -s '{small_shop}' --index {tmp_path / 'new'}"
        assert not (tmp_path / "new").exists()

    def test_fresh_then_changed(self, cli, small_shop: Path, index: Path) -> None:
        told = self.look(cli, small_shop, index)
        assert told["index"]["status"] == told["index freshness"]["status"] == "ok"
        assert "can be read: 4 tables" in told["index"]["message"]
        with closing(sqlite3.connect(small_shop)) as connection, connection:
            connection.execute("INSERT INTO customers VALUES (9, 'New', 'Oslo')")
        told = self.look(cli, small_shop, index)["index freshness"]
        assert (told["status"], "small shop is changed" in told["message"]) == ("warning", True)
        assert told["hint"].startswith("dbrag index -s ")

    def test_without_sources_those_of_the_index(self, cli, small_shop: Path, index: Path) -> None:
        done = cli("doctor", "--index", index, "--json")
        assert found(done, "source small shop")["status"] == "ok"
        assert found(done, "index freshness")["status"] == "ok"

    @pytest.mark.parametrize("damage", ["{", '{"format": "dbrag-index", "version": 1}', "[]"])
    def test_damaged(self, cli, small_shop: Path, index: Path, damage: str) -> None:
        (index / "manifest.json").write_text(damage)
        told = self.look(cli, small_shop, index)
        assert told["index"]["status"] == "problem"
        assert told["index"]["hint"]
        assert "index freshness" not in told
        assert told["source small shop"]["status"] == "ok"

    def test_files_gone(self, cli, small_shop: Path, index: Path) -> None:
        for path in index.rglob("*.npy"):
            path.unlink()
        told = self.look(cli, small_shop, index)["index"]
        assert told["status"] == "problem"
        assert told["hint"] == f"dbrag index -s '{small_shop}' --index {index} --force"

    def test_another_encoder(
        self, cli, small_shop: Path, index: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import dbrag.models.embed

        monkeypatch.setenv("DBRAG_ENCODER", "another")
        monkeypatch.setattr(dbrag.models.embed, "load_embedder", lambda settings: HashEmbedder(32))
        told = self.look(cli, small_shop, index)["index"]
        assert (told["status"], "the index was built with" in told["message"]) == ("problem", True)
        assert told["hint"].endswith("--force")


def test_sources_that_cannot_be_read(cli, small_shop: Path, tmp_path: Path) -> None:
    done = cli("doctor", "-s", "nope.db", "-s", small_shop, "--json")
    assert found(done, "source nope.db")["status"] == "problem"
    assert found(done, "source small shop")["status"] == "ok"
    assert done.code == 1
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "bad.db").write_bytes(b"not a database at all")
    (folder / "rows.csv").write_text("a,b\n1,2\n")
    for i in range(25):
        (folder / f"db{i:02}.db").write_bytes(small_shop.read_bytes())
    done = cli("doctor", "-s", folder, "--json")
    assert found(done, "source bad")["status"] == "warning"
    named = [
        c for c in done.json["checks"] if c["name"].startswith("source ") and c["status"] == "ok"
    ]
    assert len(named) == 20
    assert found(done, "sources")["message"] == "6 more sources were opened read-only"


def test_the_same_name_twice(cli, small_shop: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(small_shop.read_bytes())
    done = cli("doctor", "-s", f"x={small_shop}", "-s", f"x={other}", "--json")
    one = found(done, "sources")
    assert (one["status"], "used twice" in one["message"]) == ("problem", True)


def test_no_source(cli) -> None:
    one = found(cli("doctor", "--json"), "sources")
    assert (one["status"], "dbrag demo" in one["hint"]) == ("warning", True)


def test_a_server_that_is_not_there(cli) -> None:
    url = f"postgresql://me:{PASSWORD}@127.0.0.1:1/db"
    done = cli("doctor", "-s", url, "--json")
    assert found(done, "source db")["status"] == "problem"
    assert PASSWORD not in done.out + done.err
    assert PASSWORD not in cli("doctor", "-s", url).out


def test_a_bug_is_a_finding(cli, small_shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError("one\ntwo")

    monkeypatch.setattr(machine, "disk", broken)
    monkeypatch.setattr(weights, "encoder", broken)
    done = cli("doctor", "-s", small_shop, "--json")
    assert found(done, "disk")["message"] == "cannot be checked: ZeroDivisionError: one two"
    assert found(done, "encoder")["status"] == "problem"
    assert found(done, "source small shop")["status"] == "ok"
    assert "Traceback" not in done.out + done.err


@pytest.mark.parametrize(("free", "status"), [(10**8, "problem"), (10**10, "ok"), (None, "ok")])
def test_memory(cli, monkeypatch: pytest.MonkeyPatch, free: int | None, status: str) -> None:
    monkeypatch.setattr(machine.machine, "available_memory", lambda: free)
    assert found(cli("doctor", "--json"), "memory")["status"] == status


@pytest.mark.parametrize(
    ("free", "status"), [(10**6, "problem"), (12 * 10**8, "warning"), (10**10, "ok")]
)
def test_disk(cli, monkeypatch: pytest.MonkeyPatch, free: int, status: str) -> None:
    usage = machine.shutil._ntuple_diskusage(10**12, 10**12 - free, free)
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: usage)
    assert found(cli("doctor", "--json"), "disk")["status"] == status


def test_the_cache_folder(cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = found(cli("doctor", "--json"), "cache")
    assert (one["status"], "does not exist yet" in one["message"]) == ("ok", True)
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("DBRAG_CACHE", str(tmp_path / "file" / "cache"))
    assert found(cli("doctor", "--json"), "cache")["status"] == "problem"
    (tmp_path / "full").mkdir()
    monkeypatch.setenv("DBRAG_CACHE", str(tmp_path / "full"))

    def full(**_: object) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(machine.tempfile, "TemporaryFile", full)
    one = found(cli("doctor", "--json"), "cache")
    assert (one["status"], "No space left" in one["message"]) == ("problem", True)


def test_a_missing_extra(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "installed", lambda name: name not in ("xllamacpp", "mcp"))
    done = cli("doctor", "--json")
    local, mcp = found(done, "extra local"), found(done, "extra mcp")
    assert (local["status"], local["hint"]) == ("problem", "pip install 'dbrag[local]'")
    assert "needed for 'local:qwen2.5-coder-1.5b'" in local["message"]
    assert (mcp["status"], mcp["hint"]) == ("warning", "pip install 'dbrag[mcp]'")
    assert "dbrag mcp" in mcp["message"]


def test_usage(cli) -> None:
    assert cli("doctor", "--foo").code == 2
    assert cli("doctor", "more").code == 2
    assert cli("doctor", "--foo", "--json").json["error"]["code"] == "usage"
