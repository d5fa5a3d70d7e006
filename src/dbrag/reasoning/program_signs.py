"""Signs of a right program: what can be seen of it without knowing the answer.

A small model writes several programs for one question; which of them to believe is
learned from plain signs (``reasoning/verify.py``): how likely the model found its own
text, whether the program uses what the question speaks of, and what the result looks like.
Tried and left out, because they told nothing on training programs: whether the question
says the shown columns, the tables read, and the texts and numbers compared, whether the
program compares the values that the question mentions, and whether words such as "how
many", "each", "not" have their clause.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.index.words import STOP_WORDS, plain_words, split_identifier, stemmed
from dbrag.types import Execution, Program, Table, ValueMatch

MOST = 3.0
"""Counts above this say no more."""
LEAST_LOGPROB, USUAL_LOGPROB = -0.5, -0.1
"""Mean log-probability per token below which a text is as doubtful as at it; that of a model
that does not tell it."""
_QUIET = """
least fewest highest lowest largest smallest biggest greatest maximum minimum max min top best
worst last earliest latest oldest youngest longest shortest newest cheapest sum mean greater
less larger smaller higher lower older younger longer shorter earlier later exactly
alphabetical alphabetically ascending descending order ordered sort sorted rank ranked group
grouped called named belong belongs contain contains containing include includes including
display provide get along corresponding respectively
"""
QUIET = STOP_WORDS | frozenset(_QUIET.split())
"""Words of questions that compare, count and sort, or ask: no source has to know them."""


@dataclass(frozen=True, slots=True)
class ProgramSigns:
    """What is seen of one program that ran. Counts are cut at :data:`MOST`.

    Attributes:
        bias: always 1.
        logprob: mean log-probability of the reply's tokens, from -0.5 to 0, times ten.
        repaired: rounds of repair.
        mended: changes made by rule.
        hollow: 1 where the result carries nothing: no row, or only NULLs and zeros.
        unused: words of the question that names of the source know, and none that the
            program uses.
        repeated: 1 where rows repeat.
        single: 1 for one cell.
        nested: subqueries and set operations.
        unknown: share of the question's telling words that neither names nor mentioned
            values of the source know.
        similarity: the best table's similarity to the question, 0..1.
    """

    bias: float = 1.0
    logprob: float = 0.0
    repaired: float = 0.0
    mended: float = 0.0
    hollow: float = 0.0
    unused: float = 0.0
    repeated: float = 0.0
    single: float = 0.0
    nested: float = 0.0
    unknown: float = 0.0
    similarity: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question says of one source, made once for all its programs.

    Attributes:
        known: stems of its telling words that names of the source know.
        strange: telling words that neither names nor mentioned values of the source know.
        unknown, similarity: as in :class:`ProgramSigns`.
        doubt: how likely another source is meant, 0..1 (``reasoning/source_doubt.py``).
    """

    known: frozenset[str]
    strange: tuple[str, ...]
    unknown: float
    similarity: float
    doubt: float


def asked(
    question: str,
    known: Collection[str],
    matches: Iterable[ValueMatch],
    *,
    similarity: float,
    doubt: float = 0.0,
) -> Asked:
    """What the question says of a source.

    Args:
        known: the stemmed words of the source's names.
        matches: values of the source that it mentions.
        similarity: of the best table, -1..1.
        doubt: how likely another source is meant.
    """
    words = plain_words(question)
    found = list(matches)
    mentioned = {stem for m in found for stem in stemmed(plain_words(m.said or m.value))}
    # "high schooler" is known to a source with a table "Highschooler"
    joined = stemmed([one + other for one, other in pairwise(words)])
    for pair, stem in zip(pairwise(words), joined, strict=True):
        if stem in known:
            mentioned.update(stemmed(list(pair)))
    telling = dict(zip(stemmed(words), words, strict=True))
    telling = {stem: word for stem, word in telling.items() if word not in QUIET}
    spoken = [stem for stem in telling if not stem.isdigit()]
    strange = [telling[stem] for stem in spoken if stem not in known and stem not in mentioned]
    return Asked(
        known=frozenset(stem for stem in telling if stem in known),
        strange=tuple(strange),
        unknown=len(strange) / max(1, len(spoken)),
        similarity=max(0.0, similarity),
        doubt=doubt,
    )


def signs_of(
    question: Asked,
    program: Program,
    execution: Execution,
    tables: Sequence[Table],
    *,
    logprob: float | None = None,
    repaired: int = 0,
    mended: int = 0,
) -> ProgramSigns | None:
    """The signs of a program that ran; None where its text cannot be taken apart again.

    Args:
        tables: those that the program reads.
        logprob: mean log-probability of the reply's tokens, None where it is not told.
    """
    try:
        tree = sqlglot.parse_one(program.sql, dialect=program.dialect)
    except (SqlglotError, RecursionError):
        return None
    texts = {node.name for node in tree.find_all(exp.Literal)}
    names = {column.name for column in tree.find_all(exp.Column)}
    used = {
        stem for name in (*names, *texts, *(t.ref.name for t in tables)) for stem in _stems(name)
    }
    rows = execution.rows
    return ProgramSigns(
        # a remote model may tell what is no log-probability
        logprob=10.0 * min(0.0, max(LEAST_LOGPROB, USUAL_LOGPROB if logprob is None else logprob)),
        repaired=_cut(repaired),
        mended=_cut(mended),
        hollow=float(all(cell is None or cell == 0 for row in rows for cell in row)),
        unused=_cut(len(question.known - used)),
        repeated=float(len(set(map(repr, rows))) < len(rows)),
        single=float(len(rows) == 1 and len(execution.columns) == 1),
        nested=_cut(sum(1 for _ in tree.find_all(exp.Subquery, exp.SetOperation))),
        unknown=question.unknown,
        similarity=question.similarity,
    )


def _cut(count: float) -> float:
    return min(MOST, float(count))


def _stems(name: str) -> list[str]:
    return stemmed(plain_words(split_identifier(name)))
