"""How often the values of gold queries are found in questions, as asked and mistyped.

    dbrag index -s $DBRAG_BENCH/spider/database --index /tmp/spider-index
    python bench/value_mentions.py --index /tmp/spider-index

Of Spider's training questions are taken those whose gold SQL has a text literal that is
stored in a column of a gold table. Printed is (1) how often that column, with that value,
is among the matches of its table; (2) the same after one random edit of a letter in a
word of the value where it stands in the question; (3) "did you mean" warnings on the
unedited questions: by definition false.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import string
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbrag.evaluation.datasets import load_questions
from dbrag.index.store import Index, open_index
from dbrag.index.words import STOP_WORDS, WORD, fold
from dbrag.models.embed import load_embedder
from dbrag.retrieval.coarse import rank
from dbrag.retrieval.hints import did_you_mean
from dbrag.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Collection

    from dbrag.models.base import Embedder
    from dbrag.types import Candidate, TableRef

BENCH = Path(os.environ.get("DBRAG_BENCH", "../shared/benchmarks")) / "spider"
_LITERAL = re.compile(r"""'([^'%]+)'|"([^"%]+)\"""")
_VALUE_HITS = 400


@dataclass(frozen=True)
class Case:
    """A question with a literal of its gold SQL and the (table, column) that hold it."""

    question: str
    literal: str
    places: frozenset[tuple[TableRef, str]]


def places_of(
    index: Index, literal: str, tables: Collection[TableRef]
) -> frozenset[tuple[TableRef, str]]:
    """The columns of gold tables that store a literal."""
    hits = index.values.search(literal, _VALUE_HITS, tables)
    return frozenset((hit.table, hit.column) for hit in hits if fold(hit.value) == fold(literal))


def cases(index: Index, limit: int) -> list[Case]:
    """One case a question, of a seeded sample."""
    questions = load_questions(BENCH / "train.json", index.catalog)
    random.Random(0).shuffle(questions)
    found: list[Case] = []
    for question in questions:
        if len(found) == limit:
            break
        for pair in _LITERAL.findall(question.sql or ""):
            literal = (pair[0] or pair[1]).strip()
            places = frozenset[tuple["TableRef", str]]()
            if literal and not literal.isdigit():
                places = places_of(index, literal, question.tables)
            if places:
                found.append(Case(question.question, literal, places))
                break
    return found


def mistyped(case: Case, rng: random.Random) -> str | None:
    """The question with one edit in a word of the value; None where it has no such word."""
    words = {fold(word) for word in WORD.findall(case.literal)} - STOP_WORDS
    spots = [
        match
        for match in WORD.finditer(case.question)
        if len(match[0]) >= 4 and match[0].isalpha() and fold(match[0]) in words
    ]
    if not spots:
        return None
    spot = rng.choice(spots)
    return case.question[: spot.start()] + edited(spot[0], rng) + case.question[spot.end() :]


def edited(word: str, rng: random.Random) -> str:
    """The word with one letter more, less or other, or two swapped."""
    while True:
        i = rng.randrange(len(word))
        letter = rng.choice(string.ascii_lowercase)
        kind = rng.choice(("insert", "delete", "replace", "swap"))
        if kind == "insert":
            other = word[:i] + letter + word[i:]
        elif kind == "delete":
            other = word[:i] + word[i + 1 :]
        elif kind == "replace":
            other = word[:i] + letter + word[i + 1 :]
        else:
            other = word[:i] + word[i + 1 : i + 2] + word[i] + word[i + 2 :]
        if other.lower() != word.lower():
            return other


def found(candidates: list[Candidate], case: Case, hows: str = "exact inflected typo") -> bool:
    """Whether a table that stores the literal has it among its matches."""
    return any(
        (candidate.table, match.column) in case.places
        and fold(match.value) == fold(case.literal)
        and match.how in hows
        for candidate in candidates
        for match in candidate.matches
    )


def main() -> None:
    """Print the three numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--show", type=int, default=0, help="failures printed of each kind")
    arguments = parser.parse_args()
    embedder: Embedder = load_embedder(load_settings())
    with open_index(arguments.index) as index:
        chosen = cases(index, arguments.limit)
        asked = exact = false = missed = tried = kept = said = 0
        shown = {"missed": 0, "false": 0, "lost": 0}

        def show(kind: str, *what: object) -> None:
            shown[kind] += 1
            if shown[kind] <= arguments.show:
                print(kind, *what, sep=" | ")

        rng = random.Random(1)
        for case in chosen:
            candidates = rank(index, embedder, case.question, k=50)
            hit = found(candidates, case)
            asked += hit
            exact += found(candidates, case, "exact")
            missed += not hit
            if not hit:
                show("missed", case.question, case.literal)
            for warning in did_you_mean(candidates):
                false += 1
                show("false", case.question, warning.message)
            question = mistyped(case, rng) if hit else None
            if question is not None:
                tried += 1
                again = rank(index, embedder, question, k=50)
                kept += found(again, case)
                said += any(
                    repr(case.literal).lower() in w.message.lower() for w in did_you_mean(again)
                )
                if not found(again, case):
                    show("lost", question, case.literal)
    n = len(chosen)
    print(
        f"{n} questions: the value is found in {asked} ({100 * asked / n:.1f}%), exactly in {exact}"
    )
    print(f"after one edit: {kept} of {tried} ({100 * kept / tried:.1f}%); told: {said}")
    print(
        f"did-you-mean warnings on unedited questions: {false} ({1000 * false / n:.1f} per 1,000)"
    )


if __name__ == "__main__":
    main()
