"""What is said on standard error while a command works."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.render import count, duration, size
from dbrag.interfaces.cli.tables import cell_text, start, text_width

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dbrag.index.build import Progress
    from dbrag.interfaces.cli.options import Run
    from dbrag.models.weights import PullProgress

_STAGES = {
    "read": ("reading", "source"),
    "text": ("writing the text index", "part"),
    "encode": ("encoding", "table text"),
    "rows": ("encoding", "row text"),
    "switch": ("switching to the new index", "part"),
}

_REDRAW_S = 0.1
_LINE_S = 5.0


class LiveLine:
    """One line that is redrawn on a terminal; elsewhere, with ``-v``, a line now and then."""

    def __init__(self, run: Run) -> None:
        self._terminal = output.is_terminal(sys.stderr) and not run.quiet
        self._lines = run.verbose and not run.quiet and not self._terminal
        self._last = 0.0
        self._shown = 0

    def show(self, text: str, *, always: bool = False) -> None:
        """Show the state; one that comes right after another is passed over unless ``always``."""
        now = time.monotonic()
        if self._terminal and (always or now - self._last >= _REDRAW_S):
            self._last = now
            text = start(text, shutil.get_terminal_size((100, 24)).columns - 1)
            taken = text_width(text)
            sys.stderr.write("\r" + text + " " * (self._shown - taken))
            sys.stderr.flush()
            self._shown = taken
        elif self._lines and now - self._last >= _LINE_S:
            self._last = now
            output.note(text)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()
            self._shown = 0


def index_text(progress: Progress) -> str:
    """State of an indexing run: stage, source, rows per second, time left."""
    doing, what = _STAGES.get(progress.stage, (progress.stage, "parts"))
    parts = [f"indexing: {doing}"]
    if progress.total:
        parts[0] += f" {progress.done:,} of {count(progress.total, what)}"
    if progress.source:
        done, tables = progress.tables or (0, 0)
        of = f" ({done:,} of {count(tables, 'table')})" if tables > 1 else ""
        parts.append(cell_text(progress.source) + of)
    if progress.rows:
        parts.append(count(progress.rows, "row"))
    if progress.rows_per_s:
        parts.append(f"{progress.rows_per_s:,.0f} rows/s")
    if progress.eta_s is not None:
        parts.append(f"{duration(progress.eta_s)} left")
    return ", ".join(parts)


def pull_text(progress: PullProgress) -> str:
    """State of a download: bytes, share, time left."""
    text = f"{progress.name}: {progress.stage}"
    if progress.total:
        share = progress.done / progress.total
        text += f" {size(progress.done)} of {size(progress.total)} ({share:.0%})"
    if progress.seconds_left is not None:
        text += f", {duration(progress.seconds_left)} left"
    return text


class Events:
    """Listens to a question on its way: says what takes long, and collects the trace."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._live = LiveLine(run)
        self.entries: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._live.clear()

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Take one entry of the trace."""
        self.entries.append(dict(event))
        if self._run.quiet:
            return
        self._live.clear()
        self._tell(event)
        if not self._run.verbose:
            self._live.show(next_text(event), always=True)

    def _tell(self, event: Mapping[str, Any]) -> None:
        if event.get("stage") == "index" and event.get("sources"):
            output.note(indexing_text(event["sources"]))
        elif event.get("stage") == "index":
            output.note(f"{cell_text(event.get('reason', ''))}: texts are made anew …")
        elif self._run.verbose:
            from dbrag.interfaces.cli.render import trace_lines

            output.note("\n".join(trace_lines([event])))


def next_text(event: Mapping[str, Any]) -> str:
    """What goes on after this entry of the trace, for the line that is redrawn."""
    match event.get("stage"):
        case "index":
            return "reading and indexing …"
        case "retrieve" | "rerank":
            return "choosing tables …"
        case "select":
            return "writing a program …"
        case "step":
            return "writing the next step …"
        case "program":
            return "running it …"
        case "vote":
            return f"{count(int(event.get('cast') or 0), 'program')} so far, writing another …"
        case stage:
            return f"{stage} …"


def indexing_text(sources: Any) -> str:
    """``indexing shop (not indexed yet) …``."""
    named = [f"{cell_text(s['name'])} ({cell_text(s['reason'])})" for s in sources[:3]]
    more = f" and {count(len(sources) - 3, 'more source')}" if len(sources) > 3 else ""
    return f"indexing {', '.join(named)}{more} …"


def remote_text(model: str) -> str:
    """What has to be known before the first question goes to a remote model."""
    return (
        f"note: {cell_text(model)} is a remote model: the question, names, comments and notes of "
        "tables and columns, learned questions like it, and sample values of your data leave this "
        "machine (said once per model)"
    )


def tell_remote_once(place: str, cache: Path, text: str) -> None:
    """Say it before the first use of a remote model on this machine; ``-q`` does not hide it.

    Args:
        place: the model and where it is: the same name at another address is told anew.
        text: what is said.
    """
    import hashlib

    mark = cache / "notices" / hashlib.sha256(place.encode()).hexdigest()[:16]
    if mark.exists():
        return
    output.note(text)
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError:
        return  # said again next time: better twice than never
