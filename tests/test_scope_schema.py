"""The live schema: read again when it changed, asked of a server once a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbrag import scope
from dbrag.types import Table, TableRef

if TYPE_CHECKING:
    import pytest


class Live:
    """A source that counts what it is asked."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.state = 0
        self.asked: list[str] = []

    def stamp(self) -> str:
        self.asked.append("stamp")
        return str(self.state)

    def reflect(self) -> list[Table]:
        self.asked.append("reflect")
        return [Table(TableRef("s", None, f"t{self.state}"), ())]


def names(source: Any) -> list[str]:
    return [table.ref.name for table in scope.reflected(source)]


def test_a_file_is_looked_at_every_time() -> None:
    source = Live("/data/shop.db")
    assert names(source) == names(source) == ["t0"]
    source.state = 1
    assert names(source) == ["t1"]
    assert source.asked == ["stamp", "reflect", "stamp", "stamp", "reflect"]


def test_a_server_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    source = Live("postgresql://reader@db/shop")
    assert names(source) == names(source) == ["t0"]
    source.state = 1
    clock[0] += 0.5
    assert names(source) == ["t0"]
    clock[0] += 1.0
    assert names(source) == ["t1"]
    assert source.asked == ["stamp", "reflect", "stamp", "reflect"]


def test_two_views_of_one_place_do_not_mix() -> None:
    whole, redacted = Live("postgresql://db/shop"), Live("postgresql://db/shop")
    redacted.state = 7
    assert (names(whole), names(redacted), names(whole)) == (["t0"], ["t7"], ["t0"])
