"""Removal of generations that are no longer, or never became, valid."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from dbrag.errors import IndexLocked, IndexUnusable
from dbrag.index.locks import is_read, writer_lock
from dbrag.index.manifest import read_manifest

if TYPE_CHECKING:
    from dbrag.index.layout import Layout


def remove_leftovers(layout: Layout) -> None:
    """Remove generations that are neither valid nor being read; the writer's lock is held.

    The manifest is read from the disk: an interrupt may come right after switching.
    """
    try:
        valid = read_manifest(layout.root)
    except IndexUnusable:
        valid = None
    for number, generation in layout.generations().items():
        current = valid is not None and number == valid.generation
        if not current and not is_read(generation.reader_lock):
            shutil.rmtree(generation.root, ignore_errors=True)


def tidy(layout: Layout) -> None:
    """The same in passing: nothing happens where another process writes, or nothing may be."""
    if len(layout.generations()) > 1:
        with suppress(IndexLocked, OSError), writer_lock(layout.writer_lock):
            remove_leftovers(layout)
