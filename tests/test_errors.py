"""The error tree: complete in its drawing, with the codes and exit codes of the contract."""

from __future__ import annotations

import inspect
import re

import pytest

from dbrag import errors
from dbrag.errors import DbragError

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, DbragError)
]
EXIT_CODES = {
    DbragError: 1,
    errors.UsageError: 2,
    errors.SourceError: 3,
    errors.Unanswerable: 4,
    errors.ModelError: 5,
    errors.LimitReached: 6,
}


def drawn() -> dict[str, str]:
    """Each class in the docstring's tree, and the class it hangs under."""
    parents: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in errors.__doc__.split("::")[1].splitlines():
        found = re.match(r"([\s│├└─]*)(\w+)", line)
        if not found or line.startswith("Every"):
            continue
        depth, name = len(found[1]), found[2]
        if not line.startswith("    "):
            break
        while path and path[-1][0] >= depth:
            path.pop()
        parents[name] = path[-1][1] if path else ""
        path.append((depth, name))
    return parents


def test_the_drawing_is_the_tree() -> None:
    actual = {cls.__name__: cls.__base__.__name__ for cls in CLASSES if cls is not DbragError}
    assert drawn() == {"DbragError": "", **actual}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_has_its_code_and_exit_code(cls: type[DbragError]) -> None:
    assert cls.__doc__
    error = cls("what", "do this")
    assert error.to_dict() == {"code": cls.code, "message": "what", "hint": "do this"}
    assert str(error) == "what"
    expected = next((EXIT_CODES[base] for base in cls.__mro__ if base in EXIT_CODES), None)
    if issubclass(cls, errors.IndexUnusable):
        expected = 3  # an index is as unreadable as a source
    assert cls.exit_code == expected


def test_codes_are_unique() -> None:
    codes = [cls.code for cls in CLASSES]
    assert sorted(set(codes)) == sorted(codes)


def test_a_hint_may_be_left_out() -> None:
    assert DbragError("what").to_dict()["hint"] == ""
