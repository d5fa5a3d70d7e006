"""Every test here runs on five engines; the outcomes become the matrix kind × engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dbrag
from dbrag.models.testing import HashEmbedder, ScriptedModel
from tests.matrix.beds import Bed, DuckBed, FilesBed, MariaBed, PostgresBed, SqliteBed
from tests.matrix.report import ENGINES, Matrix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_matrix = Matrix()
# Read before any test hides the environment.
_file = os.environ.get("DBRAG_MATRIX")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mark = item.get_closest_marker("kind")
        if mark is not None:
            item.user_properties.append(("kind", mark.args[0]))
            item.user_properties.append(("engine", item.callspec.params["bed"]))  # type: ignore[attr-defined]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    told = dict(report.user_properties)
    if "kind" not in told or (report.when != "call" and report.outcome == "passed"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    reason = str(reason).removeprefix("Skipped: ")
    _matrix.add(str(told["kind"]), str(told["engine"]), report.outcome, reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _matrix.cells and _file:
        Path(_file).write_text(_matrix.markdown() + "\n", encoding="utf-8")
        terminalreporter.write_line(f"the matrix of kinds and engines: {_file}")


@pytest.fixture(params=ENGINES)
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bed]:
    """An empty database (or folder) of the engine."""
    made: Bed
    match request.param:
        case "sqlite":
            made = SqliteBed(tmp_path)
        case "duckdb":
            made = DuckBed(tmp_path)
        case "postgres":
            made = PostgresBed()
        case "mariadb":
            made = MariaBed()
        case _:
            made = FilesBed(tmp_path)
    yield made
    made.close()


@pytest.fixture
def connect(bed: Bed, tmp_path: Path) -> Iterator[Callable[..., dbrag.Database]]:
    """Opens the bed with dbrag: ``connect(*replies of the model, **settings)``."""
    opened: list[dbrag.Database] = []

    def open_(*replies: str, also: Sequence[str] = (), **settings: object) -> dbrag.Database:
        database = dbrag.connect(
            bed.spec,
            *also,
            index=tmp_path / "index",
            chat_model=ScriptedModel(list(replies)),
            embedder=HashEmbedder(),
            # Changes are to be seen at once.
            **{"refresh_s": 0.001, **settings},
        )
        opened.append(database)
        return database

    yield open_
    for database in opened:
        database.close()
