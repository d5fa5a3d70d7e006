"""Fit how likely the chosen source is the right one (``reasoning/source_doubt.py``).

    python bench/source_doubt.py --index DIR [--train 800] [--dev 391]

Reads ``$DBRAG_BENCH/spider``: puts training questions (round robin over databases, fixed
seed) to all databases, and prints how often the chosen source is right by its share, the
area under the ROC curve, cross-validated over databases, and the weights as Python; of
the dev questions the same with the weights as they are. Needs no chat model; nothing is
written.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import SPIDER, Desk, print_reliability, run
from program_weights import as_source, logistic
from selection_weights import questions

import dbrag
from dbrag.evaluation import calibration
from dbrag.evaluation.calibration import Call
from dbrag.logistic import sigmoid
from dbrag.reasoning.source_doubt import SourceWeights, share_logit, source_doubt

FOLDS = 8


@dataclass(frozen=True)
class Chosen:
    """What the selection made of one question."""

    db_id: str
    right: bool
    logit: float
    doubt: float


def chosen(desk: Desk, record: dict[str, Any]) -> Chosen:
    """The source that the product chooses for a question, and what speaks for it."""
    found = desk.found(record["question"], desk.candidates(record["question"]))
    strengths = found.selection.strengths
    home = desk.home(found.selection.tables[0])
    right = found.selection.source == record["db_id"]
    return Chosen(
        record["db_id"], right, share_logit(strengths, home), source_doubt(strengths, home)
    )


def fitted(found: Sequence[Chosen]) -> SourceWeights:
    """Weights by maximum likelihood."""
    x = np.array([[1.0, one.logit] for one in found])
    y = np.array([float(one.right) for one in found])
    return SourceWeights(*map(float, logistic(x, y, np.ones(len(y)), 1.0)))


def out_of_fold(found: Sequence[Chosen]) -> list[Call]:
    """p(right) of every question by a fit that has seen none of its database."""
    names = sorted({one.db_id for one in found})
    np.random.default_rng(0).shuffle(names)
    fold = {name: i % FOLDS for i, name in enumerate(names)}
    calls = []
    for i in range(FOLDS):
        weights = fitted([one for one in found if fold[one.db_id] != i])
        for one in found:
            if fold[one.db_id] == i:
                p = sigmoid(weights.bias + weights.share * one.logit)
                calls.append(Call(p, one.right, one.db_id))
    return calls


def show(name: str, calls: Sequence[Call]) -> None:
    area = calibration.auroc(calls)
    right = 100 * np.mean([call.right for call in calls])
    print(
        f"\n{name}: {len(calls)} questions, source right {right:.1f}%, "
        f"ECE {calibration.expected_calibration_error(calls):.3f}, "
        f"AUROC {'undefined' if area is None else format(area, '.3f')}"
    )
    print_reliability(calls)


def fit_and_print(given: argparse.Namespace, models: dict[str, Any]) -> None:
    with dbrag.connect(SPIDER / "database", index=given.index, **models) as db:
        desk = Desk(db)
        train = [chosen(desk, one) for one in questions(SPIDER / "train.json", given.train, 5)]
        dev = [chosen(desk, one) for one in questions(SPIDER / "dev.json", given.dev)]
    show("training questions, cross-validated over databases", out_of_fold(train))
    show("dev, as the product tells it", [Call(1 - c.doubt, c.right, c.db_id) for c in dev])
    print(f"\n# reasoning/source_doubt.py\n{as_source(fitted(train))}")


def main(arguments: Sequence[str] | None = None, **models: Any) -> None:
    """Put the questions, fit and print; ``models`` are passed on to ``dbrag.connect``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="index of all databases")
    parser.add_argument("--train", type=int, default=800, help="training questions")
    parser.add_argument("--dev", type=int, default=391, help="dev questions")
    given = parser.parse_args(arguments)
    run(partial(fit_and_print, given, models))


if __name__ == "__main__":
    main()
