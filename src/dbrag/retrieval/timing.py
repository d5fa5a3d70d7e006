"""Where the time of a search goes: seconds by stage."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class StageTimer:
    """Adds up the seconds of named stages; may be shared by threads.

    Stages that run side by side each count in full, so their sum may exceed the whole.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the body's time, also when it fails."""
        started = time.perf_counter()
        try:
            yield
        finally:
            taken = time.perf_counter() - started
            with self._lock:
                self._seconds[name] = self._seconds.get(name, 0.0) + taken

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds by stage so far, a copy, in the order in which stages first ended."""
        with self._lock:
            return dict(self._seconds)
