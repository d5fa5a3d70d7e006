"""A time limit, Ctrl-C and giving up for work inside a database engine.

While an engine computes, Python's own signal handling stands still in that thread.
So the work runs in a thread of its own, and the caller waits, cancels and reports.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from dbrag.cancel import check
from dbrag.errors import LimitReached

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbrag.sources import Session

T = TypeVar("T")

_RECANCEL_S = 0.02
_GRACE_S = 10.0


def within(
    session: Session, work: Callable[[], T], seconds: float, hint: str = "", doing: str = ""
) -> T:
    """The result of ``work``, which uses ``session`` and nothing else does meanwhile.

    Args:
        seconds: time the work may take; then its statement is cancelled.
        hint: hint of the error, how to get by with less time or allow more.
        doing: what takes the time, for the error's message: "reading shop.orders".

    Raises:
        LimitReached: time is up; ``work`` has ended.
        KeyboardInterrupt: Ctrl-C; the statement is cancelled.
        Cancelled: nobody wants the result any more; the statement is cancelled.
        BaseException: whatever ``work`` raises.
    """
    done = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(work())
        except BaseException as error:  # handed over to the caller below
            errors.append(error)
        finally:
            done.set()

    worker = threading.Thread(target=call, name="dbrag-statement", daemon=True)
    started = time.monotonic()
    worker.start()
    try:
        # In slices: on Windows a long wait would not see Ctrl-C.
        while not done.wait(max(0.0, min(0.5, seconds - (time.monotonic() - started)))):
            if time.monotonic() - started >= seconds:
                break
            check()
    except BaseException:
        _stop(session, done)
        raise
    late = not done.is_set()
    if late:
        _stop(session, done)
    if results:
        return results[0]
    if late:
        what = f"{doing} was stopped" if doing else "stopped"
        raise LimitReached(f"{what} after {seconds:g} s, the time limit", hint) from (
            errors[0] if errors else None
        )
    raise errors[0]


def _stop(session: Session, done: threading.Event) -> None:
    """Cancel until the work ends: a cancel between two statements has no effect."""
    give_up = time.monotonic() + _GRACE_S
    impatient = 0
    while not done.is_set() and time.monotonic() < give_up:
        try:
            session.cancel()
            done.wait(_RECANCEL_S)
        except KeyboardInterrupt:
            # A second Ctrl-C must not leave the statement running on the server.
            impatient += 1
            if impatient > 1:
                raise
