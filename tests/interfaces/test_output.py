"""Standard output and error, also where they are broken; progress; the process as a whole."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.index.progress import Progress
from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.notices import Events, LiveLine, index_text, pull_text
from dbrag.interfaces.cli.options import Run
from dbrag.interfaces.cli.render import count, duration, size


class Stream(io.TextIOWrapper):
    """A text stream in memory that may claim to be a terminal."""

    def __init__(self, encoding: str = "utf-8", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        return self.buffer.getvalue().decode(self.encoding)


class FullDisk(Stream):
    """A stream that cannot be written."""

    def write(self, _: str) -> int:
        raise OSError(28, "No space left on device")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False).filter(lambda x: abs(x) < 1e300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1", "cp1252"])
@given(value=VALUES)
def test_json_survives_every_encoding(encoding: str, value: object) -> None:
    stream = Stream(encoding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        output.emit_json(value)
    assert json.loads(stream.text()) == value


def test_half_a_surrogate_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream()
    monkeypatch.setattr(sys, "stdout", stream)
    output.emit_json({"name": "caf\udce9"})
    output.emit("caf\udce9")
    assert json.loads(stream.text().splitlines()[0]) == {"name": "caf\udce9"}
    assert stream.text().splitlines()[1] == "caf\\udce9"


def test_nothing_steers_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Stream(), Stream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    attack = "a\x1b[2J\x9b31m\rb\u202ec\x07"
    output.emit(f"{attack}\n\tnext")
    output.note(attack)
    output.emit_json({"cell": attack})
    lines = out.text().splitlines()
    assert lines[0] == "a\\x1b[2J\\x9b31m\\rb\\u202ec\\x07"
    assert lines[1] == "\tnext"
    assert json.loads(lines[2]) == {"cell": attack}
    for text in (out.text(), err.text()):
        assert not any(c in text for c in "\x1b\x9b\r\u202e\x07")


def test_a_full_disk(cli, fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_err = Stream()
    from dbrag.interfaces.cli import main

    for flags in ([], ["--json"]):
        monkeypatch.setattr(sys, "stdout", FullDisk())
        monkeypatch.setattr(sys, "stderr", fake_err)
        assert main(["ask", "-s", "a.db", "q", *flags]) == 1
    assert "cannot write the output: No space left on device" in fake_err.text()


def test_a_lost_standard_error_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", FullDisk())
    output.note("lost")


def test_progress_text() -> None:
    state = Progress("read", 3, 157, 1200, 31_000.0, 2.0, "shop")
    assert index_text(state) == (
        "indexing: reading 3 of 157 sources, shop, 1,200 rows, 31,000 rows/s, 2.00 s left"
    )
    assert index_text(Progress("switch", 0, 0)) == "indexing: switching to the new index"


def test_pull_text() -> None:
    from dbrag.models.weights import PullProgress

    progress = PullProgress("qwen", "hub", "download", 5 * 10**8, 10**9, 61.0)
    assert pull_text(progress) == "qwen: download 500.0 MB of 1.00 GB (50%), 61 s left"


def test_a_live_line_is_drawn_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(run: Run, *, terminal: bool) -> str:
        stream = Stream(terminal=terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        live = LiveLine(run)
        live.show("a long state")
        live.show("too soon to be drawn")
        live.clear()
        return stream.text()

    assert drawn(Run(), terminal=True) == "\ra long state\r            \r"
    assert drawn(Run(), terminal=False) == ""
    assert drawn(Run(quiet=True), terminal=True) == ""
    assert drawn(Run(verbose=True), terminal=False) == "a long state\n"


def test_what_goes_on_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [
        {"stage": "index", "sources": [{"name": "shop", "reason": "changed"}]},
        {"stage": "retrieve"},
        {"stage": "program"},
        {"stage": "vote", "cast": 1},
        {"stage": "new"},
    ]

    def shown(run: Run, *, terminal: bool) -> str:
        stream = Stream(terminal=terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        with Events(run) as events:
            for stage in stages:
                events(stage)
        return stream.text()

    text = shown(Run(), terminal=True)
    assert text.startswith("indexing shop (changed) …\n\rreading and indexing …\r")
    assert "\r1 program so far, writing another …\r" in text
    assert text.endswith("\rnew …\r     \r")
    assert shown(Run(), terminal=False) == "indexing shop (changed) …\n"
    assert shown(Run(quiet=True), terminal=True) == ""


def test_a_live_line_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(terminal=True)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "20")
    LiveLine(Run()).show("x" * 500)
    assert stream.text() == "\r" + "x" * 19


def test_numbers_for_people() -> None:
    assert [count(1, "row"), count(2, "row"), count(1203, "row")] == [
        "1 row",
        "2 rows",
        "1,203 rows",
    ]
    assert [size(999), size(22_928_619), size(1_117_320_768)] == ["999 B", "22.9 MB", "1.12 GB"]
    seconds = [0.5, 42, 200, 7300, 200_000]
    assert [duration(s) for s in seconds] == ["0.50 s", "42 s", "3 min", "2 h", "2 days"]


SLOW = """
import sys, time
import dbrag
class Slow:
    settings = dbrag.Settings()
    def status(self):
        print("started", file=sys.stderr, flush=True)
        time.sleep(30)
    def close(self):
        print("closed", file=sys.stderr, flush=True)
vars(dbrag)["connect"] = lambda *a, settings=None: Slow()
from dbrag.interfaces.cli import main
sys.exit(main(sys.argv[1:]))
"""


def start(code: str, *arguments: str, **more: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=more.get("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DBRAG_OFFLINE": "1"},
    )


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_ctrl_c(flags: list[str]) -> None:
    process = start(SLOW, "status", "-s", "a.db", *flags)
    assert process.stderr is not None
    assert process.stderr.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.startswith("closed\n")
    assert "Traceback" not in err
    if flags:
        assert json.loads(out)["error"]["code"] == "interrupted"


PRINT = "import sys; from dbrag.interfaces.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_a_closed_pipe() -> None:
    process = start(PRINT, "--help")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(timeout=20) in (0, 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device() -> None:
    with open("/dev/full", "w") as full:
        process = start(PRINT, "demo", stdout=full)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err == (
        "error: cannot write the output: No space left on device\n"
        "  try: free some space, or send it elsewhere: dbrag … > FILE\n"
    )


@pytest.mark.skipif(os.name == "nt", reason="POSIX accounting")
def test_help_is_quick() -> None:
    import resource

    def cpu_s(code: str, *arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    took = min(cpu_s(PRINT, "--help") for _ in range(3)) - min(cpu_s("pass") for _ in range(3))
    # Generous, for busy machines: loading one library too many costs a second.
    assert took < 0.5


@pytest.mark.parametrize(
    ("agreement", "valid", "words"),
    [
        (None, 1, "one program, no vote"),
        (1.0, 1, "only 1 program gave a result (3 allowed)"),
        (1.0, 2, "all 2 programs gave this result (3 allowed)"),
        (2 / 3, 3, "2 of 3 programs gave this result"),
    ],
)
def test_agreement_in_words(agreement: float | None, valid: int, words: str) -> None:
    from dbrag.interfaces.cli.render import agreement_words
    from dbrag.types import Answer

    answer = Answer("q", "answered", "", agreement=agreement, votes_requested=3, votes_valid=valid)
    assert agreement_words(answer) == words
