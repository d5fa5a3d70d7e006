"""Giving up work whose result nobody wants any more: a client that left, a stopped server.

Work is done in threads that cannot be ended from outside. So the one who starts it sets a
:class:`Cancellation` for it, and the places that wait for long (an engine's statement, a
model's reply) look at it a few times a second, stop what they wait for, and raise.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Cancelled(BaseException):
    """The work was given up. As with Ctrl-C no ``except Exception`` may stop it."""


class Cancellation:
    """Says to the work that it was set for whether to go on; any thread may set it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Give the work up; may be called more than once."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._event.is_set()


_current: ContextVar[Cancellation | None] = ContextVar("dbrag_cancellation", default=None)


@contextmanager
def cancellable(by: Cancellation | None) -> Iterator[None]:
    """Within it, in this thread, :func:`check` looks at ``by``; None: nothing cancels."""
    token = _current.set(by)
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """Return if the work of this thread is still wanted.

    Raises:
        Cancelled: it is not.
    """
    current = _current.get()
    if current is not None and current.cancelled:
        raise Cancelled
