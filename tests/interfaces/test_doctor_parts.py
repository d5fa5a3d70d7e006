"""The parts of ``dbrag doctor`` by themselves: findings, time limits, imports, extras."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from dbrag.doctor import Wanted, check, examine, extras, weights
from dbrag.doctor.check import Check, TooSlow, within
from dbrag.interfaces.cli import serve

PASSWORD = "geheimnis-4711"


def test_extras_are_those_of_the_package() -> None:
    import tomllib

    path = Path(__file__).parents[2] / "pyproject.toml"
    declared = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    known = {extra.name: extra.modules for extra in extras.EXTRAS}
    assert set(known) <= set(declared)
    assert len(known["serve"]) == len(declared["serve"])
    assert set(known["serve"]) == set(serve.NEEDED)


def test_a_finding_without_a_way_out_is_none() -> None:
    with pytest.raises(ValueError, match="no way out"):
        Check("x", "warning", "something")
    masked = Check("x", "ok", f"at postgresql://me:{PASSWORD}@host/db\nnext")
    assert PASSWORD not in masked.message
    assert "\n" not in masked.message


def test_what_takes_too_long_is_left() -> None:
    never = threading.Event()
    with pytest.raises(TooSlow):
        within(0.05, never.wait)
    never.set()
    assert within(30, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(30, lambda: 1 // 0)


def test_imports_are_tried_in_another_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "deadly.py").write_text("import os; os._exit(9)")
    (tmp_path / "broken.py").write_text("raise OSError('no such processor')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    told = dict(weights.import_errors(["json", "broken", "deadly", "never"]))
    assert told == {
        "json": "",
        "broken": "OSError: no such processor",
        "deadly": "its process ended with 9",
        "never": "its process ended with 9",
    }


def test_findings_come_as_they_are_made() -> None:
    first = next(iter(examine(Wanted())))
    assert first.name == "python"
    assert json.dumps(first.to_dict())
    assert check.size(5_600_000) == "5.6 MB"
