"""One finding, and how anything that goes wrong becomes one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

from dbrag.errors import DbragError
from dbrag.textsafe import mask_secrets

Status = Literal["ok", "warning", "problem"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Check:
    """One finding.

    Attributes:
        name: what was looked at, such as ``memory`` or ``source shop``.
        message: what was found, one line, without secrets.
        hint: the next command to type; only a finding that is ok may have none.
    """

    name: str
    status: Status
    message: str
    hint: str = ""

    def __post_init__(self) -> None:
        for field in ("name", "message", "hint"):
            text = " ".join(mask_secrets(getattr(self, field)).split())
            object.__setattr__(self, field, text)
        if self.status != "ok" and not self.hint:
            raise ValueError(f"the check {self.name!r} tells no way out")

    def to_dict(self) -> dict[str, str]:
        """As in the JSON of the command."""
        return {
            "name": self.name,
            "status": self.status,
            "message": self.message,
            "hint": self.hint,
        }


def ok(name: str, message: str, hint: str = "") -> Check:
    """Nothing to do."""
    return Check(name, "ok", message, hint)


def warning(name: str, message: str, hint: str) -> Check:
    """It works, but not as well or as safely as it could."""
    return Check(name, "warning", message, hint)


def problem(name: str, message: str, hint: str) -> Check:
    """It does not work."""
    return Check(name, "problem", message, hint)


def of_error(name: str, error: DbragError, hint: str, *, ours: str = "") -> Check:
    """A problem in the words of an error.

    Args:
        hint: where the error itself has none.
        ours: instead of the error's own.
    """
    return Check(name, "problem", error.message, ours or error.hint or hint)


def guarded(name: str, look: Callable[[], Iterable[Check]], hint: str) -> Iterator[Check]:
    """The findings of ``look``; whatever it raises is the last one of them."""
    try:
        yield from look()
    except DbragError as error:
        yield of_error(name, error, hint)
    except Exception as error:  # a broken library must not hide the other findings
        yield problem(name, f"cannot be checked: {type(error).__name__}: {error}"[:500], hint)


class TooSlow(Exception):
    """No answer within the time."""


def within(seconds: float, call: Callable[[], T]) -> T:
    """What ``call`` gives, in another thread, which is left alone when it takes too long.

    Raises:
        TooSlow: it does.
        Exception: whatever ``call`` raises.
    """
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True, name="dbrag-doctor")
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not found:
        raise TooSlow
    return found[0]


def size(n: int) -> str:
    """Bytes for people, decimal units."""
    return f"{n / 1e9:,.1f} GB" if n >= 1e8 else f"{n / 1e6:,.1f} MB"
