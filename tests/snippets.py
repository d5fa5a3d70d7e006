"""The snippets of the documents, and a place where they run as they stand.

A fence of ``sh`` or ``python`` is run, unless the HTML comment before it says otherwise:

``<!-- not run: KIND, why -->``    it cannot run in a test; the kinds are ``REASONS``
``<!-- run with: server -->``      ``dbrag serve`` answers at its address meanwhile
``<!-- run by: tests/x.py -->``    another test does it

A ``text`` fence right after an ``sh`` fence is what it prints: each line in this order, ``…``
for anything, the figures of times and confidence aside. Shells are real ones; the ``dbrag``
in them runs in this process, with a scripted chat model and an encoder without weights.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dbrag.demo
from dbrag.interfaces.cli import main
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.settings import Settings

RUNNABLE = ("sh", "python")
DATA = ("toml", "json", "sql", "text")
REASONS = {
    "install": "changes what is installed on this machine",
    "network": "fetches something",
    "key": "needs the key of a remote provider",
    "model": "needs the real local model",
    "server": "serves until it is stopped, or needs a server of the reader's",
    "data": "needs data of the reader's",
    "long": "takes minutes",
}
SERVED = "127.0.0.1:8321"
WAIT_S = 120
"""A machine may be busy; no snippet takes so long by itself."""

_FENCE = re.compile(r"^( *)(`{3,})(.*)$")
_MARK = re.compile(r"<!-- ((?:not run|run with|run by): .+) -->")


@dataclass(frozen=True)
class Snippet:
    """A fence: where it begins, its language, its text, what stands before and after it."""

    line: int
    lang: str
    text: str
    mark: str = ""
    output: str | None = None


def snippets(page: str) -> list[Snippet]:
    """All fences of a page of Markdown, in order."""
    found: list[Snippet] = []
    between: list[str] = []
    lines = enumerate(page.splitlines(), 1)
    for number, line in lines:
        opened = _FENCE.match(line)
        if not opened:
            between.append(line)
            continue
        indent, ticks, lang = opened.groups()
        body = []
        for _, inner in lines:
            if inner.strip() == ticks:
                break
            body.append(inner.removeprefix(indent))
        text = "".join(f"{one}\n" for one in body)
        before = [one.strip() for one in between if one.strip()]
        mark = _MARK.fullmatch(before[-1]) if before else None
        if lang == "text" and not before and found and found[-1].lang == "sh":
            last = found.pop()
            found.append(replace(last, output=text))
        else:
            found.append(Snippet(number, lang, text, mark[1] if mark else ""))
        between = []
    return found


def differences(expected: str, printed: str) -> str:
    """The first line of ``expected`` that was not printed, or not in this order; else empty."""
    rest = iter(printed.splitlines())
    for line in expected.splitlines():
        if line.strip() and not any(_pattern(line).fullmatch(one.rstrip()) for one in rest):
            return line
    return ""


def _pattern(line: str) -> re.Pattern[str]:
    parts = re.split(r"…", line.rstrip())
    pattern = ".*".join(re.escape(part) for part in parts)
    if line.lstrip().startswith(("time:", "confidence:")):
        pattern = re.sub(r"\d+(?:\\\.\d+)?", r"[\\d.,]+", pattern)
        pattern = re.sub(r"not\\ sure|fairly\\ sure|sure", "[a-z ]+", pattern)
    return re.compile(pattern)


# ---- the place -------------------------------------------------------------------

_SHIM = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect(os.environ["DBRAG_TEST_LINE"])
    given = {name: text for name, text in os.environ.items() if name.startswith("DBRAG_")}
    message = json.dumps([sys.argv[1:], os.getcwd(), given]).encode()
    socket.send_fds(line, [message], [0, 1, 2])
    sys.exit(int(line.recv(16) or b"70"))
"""
_PLACEHOLDERS = {"shop.db": "demo/shop.db", "/data/shop.db": "demo/shop.db"}
_KEPT = ("demo", ".cache", ".venv")


class Place:
    """A folder with the demo shop, indexed, where snippets run one after another."""

    def __init__(self, folder: Path, replies: Mapping[str, str]) -> None:
        self.folder = folder
        self.replies = replies
        self._line = Path(tempfile.mkdtemp(prefix="dbrag-")) / "line"
        bin_folder = self._line.parent / "bin"
        bin_folder.mkdir()
        (bin_folder / "shim.py").write_text(_SHIM)
        command = bin_folder / "dbrag"
        command.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -SE "$(dirname "$0")/shim.py" "$@"\n'
        )
        command.chmod(0o755)
        path = os.pathsep.join([str(bin_folder), str(Path(sys.executable).parent)])
        self._environment = {
            "PATH": os.pathsep.join([path, os.environ["PATH"]]),
            "HOME": str(folder),
            "DBRAG_CACHE": str(folder / ".cache"),
            "DBRAG_TEST_LINE": str(self._line),
        }
        (folder / ".venv" / "bin").mkdir(parents=True)
        (folder / ".venv" / "bin" / "activate").touch()

    def reply(self, prompt: Prompt) -> str:
        """SQL of the last question in a prompt; as a step where steps are asked for."""
        asked = max(self.replies, key=prompt.request.rfind)
        known = asked in prompt.request
        sql = self.replies[asked] if known else "SELECT COUNT(*) AS n FROM customers"
        return f"answer: {sql}" if "answer: SELECT" in prompt.request else sql

    def clean(self) -> None:
        """Remove what snippets have left, but the shop and its index."""
        for one in self.folder.iterdir():
            if one.name not in _KEPT:
                shutil.rmtree(one) if one.is_dir() else one.unlink()
        for learned in (self.folder / ".cache").glob("indexes/*/learned.sql"):
            learned.unlink()

    def close(self) -> None:
        """Remove the command."""
        shutil.rmtree(self._line.parent)

    def shell(self, script: str) -> tuple[int, str]:
        """Exit code of a script, and all that it prints; it ends at the first failure."""
        with socket.socket(socket.AF_UNIX) as line, tempfile.TemporaryFile() as printed:
            line.bind(str(self._line))
            line.listen()
            line.settimeout(0.05)
            process = subprocess.Popen(
                ["bash", "-e", "-o", "pipefail", "-c", script],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
            try:
                while process.poll() is None:
                    with contextlib.suppress(TimeoutError):
                        self._answer(line.accept()[0])
            finally:
                process.kill()
                self._line.unlink()
            printed.seek(0)
            return process.wait(WAIT_S), printed.read().decode()

    def _answer(self, call: socket.socket) -> None:
        """Run the command line of one shim on its files, as a process of its own would."""
        with call, contextlib.ExitStack() as stack:
            message, files, _, _ = socket.recv_fds(call, 1 << 20, 3)
            arguments, folder, variables = json.loads(message)
            variables.pop("DBRAG_TEST_LINE")
            given, out, err = (
                stack.enter_context(open(file, mode, encoding="utf-8"))
                for file, mode in zip(files, "rww", strict=True)
            )
            before = {n: os.environ.pop(n) for n in list(os.environ) if n.startswith("DBRAG_")}
            stack.callback(os.environ.update, before)
            os.environ.update(variables)
            stack.callback(lambda: [os.environ.pop(name, None) for name in variables])
            stack.enter_context(contextlib.chdir(folder))
            stack.enter_context(contextlib.redirect_stdout(out))
            stack.enter_context(contextlib.redirect_stderr(err))
            before_in, sys.stdin = sys.stdin, given
            stack.callback(setattr, sys, "stdin", before_in)
            code = main([_PLACEHOLDERS.get(one, one) for one in arguments])
            out.flush()
            call.sendall(str(code).encode())

    def python(self, code: str, names: dict[str, Any]) -> str:
        """What a program prints; ``names`` are those of the programs before it."""
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(compile(code, "<snippet>", "exec"), names)
        return printed.getvalue()


@contextlib.contextmanager
def fakes(place: Place, patch: Any) -> Iterator[None]:
    """Scripted models wherever one is loaded; the demo shop is written once."""

    def chat_model(spec: str, settings: Settings) -> FunctionModel:
        return FunctionModel(place.reply, name=spec, logprob=-0.05)

    write = dbrag.demo.write_demo
    shop = write(place.folder / dbrag.demo.DEFAULT_PATH)

    def write_once(path: str | Path = dbrag.demo.DEFAULT_PATH, seed: int = 0, **more: Any) -> Any:
        # The same rows anew would be another file, which is indexed again.
        if Path(path).resolve() == shop.path.resolve() and seed == shop.seed:
            return replace(shop, path=Path(path))
        return write(path, seed, **more)

    patch.setattr("dbrag.models.load.load_chat_model", chat_model)
    patch.setattr("dbrag.models.embed.load_embedder", lambda settings: HashEmbedder())
    patch.setattr("dbrag.demo.write_demo", write_once)
    patch.setenv("DBRAG_CACHE", str(place.folder / ".cache"))
    yield


@contextlib.contextmanager
def served(place: Place) -> Iterator[str]:
    """The address of ``dbrag serve -s demo/shop.db``, in this process."""
    from tests.interfaces.http.conftest import on_a_port

    shop = os.path.relpath(place.folder / dbrag.demo.DEFAULT_PATH)
    with dbrag.connect(shop) as database, on_a_port(database, rate=0) as server:
        yield server.url
