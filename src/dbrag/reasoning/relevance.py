"""How likely a program needs a table: a logistic model over a few plain signs.

p(needed) = 1 / (1 + exp(-w·x)), x the signs below. The weights were fitted by maximum
likelihood (Newton's method, L2 = 1e-3) on training questions of Spider with
``bench/selection_weights.py``; they know nothing of any one database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

from dbrag.catalog.notes import spoken_names
from dbrag.index.words import STOP_WORDS, plain_words, split_identifier, stemmed
from dbrag.logistic import sigmoid
from dbrag.retrieval.coverage import question_words
from dbrag.types import Candidate, Column, Table, TableRef


@dataclass(frozen=True, slots=True)
class Signs:
    """What is seen of one table, next to the other candidates of its source.

    Attributes:
        bias: always 1.
        below_best: score minus the best score in the source (≤ 0).
        above_median: score minus the source's median score.
        rank: place by score in the source, from 0, at most 5.
        first: 1 for the best one.
        name_share: share of the table's name words that the question says; of its other
            names (``catalog.notes``) the one that the question says most of.
        name_whole: 1 when it says all of them.
        columns_said: columns that have a name all of whose words the question says, at
            most 3.
        only_here: question words that no other table of the source knows, at most 3.
        values: values of the table that the question mentions, at most 3.
        among: 1 / number of candidates in the source.
    """

    bias: float
    below_best: float
    above_median: float
    rank: float
    first: float
    name_share: float
    name_whole: float
    columns_said: float
    only_here: float
    values: float
    among: float


WEIGHTS = Signs(
    bias=-0.28,
    below_best=0.39,
    above_median=-0.02,
    rank=-0.58,
    first=0.67,
    name_share=1.25,
    name_whole=1.19,
    columns_said=0.27,
    only_here=1.72,
    values=0.52,
    among=0.39,
)


def probabilities(
    question: str,
    candidates: Sequence[Candidate],
    tables: Mapping[TableRef, Table],
    weights: Signs = WEIGHTS,
) -> list[float]:
    """p(needed) of each candidate; all are of one source, best first."""
    return [
        sigmoid(sum(w * x for w, x in zip(astuple(weights), astuple(signs), strict=True)))
        for signs in signs_of(question, candidates, tables)
    ]


def signs_of(
    question: str, candidates: Sequence[Candidate], tables: Mapping[TableRef, Table]
) -> list[Signs]:
    """The signs of each candidate, in their order."""
    said = set(question_words(question))
    scores = [candidate.score for candidate in candidates]
    median = sorted(scores)[len(scores) // 2] if scores else 0.0
    own_tables = [tables[candidate.table] for candidate in candidates]
    names = [_names(table) for table in own_tables]
    columns = [[_names(column) for column in table.columns] for table in own_tables]
    known = [set().union(*(name for column in own for name in column)) for own in columns]
    found = []
    for i, candidate in enumerate(candidates):
        elsewhere = set().union(*(known[j] for j in range(len(known)) if j != i))
        share = max(len(name & said) / max(1, len(name)) for name in names[i])
        found.append(
            Signs(
                bias=1.0,
                below_best=candidate.score - scores[0],
                above_median=candidate.score - median,
                rank=float(min(i, 5)),
                first=float(i == 0),
                name_share=share,
                name_whole=float(share == 1.0),
                columns_said=float(min(3, sum(_is_said(column, said) for column in columns[i]))),
                only_here=float(min(3, len((known[i] & said) - elsewhere))),
                values=float(min(3, len(candidate.matches))),
                among=1.0 / len(candidates),
            )
        )
    return found


def _names(named: Table | Column) -> list[set[str]]:
    """The words of each name; other names are prose: "date of birth" is said by two words."""
    own, *others = spoken_names(named)
    prose = [
        " ".join(word for word in plain_words(name) if word not in STOP_WORDS) for name in others
    ]
    return [_stems(own), *(words for text in prose if (words := _stems(text)))]


def _is_said(names: Sequence[set[str]], said: set[str]) -> bool:
    return any(bool(name) and name <= said for name in names)


def _stems(text: str) -> set[str]:
    return set(stemmed(plain_words(split_identifier(text))))
