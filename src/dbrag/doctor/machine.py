"""Python, cores, memory, disk and the cache folder."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dbrag.doctor.check import Check, ok, problem, size, warning
from dbrag.models import machine

if TYPE_CHECKING:
    from dbrag.doctor.weights import Needs
    from dbrag.settings import Settings

WITHOUT_MODEL_BYTES = 500_000_000
"""Memory that indexing and searching want beside a chat model: encoder, engine, index."""
SPARE_DISK_BYTES = 1_000_000_000
"""Free space below which an index or converted data files may not fit."""


def software() -> Iterator[Check]:
    """Versions, and the cores that this process may use."""
    import sqlite3

    import dbrag

    yield ok(
        "python",
        f"Python {platform.python_version()} ({sys.executable}), "
        f"SQLite {sqlite3.sqlite_version}, dbrag {dbrag.__version__}",
    )
    cores = machine.usable_cores()
    yield ok(
        "platform",
        f"{platform.system()} {platform.release()} on {platform.machine()}, "
        f"{cores} {'core' if cores == 1 else 'cores'} for dbrag",
    )


def memory(needs: Needs) -> Iterator[Check]:
    """Free memory against what the chat model takes."""
    free = machine.available_memory()
    wanted = needs.memory_bytes or WITHOUT_MODEL_BYTES
    whom = needs.model if needs.memory_bytes else "indexing and searching"
    if free is None:
        yield ok("memory", f"this system does not tell; {whom} needs {size(wanted)}")
        return
    text = f"{size(free)} free, {whom} needs {size(wanted)}"
    if free >= wanted:
        yield ok("memory", text)
    elif needs.memory_bytes:
        hint = "close other programs, or choose another model: dbrag doctor --model openai:NAME"
        yield problem("memory", text, hint)
    else:
        yield warning("memory", text, "close other programs, then dbrag doctor")


def disk(settings: Settings, needs: Needs) -> Iterator[Check]:
    """Free space where the cache lies against what is still to be fetched."""
    folder = settings.cache_dir
    free = shutil.disk_usage(_existing(folder)).free
    text = f"{size(free)} free for {str(folder)!r}"
    if needs.missing_bytes:
        text += f", {size(needs.missing_bytes)} of weights to fetch"
    hint = "free some space, or take another disk: DBRAG_CACHE=/path dbrag doctor"
    if free < needs.missing_bytes:
        yield problem("disk", text, hint)
    elif free < needs.missing_bytes + SPARE_DISK_BYTES:
        yield warning("disk", f"{text}; an index may need more", hint)
    else:
        yield ok("disk", text)


def cache(settings: Settings) -> Iterator[Check]:
    """Whether the cache folder can be written; one that is missing is not made."""
    folder = settings.cache_dir
    hint = "choose another folder: DBRAG_CACHE=/path dbrag doctor"
    there = _existing(folder)
    if not there.is_dir():
        yield problem("cache", f"{str(there)!r} is a file, not a folder", hint)
    elif there != folder:
        if os.access(there, os.W_OK | os.X_OK):
            yield ok("cache", f"{str(folder)!r} does not exist yet; it will be made when needed")
        else:
            yield problem("cache", f"no permission to make {str(folder)!r}", hint)
    else:
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"dbrag")
        except OSError as error:
            reason = error.strerror or str(error)
            yield problem("cache", f"{str(folder)!r} cannot be written: {reason}", hint)
        else:
            yield ok("cache", f"{str(folder)!r} can be written")


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above that exists."""
    folder = folder.absolute()
    while not os.path.exists(folder) and folder.parent != folder:  # False without permission
        folder = folder.parent
    return folder
