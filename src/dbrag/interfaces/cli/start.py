"""``dbrag`` alone: what to type next, by what there is."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from dbrag.interfaces.cli import output

if TYPE_CHECKING:
    from dbrag.interfaces.cli.options import Run
    from dbrag.settings import Settings

DEMO = "demo/shop.db"
DEMO_QUESTION = "How many customers live in each city?"
QUESTION = "How many rows are there?"
ENDINGS = (
    *(".sqlite", ".db", ".sqlite3", ".duckdb", ".ddb", ".csv", ".tsv", ".tab", ".json", ".jsonl"),
    *(".ndjson", ".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".parquet", ".pq", ".feather"),
    ".arrow",
)
"""Of databases and data files; the lists in ``dbrag.sources`` would load the engines with them."""
_LOOKED_AT = 10_000
"""Entries of the folder; in a larger one the user knows what to name."""


def start(run: Run) -> int:
    """Print the next commands; nothing is opened, and nothing heavy imported."""
    settings = run.settings()
    steps = [*missing_models(settings), asking(run, settings)]
    lines = []
    for number, (why, command) in enumerate(steps, 1):
        lines += [f"{number}. {why}" if len(steps) > 1 else why, f"   {command}"]
    lines += ["", "dbrag --help lists the commands, dbrag doctor checks this machine."]
    output.emit("\n".join(lines))
    return 0


def missing_models(settings: Settings) -> list[tuple[str, str]]:
    """What a local model lacks: (what it is, the command)."""
    from dbrag.errors import DbragError
    from dbrag.models import weights
    from dbrag.models.load import is_remote, spec_in_full

    names = [settings.encoder] if settings.encoder.startswith("local:") else []
    steps = []
    if not is_remote(settings.model):
        names.insert(0, spec_in_full(settings.model))
        if not _installed("xllamacpp"):
            what = "The package that runs a model on this machine is missing:"
            steps.append((what, "pip install 'dbrag[local]'"))
    wanted = 0
    for name in names:
        try:
            weights.glance(name, settings)
        except DbragError:
            if weights.is_path(name):
                steps.append((f"The model {name!r} cannot be read:", "dbrag doctor"))
            else:
                wanted += weights.spec_of(name).bytes
    if wanted:
        size = f"{wanted / 1e9:.2f} GB" if wanted >= 1e8 else f"{wanted / 1e6:.0f} MB"
        steps.append((f"Fetch the model, once ({size}):", "dbrag models pull"))
    return steps


def asking(run: Run, settings: Settings) -> tuple[str, str]:
    """The command that asks something of what is here, else the one that writes a demo."""
    if run.sources or run.index:
        from dbrag.interfaces.cli.doctor import next_flags

        return "Ask:", f'dbrag ask{next_flags(run)} "{QUESTION}"'
    if settings.sources or settings.index:
        return "Ask the sources of your settings:", f'dbrag ask "{QUESTION}"'
    if os.path.isfile(DEMO):
        return "Ask the demo:", f'dbrag ask -s {DEMO} "{DEMO_QUESTION}"'
    files = data_files(".")
    if len(files) == 1:
        return "Ask the data here:", f'dbrag ask -s {_quoted(files[0])} "{QUESTION}"'
    if files:
        named = f"{len(files):,} data files" if len(files) < _LOOKED_AT else "data files"
        return f"Ask the {named} here:", f'dbrag ask -s . "{QUESTION}"'
    return "Try it on a small shop:", "dbrag demo"


def data_files(folder: str) -> list[str]:
    """Names of the databases and data files right in a folder, sorted; none is opened."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= _LOOKED_AT:
                    break
                if _is_data(entry.name) and entry.is_file():
                    found.append(entry.name)
    except OSError:
        return []
    return sorted(found)


def _is_data(name: str) -> bool:
    return not name.startswith((".", "~$")) and os.path.splitext(name)[1].lower() in ENDINGS


def _quoted(name: str) -> str:
    """A file name as a word for the shell that is no flag."""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def _installed(module: str) -> bool:
    import importlib.util

    if module in sys.modules:
        return sys.modules[module] is not None
    return importlib.util.find_spec(module) is not None
