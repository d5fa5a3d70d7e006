"""Signs of programs, their likelihood, and how sure an answer is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.logistic import sigmoid
from dbrag.reasoning.confidence import NOISY, confidence, doubts_of, features, with_noise
from dbrag.reasoning.program_signs import MOST, ProgramSigns, asked, signs_of
from dbrag.reasoning.sureness import SURE, UNSURE, in_words
from dbrag.reasoning.verify import UNKNOWN, likelihood
from dbrag.reasoning.vote import Ballot, tally
from dbrag.types import Column, Execution, Program, ResultColumn, Table, TableRef, ValueMatch

SINGER = Table(TableRef("db", None, "singer"), (Column("name"), Column("country"), Column("age")))
KNOWN = frozenset({"singer", "name", "countri", "age", "highschool"})
QUESTION = asked(
    "What is the age of the French singer called Adele?",
    KNOWN,
    [ValueMatch("country", "France", "French")],
    similarity=0.6,
)


def signs(sql: str, *rows: tuple[object, ...], **seen: float) -> ProgramSigns:
    execution = Execution(tuple(ResultColumn("c", "") for _ in (rows or [()])[0]), rows, 0.0)
    found = signs_of(
        QUESTION,
        Program((), sql, "sqlite", (SINGER.ref,)),
        execution,
        [SINGER],
        **seen,  # type: ignore[arg-type]
    )
    assert found is not None
    return found


def test_what_a_question_says_of_a_source() -> None:
    assert QUESTION.known == {"age", "singer"}
    assert QUESTION.strange == ("adele",)
    assert QUESTION.unknown == pytest.approx(1 / 4)  # age, french, singer, adele
    assert (QUESTION.similarity, QUESTION.doubt) == (0.6, 0.0)


def test_two_words_of_a_question_may_be_one_name() -> None:
    said = asked("Ages of high schoolers", {"age", "highschool"}, [], similarity=-0.2, doubt=0.8)
    assert said.strange == ()
    assert (said.similarity, said.doubt) == (0.0, 0.8)


def test_signs() -> None:
    right = signs("SELECT age FROM singer WHERE country = 'France'", (35,), logprob=-0.02)
    assert (right.unused, right.single, right.hollow) == (0, 1, 0)
    assert right.logprob == pytest.approx(-0.2)
    wrong = signs("SELECT name FROM singer", ("x",), ("x",), repaired=2, mended=9, logprob=-7.0)
    assert (wrong.unused, wrong.repeated) == (1, 1)
    assert (wrong.repaired, wrong.mended, wrong.logprob) == (2, MOST, -5.0)
    nested = "SELECT age FROM singer WHERE age > (SELECT AVG(age) FROM singer)"
    assert signs(nested).nested == 1
    assert (signs(nested).hollow, signs(nested, (0, None)).hollow) == (1, 1)


@pytest.mark.parametrize("told", [math.nan, math.inf, 40.0, -math.inf])
def test_what_is_no_log_probability_stays_in_bounds(told: float) -> None:
    program = Program((), "SELECT 1", "sqlite", ())
    execution = Execution((ResultColumn("n", "integer"),), ((1,),), 0.0)
    nothing = asked("How many?", (), (), similarity=math.nan)
    signs = signs_of(nothing, program, execution, (), logprob=told)
    assert signs is not None
    assert -5.0 <= signs.logprob <= 0.0
    assert 0.0 < likelihood(signs) < 1.0


def test_a_statement_that_does_not_parse_has_no_signs() -> None:
    program = Program((), "SELECT FROM WHERE (", "sqlite", (SINGER.ref,))
    assert signs_of(QUESTION, program, Execution((), (), 0.0), [SINGER]) is None
    assert likelihood(None) == UNKNOWN


def test_likelihood_is_the_logistic_of_the_weighted_signs() -> None:
    weights = ProgramSigns(bias=0.5, logprob=2.0, hollow=-1.0)
    told = likelihood(ProgramSigns(logprob=-0.25, hollow=1.0), weights)
    assert told == pytest.approx(1 / (1 + math.exp(1.0)))


def test_a_better_program_is_likelier() -> None:
    good = signs("SELECT age FROM singer WHERE country = 'France'", (35,))
    bad = signs("SELECT name FROM singer", repaired=2)
    assert likelihood(bad) < 0.3 < 0.7 < likelihood(good)


@given(st.floats(allow_nan=False))
def test_sigmoid(x: float) -> None:
    assert 0.0 < sigmoid(x) < 1.0 or x < -30 or x > 30
    assert sigmoid(x) + sigmoid(-x) == pytest.approx(1.0)


def test_votes_for_a_result_make_it_surer_and_more_likely_programs_do() -> None:
    alone = [Ballot("a", False, 0.8)]
    both = [Ballot("a", False, 0.8), Ballot("a", False, 0.6)]
    told = [confidence(ballots, tally(ballots)) for ballots in (alone, both)]  # type: ignore[arg-type]
    assert told[0] < told[1]
    poor = [Ballot("a", False, 0.2)]
    assert confidence(poor, tally(poor)) < told[0]  # type: ignore[arg-type]


def test_no_answer_is_surer_than_its_source() -> None:
    agreed = [Ballot("a", False, 0.9)] * 3
    counted = tally(agreed)
    assert counted is not None
    alone = confidence(agreed, counted)
    assert confidence(agreed, counted, doubt=0.7) == pytest.approx(0.3 * alone)
    assert confidence(agreed, counted, doubt=1.0) == 0.0


def test_noise_makes_unsure() -> None:
    why = "the data are written in several ways where the SQL takes them as they stand"
    assert with_noise(0.9, "") == (NOISY, f"not sure: {why}; check the SQL")
    told = with_noise(0.2, "not sure: the programs tried do not agree; check the SQL")
    assert told == (0.2, f"not sure: {why}; the programs tried do not agree; check the SQL")
    assert NOISY < UNSURE


def test_features_of_confidence() -> None:
    ballots = [Ballot("a", False, 0.5), Ballot("b", False, 0.9), Ballot("b", False, 0.75)]
    counted = tally(ballots)
    assert counted is not None
    assert features(ballots, counted) == (1.0, pytest.approx(math.log(9)), 1.0, 1.0)


def test_doubts_are_told_of_unsure_answers_only() -> None:
    split = tally([Ballot(key, False, 0.5) for key in "abc"])
    agreed = tally([Ballot("a", False, 0.5)] * 2)
    assert split is not None
    assert agreed is not None
    near = asked("colour of singers", KNOWN, [], similarity=0.5, doubt=0.6)
    known = asked("ages of singers", KNOWN, [], similarity=0.5)
    assert doubts_of(0.9, agreed, near) == ""
    assert doubts_of(0.3, agreed, near) == (
        "not sure: another source fits nearly as well; nothing here is called 'colour'; "
        "check the SQL"
    )
    assert doubts_of(0.9, split, known) == "the programs tried do not agree; check the SQL"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (SURE, "sure (70%)"),
        (0.6, "fairly sure (60%)"),
        (UNSURE, "fairly sure (50%)"),
        (0.1, "not sure (10%)"),
    ],
)
def test_in_words(told: float, words: str) -> None:
    assert in_words(told) == words
