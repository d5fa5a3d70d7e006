"""Repair rounds of ``ask``: what the model is shown when its program failed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dbrag.models.base import Prompt
from tests.conftest import connect


@pytest.fixture
def league(tmp_path: Path) -> Path:
    path = tmp_path / "league.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE club (club_id INTEGER PRIMARY KEY, motto TEXT);"
            "CREATE TABLE wage (club_id INT REFERENCES club, amount INT);"
            "INSERT INTO club VALUES (1, 'Onward'), (2, 'Never');"
            "INSERT INTO wage VALUES (1, 10), (1, 30), (2, 20);"
        )
    return path


def test_a_table_that_the_failed_program_means_is_shown(league: Path) -> None:
    seen: list[str] = []

    def write(prompt: Prompt) -> str:
        seen.append(prompt.context)
        if len(seen) == 1:
            # an unknown function beside it: nothing here can be mended by rule
            return "SELECT motto, no_such(amount), x FROM wage"
        return "SELECT motto, MAX(amount) FROM wage JOIN club USING (club_id) GROUP BY club_id"

    with connect(league, write, write, votes=1) as db:
        answer = db.ask("What is the highest amount of a wage?")
    assert ["CREATE TABLE club" in context for context in seen] == [False, True]
    assert answer.execution is not None
    assert sorted(answer.execution.rows) == [("Never", 20), ("Onward", 30)]


def test_a_repeated_failure_is_rewritten_freely_once(league: Path) -> None:
    with connect(league, *["SELECT colour FROM wage"] * 3, votes=1) as db:
        answer = db.ask("What is the highest amount of a wage?")
    assert answer.status == "failed"
    assert answer.error is not None
    assert "colour" in answer.error["message"]


def test_a_repeated_empty_result_stands(league: Path) -> None:
    with connect(league, *["SELECT amount FROM wage WHERE amount > 99"] * 3, votes=1) as db:
        answer = db.ask("Which amount of a wage is above 99?")
    assert answer.status == "answered"
    assert answer.text == "No row matches. (not sure: check the SQL)"


def test_what_neither_the_data_nor_the_question_can_mean_is_said(league: Path) -> None:
    replies = ["SELECT COUNT(*) FROM referees"] * 3
    with connect(league, *replies, votes=1) as db:
        answer = db.ask("How many referees have a wage?")
    assert (answer.status, answer.exit_code) == ("unanswerable", 4)
    assert answer.text == (
        "this cannot be answered here, because nothing in league is called 'referees'"
    )


def test_a_question_is_not_called_unanswerable_where_a_program_failed_otherwise(
    league: Path,
) -> None:
    replies = ["SELECT COUNT(*) FROM referees", "SELECT COUNT(*), no_such(amount) FROM wage"]
    with connect(league, *replies, votes=2, rounds=0) as db:
        answer = db.ask("How many referees have a wage?")
    assert answer.status == "failed"


def test_mending_can_be_switched_off(league: Path) -> None:
    sql = "SELECT motto FROM wage WHERE amount = 20"
    with connect(league, sql, votes=1, rounds=0) as db:
        mended = db.ask("Which motto has a wage of 20?")
    with connect(league, sql, votes=1, rounds=0, mend="off") as db:
        raw = db.ask("Which motto has a wage of 20?")
    assert mended.execution is not None
    assert mended.execution.rows == (("Never",),)
    assert [w.message for w in mended.warnings if w.code == "mended"] == ["joined club"]
    assert raw.status == "failed"
