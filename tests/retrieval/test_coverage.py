from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dbrag.index.build import build_index
from dbrag.index.store import open_index
from dbrag.index.words import asked_stems
from dbrag.models.testing import HashEmbedder
from dbrag.retrieval.coverage import table_coverage
from dbrag.settings import Settings
from dbrag.sources import open_sources
from tests.index.conftest import write_db

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrag.index.store import Index

SCHOOL = """
CREATE TABLE Highschooler (id INTEGER PRIMARY KEY, grade INTEGER);
CREATE TABLE friend (
    one INTEGER REFERENCES Highschooler (id), club INTEGER REFERENCES club (number)
);
CREATE TABLE club (number INTEGER PRIMARY KEY, budget REAL, town INTEGER REFERENCES town (key));
CREATE TABLE town (key INTEGER PRIMARY KEY, mayor TEXT);
CREATE TABLE unrelated (budget REAL);
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("coverage")
    write_db(folder / "school.db", SCHOOL)
    sources, _ = open_sources([str(folder / "school.db")])
    build_index(folder / "index", sources, embedder=HashEmbedder(), settings=Settings())
    with open_index(folder / "index") as opened:
        yield opened


def covered(index: Index, question: str) -> dict[str, float]:
    shares = table_coverage(question, index.tables, index.adjacency)
    return {t.ref.name: float(s) for t, s in zip(index.catalog.tables, shares, strict=True)}


def test_tables_within_two_joins_cover_together(index: Index) -> None:
    shares = covered(index, "grade and budget")
    # grade: 1 table of 5 knows it, budget: 2.
    grade, budget = math.log(6 / 1.5), math.log(6 / 2.5)
    assert shares["Highschooler"] == pytest.approx(1)  # club is two joins away
    assert shares["friend"] == pytest.approx(1)
    assert shares["unrelated"] == pytest.approx(budget / (grade + budget))
    assert shares["town"] == pytest.approx(budget / (grade + budget))  # grade is three away


def test_nothing_known_covers_nothing(index: Index) -> None:
    assert set(covered(index, "quantum chromodynamics").values()) == {0.0}
    assert set(covered(index, "…").values()) == {0.0}


def test_more_words_than_bits(index: Index) -> None:
    question = " ".join(f"word{i}" for i in range(150)) + " grade mayor"
    assert covered(index, question)["Highschooler"] > 0
    many = "grade " + " ".join(f"budget club{i}" for i in range(90))
    assert 0 < covered(index, many)["Highschooler"] <= 1 + 1e-6


def test_two_words_for_a_name_in_one(index: Index) -> None:
    assert "highschool" in asked_stems("How many high schoolers?", 100)
    scores = index.tables.scores(HashEmbedder().encode(["x"])[0], "Count the high schoolers")
    best = index.catalog.tables[int(np.argmax(scores.bm25))]
    assert best.ref.name == "Highschooler"
