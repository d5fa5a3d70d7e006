"""Replies that are remembered: what counts as the same, and what a bad file does."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.errors import ModelError
from dbrag.models.base import ChatModel, Prompt, Reply
from dbrag.models.cache import FILE_NAME, CachedModel, ReplyCache, reply_key
from dbrag.models.load import caches, load_chat_model
from dbrag.models.testing import FunctionModel, ScriptedModel
from dbrag.settings import Settings
from tests.models.test_gguf import gguf

if TYPE_CHECKING:
    from pathlib import Path

PROMPT = Prompt("You write SQL.", "CREATE TABLE t (a)", "How many?")


def cached(
    folder: Path, replies: list[str], identity: str = "https://example.org/v1"
) -> tuple[CachedModel, ScriptedModel]:
    inner = ScriptedModel(replies, name="openai:x", remote=True, logprob=-0.5)
    return CachedModel(inner, ReplyCache(folder), lambda: identity), inner


def test_the_second_time_is_free_and_marked(tmp_path: Path) -> None:
    model, inner = cached(tmp_path, ["SELECT 1", "never"])
    assert isinstance(model, ChatModel)
    (first,) = model.sample(PROMPT)
    (second,) = model.sample(PROMPT)
    assert (first.cached, first.completion_tokens) == (False, 2)
    assert second == Reply("SELECT 1", logprob=-0.5, cached=True)
    assert len(inner.prompts) == 1
    other, _ = cached(tmp_path, [])  # another process would see the same file
    assert other.sample(PROMPT) == [second]


def test_replies_sampled_together_stay_together(tmp_path: Path) -> None:
    model, inner = cached(tmp_path, ["a", "b", "b", "c", "d"])
    texts = [r.text for r in model.sample(PROMPT, 3, temperature=0.7)]
    again = model.sample(PROMPT, 3, temperature=0.7)
    assert texts == ["a", "b", "b"] == [r.text for r in again]
    assert all(r.cached and r.completion_tokens == 0 for r in again)
    assert [r.text for r in model.sample(PROMPT, 2, temperature=0.7)] == ["c", "d"]
    assert inner.left == 0


DIFFERENCES: list[dict[str, Any]] = [
    {"temperature": 0.7},
    {"max_tokens": 10},
    {"schema": {"type": "object"}},
    {"stop": (";",)},
    {"seed": 1},
    {"n": 2},
]


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda d: next(iter(d)))
def test_every_parameter_counts(tmp_path: Path, difference: dict[str, Any]) -> None:
    model, inner = cached(tmp_path, ["a", "b", "c"])
    model.sample(PROMPT)
    assert not model.sample(PROMPT, **difference)[0].cached
    assert len(inner.calls) == 2
    assert model.sample(PROMPT, **difference)[0].cached


def test_endpoint_model_and_every_part_of_the_prompt_count() -> None:
    prompts = [
        PROMPT,
        Prompt("", "You write SQL.\n\nCREATE TABLE t (a)", "How many?"),
        Prompt("You write SQL.", "CREATE TABLE t (a)", "How many?", (("SELECT", "wrong"),)),
        Prompt("You write SQL.", "", "CREATE TABLE t (a)\n\n[user]\nHow many?"),
    ]
    keys = [reply_key("e", "m", prompt, 1, {}) for prompt in prompts]
    keys += [reply_key("f", "m", PROMPT, 1, {}), reply_key("e", "n", PROMPT, 1, {})]
    assert len(set(keys)) == len(keys)


def test_the_prompt_is_not_in_the_file_and_only_the_owner_reads_it(tmp_path: Path) -> None:
    model, _ = cached(tmp_path, ["SELECT 1"], identity="https://secret-host/v1")
    model.sample(Prompt("", "", "the salary of Ada"))
    data = (tmp_path / FILE_NAME).read_bytes()
    assert b"SELECT 1" in data
    assert b"salary" not in data
    assert b"secret-host" not in data
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    cache.put(b"key", "m", [Reply("a")])
    cache.path.chmod(0o644)
    assert cache.get(b"key", 1) is not None
    assert stat.S_IMODE(cache.path.stat().st_mode) == 0o600


def test_failures_are_not_remembered(tmp_path: Path) -> None:
    def fail(prompt: Prompt) -> str:
        raise ModelError("busy")

    inner = ScriptedModel([fail, "fine"])
    model = CachedModel(inner, ReplyCache(tmp_path), lambda: "")
    with pytest.raises(ModelError, match="busy"):
        model.sample(PROMPT)
    assert [r.text for r in model.sample(PROMPT)] == ["fine"]


def test_the_oldest_go_when_the_file_is_full(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path, max_bytes=200_000)
    for i in range(100):
        cache.put(bytes([i]) * 32, "m", [Reply("x" * 5_000)])
        assert cache.path.stat().st_size < 220_000
    assert cache.get(bytes([99]) * 32, 1) is not None
    assert cache.get(bytes([0]) * 32, 1) is None
    assert 20 < cache.state().calls < 45


@pytest.mark.parametrize("damage", ["text", "cut", "version", "foreign", "folder"])
def test_a_bad_file_is_told_once_and_does_not_matter(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / FILE_NAME
    if damage == "text":
        path.write_text("no database " * 500)
    elif damage == "folder":
        path.mkdir()
    elif damage == "cut":
        ReplyCache(tmp_path).put(b"k", "m", [Reply("x" * 50_000)])
        path.write_bytes(path.read_bytes()[:9_000])
    else:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE replies (other)")
        connection.execute(f"PRAGMA user_version = {99 if damage == 'version' else 1}")
        connection.commit()
        connection.close()
    model, inner = cached(tmp_path, ["a", "b"])
    with caplog.at_level(logging.WARNING):
        assert [model.sample(PROMPT)[0].text for _ in range(2)] == ["a", "b"]
    assert inner.left == 0
    (told,) = [record.getMessage() for record in caplog.records]
    assert str(path) in told
    assert "dbrag models cache --clear" in told
    if damage != "folder":
        ReplyCache(tmp_path).clear()
        again, _ = cached(tmp_path, ["c"])
        assert [again.sample(PROMPT)[0].text for _ in range(2)] == ["c", "c"]


def test_a_damaged_entry_is_asked_for_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, _ = cached(tmp_path, ["a", "b"])
    model.sample(PROMPT)
    for broken in ("[", "{}", "[]", '[["a"]]', '[["a", null, "odd"]]', '[[1, 2, "stop"], 3]'):
        connection = sqlite3.connect(tmp_path / FILE_NAME)
        connection.execute("UPDATE replies SET replies = ?", (broken,))
        connection.commit()
        connection.close()
        fresh, _ = cached(tmp_path, ["b"])
        assert fresh.sample(PROMPT)[0].text == "b"
        assert fresh.sample(PROMPT)[0].cached


def test_a_folder_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    model, _ = cached(tmp_path / "file" / "cache", ["a", "b"])
    assert [model.sample(PROMPT)[0].text for _ in range(2)] == ["a", "b"]
    assert "cannot be used" in caplog.text


def test_threads_share_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = CachedModel(FunctionModel(lambda p: p.request), ReplyCache(tmp_path), lambda: "")

    def ask() -> None:
        for i in range(20):
            assert model.sample(Prompt("", "", f"q{i}"))[0].text == f"q{i}"

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ReplyCache(tmp_path).state().calls == 20
    assert not caplog.records


WRITER = """
import sys
from pathlib import Path
from dbrag.models.base import Reply
from dbrag.models.cache import ReplyCache
cache = ReplyCache(Path(sys.argv[1]))
print("ready", flush=True)
for i in range(1_000_000):
    cache.put(f"{sys.argv[2]} {i}".encode(), "m", [Reply("x" * 2000)])
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_processes_share_it_and_one_that_is_killed_leaves_it_whole(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name], stdout=subprocess.PIPE
        )
        for name in ("one", "two")
    ]
    cache = ReplyCache(tmp_path)
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    while cache.state().calls < 30:
        pass
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert writer.stdout is not None
        writer.stdout.close()
    cache.put(b"after", "m", [Reply("whole")])
    found = cache.get(b"after", 1)
    assert found is not None
    assert found[0].text == "whole"
    assert cache.state().problem == ""
    connection = sqlite3.connect(cache.path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_weights_are_known_by_their_bytes(tmp_path: Path) -> None:
    cache, file = ReplyCache(tmp_path), tmp_path / "w.gguf"
    file.write_bytes(b"one")
    first = cache.weights_sha256(file)
    assert cache.weights_sha256(file) == first
    file.write_bytes(b"three")
    assert cache.weights_sha256(file) != first
    with pytest.raises(OSError, match="No such file"):
        cache.weights_sha256(tmp_path / "none.gguf")


def test_who_is_remembered(tmp_path: Path) -> None:
    wanted = {("auto", True): True, ("auto", False): False, ("on", False): True}
    wanted |= {("on", True): True, ("off", True): False, ("off", False): False}
    for (value, remote), expected in wanted.items():
        assert caches(remote, Settings(reply_cache=value)) is expected
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf())
    settings = Settings(cache=str(tmp_path / "cache"), reply_cache="on")
    model = load_chat_model(f"local:{file}", settings)
    assert isinstance(model, CachedModel)
    assert model.name == f"local:{file}"
    assert model.threads > 0  # passed through
    assert not model.closed
    model.close()
    assert model.closed
