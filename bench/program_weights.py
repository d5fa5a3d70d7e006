"""Fit how likely a program and an answer are right (``reasoning/verify.py``, ``confidence.py``).

    python bench/program_weights.py runs/pool.jsonl… --index DIR [--wrong runs/wrong.jsonl]
        [--variants A,B1,S1,S2] [--order A,B1,S1,S2] [--votes 3] [--wrong-weight 1]

Reads pools of ``program_pool.py`` and replays their programs (``program_replay.py``). Prints how
many of each variant run and are right, the picks of several votes, how reliable the confidence
is, and the weights as Python, fitted on everything. Nothing is written.

p(right) of a program, given that its source is the right one, is fitted on the programs of
``--variants`` for questions whose source was rightly chosen, that of an answer on the winners
among the first ``--votes`` variants of ``--order`` that a question has, asked until the vote is
decided. Maximum likelihood by Newton's method with L2 on all but the bias. All figures
are cross-validated over databases (those of the questions), the weights that they are of
included: the second model is fitted on out-of-fold likelihoods of the first. Programs for wrong
databases are wrong ones in both fits, ``--wrong-weight`` for each.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from common import print_reliability, run
from program_replay import Case, Written, replayed, replayed_wrong

from dbrag.evaluation import calibration
from dbrag.evaluation.calibration import Call
from dbrag.reasoning import vote
from dbrag.reasoning.confidence import ConfidenceWeights, confidence, features
from dbrag.reasoning.program_signs import ProgramSigns
from dbrag.reasoning.verify import likelihood

if TYPE_CHECKING:
    from numpy.typing import NDArray

THRESHOLDS = tuple(round(0.5 + 0.05 * i, 2) for i in range(10))

Likelihoods = Mapping[str, float]
"""Variant → p(right) of its program, of those that ran."""


@dataclass(frozen=True)
class Rules:
    """How programs are fitted and voted on, see the arguments."""

    variants: Sequence[str]
    order: Sequence[str]
    votes: int
    folds: int
    l2: float
    wrong_weight: float
    seed: int = 0


# ---- the fits -----------------------------------------------------------------------


def logistic(
    x: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64], l2: float
) -> NDArray[np.float64]:
    """Weights ``[n_signs]`` that maximise the weighted log-likelihood of ``y`` given ``x``.

    Args:
        x: ``[n, n_signs]``, the first column 1: the bias, which L2 leaves alone.
    """
    penalty = np.full(x.shape[1], l2)
    penalty[0] = 1e-6
    found = np.zeros(x.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-x @ found))
        gradient = x.T @ (weight * (y - p)) - penalty * found
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        found += step * min(1.0, 2.0 / (np.abs(step).max() + 1e-9))
        if np.abs(step).max() < 1e-8:
            break
    return found


def fitted_on(cases: Sequence[Case]) -> list[Case]:
    """Questions whose source was rightly chosen, and those put to a wrong database alone."""
    return [case for case in cases if case.right_source or case.wrong]


def rows_for_programs(cases: Sequence[Case], rules: Rules) -> tuple[NDArray[np.float64], ...]:
    """Signs ``[n, n_signs]``, right ``[n]`` and weight ``[n]`` of all programs that ran."""
    rows = [
        (astuple(program.signs), float(program.right), rules.wrong_weight if case.wrong else 1.0)
        for case in fitted_on(cases)
        for name, program in case.programs.items()
        if name in rules.variants and program.signs is not None
    ]
    return arrays(rows)


def arrays(rows: Sequence[tuple[Any, float, float]]) -> tuple[NDArray[np.float64], ...]:
    """Signs, right and weight of rows.

    Raises:
        SystemExit: there is none.
    """
    if not rows:
        raise SystemExit("too few questions with a program that runs: write more, or --folds less")
    return tuple(np.array(column, float) for column in zip(*rows, strict=True))


def fit_programs(cases: Sequence[Case], rules: Rules) -> ProgramSigns:
    x, y, weight = rows_for_programs(cases, rules)
    return ProgramSigns(*map(float, logistic(x, y, weight, rules.l2)))


def fit_confidence(
    cases: Sequence[Case], believed: Mapping[Any, Likelihoods], rules: Rules
) -> ConfidenceWeights:
    """Fitted on the winners, as the votes with these likelihoods choose them."""
    rows = []
    for case in fitted_on(cases):
        votes = voted(case, believed[key(case)], rules)
        tally = votes.tally
        if tally is not None:
            right = votes.programs[tally.winners[0]].right
            weight = rules.wrong_weight if case.wrong else 1.0
            rows.append((features(votes.ballots, tally), float(right), weight))
    x, y, weight = arrays(rows)
    return ConfidenceWeights(*map(float, logistic(x, y, weight, rules.l2)))


def likelihoods(case: Case, weights: ProgramSigns) -> Likelihoods:
    return {
        name: likelihood(program.signs, weights)
        for name, program in case.programs.items()
        if program.key is not None
    }


def key(case: Case) -> tuple[str, str | None]:
    return case.id, case.other


def split(cases: Sequence[Case], rules: Rules) -> Iterator[tuple[list[Case], list[Case]]]:
    """(cases to fit on, cases to look at), by database."""
    names = sorted({case.db_id for case in cases})
    np.random.default_rng(rules.seed).shuffle(names)
    fold = {name: i % rules.folds for i, name in enumerate(names)}
    for i in range(min(rules.folds, len(names))):
        yield (
            [case for case in cases if fold[case.db_id] != i],
            [case for case in cases if fold[case.db_id] == i],
        )


def out_of_fold(cases: Sequence[Case], rules: Rules) -> dict[Any, Likelihoods]:
    """Of each case by a fit that has seen no question of its database."""
    found = {}
    for others, own in split(cases, rules):
        weights = fit_programs(others, rules)
        found.update({key(case): likelihoods(case, weights) for case in own})
    return found


# ---- the votes ----------------------------------------------------------------------


@dataclass(frozen=True)
class Votes:
    """Of one question: the programs that ran with their ballots, and how many were written."""

    programs: Sequence[Written]
    ballots: Sequence[vote.Ballot]
    written: int

    @property
    def tally(self) -> vote.Tally | None:
        return vote.tally(self.ballots)


def voted(case: Case, believed: Likelihoods, rules: Rules, early: bool = True) -> Votes:
    """The votes, cast as the reasoner does.

    Args:
        early: stop as soon as the winner is decided.
    """
    names = [name for name in rules.order if name in case.programs][: rules.votes]
    programs: list[Written] = []
    ballots: list[vote.Ballot] = []
    number = 0
    for number, name in enumerate(names, start=1):
        program = case.programs[name]
        if program.key is not None:
            programs.append(program)
            ballots.append(vote.Ballot(program.key, program.hollow, believed[name]))
        if early and vote.decided(ballots, len(names) - number):
            break
    return Votes(programs, ballots, number)


def by_count(votes: Votes) -> int:
    tally = vote.tally([replace(ballot, likelihood=1.0) for ballot in votes.ballots])
    assert tally is not None
    return tally.winners[0]


def by_likelihood(votes: Votes) -> int:
    assert votes.tally is not None
    return votes.tally.winners[0]


def by_likeliest(votes: Votes) -> int:
    ballots = votes.ballots
    return max(range(len(ballots)), key=lambda i: (not ballots[i].hollow, ballots[i].likelihood))


def by_oracle(votes: Votes) -> int:
    return max(range(len(votes.programs)), key=lambda i: votes.programs[i].right)


PICKS: Mapping[str, Callable[[Votes], int]] = {
    "first that runs": lambda votes: 0,
    "vote": by_count,
    "likelihood-weighted vote": by_likelihood,
    "likeliest program": by_likeliest,
    "oracle": by_oracle,
}
"""Name → which of the programs that ran, of one at least, is taken."""


# ---- what is printed ----------------------------------------------------------------


def print_variants(cases: Sequence[Case]) -> None:
    print("variant      n   first reply: runs  right   repaired: runs  right")
    for name in sorted({name for case in cases for name in case.programs}):
        own = [case.programs[name] for case in cases if name in case.programs]
        counts = [[p.first_ran, p.first_right, p.key is not None, p.right] for p in own]
        a, b, c, d = (100 * share for share in np.mean(counts, axis=0))
        print(f"{name:7} {len(own):6} {a:18.1f}% {b:5.1f}% {c:15.1f}% {d:5.1f}%")
    stale = sum(not case.same_tables for case in cases)
    if stale:
        print(f"of {len(cases)} questions {stale} would now have other tables selected")
    unwritten = sum(p.unwritten for case in cases for p in case.programs.values())
    if unwritten:
        print(f"{unwritten} programs would now be repaired once more than they were")


def print_picks(cases: Sequence[Case], believed: Mapping[Any, Likelihoods], rules: Rules) -> None:
    n = len(cases)
    print(f"\nright of {n} questions, {rules.votes} votes of {','.join(rules.order)}")
    everything = replace(rules, order=rules.variants, votes=len(rules.variants))
    ways = {
        "until decided": [voted(case, believed[key(case)], rules) for case in cases],
        "all votes": [voted(case, believed[key(case)], rules, early=False) for case in cases],
        f"all of {','.join(rules.variants)}": [
            voted(case, believed[key(case)], everything, early=False) for case in cases
        ],
    }
    width = max(map(len, ways)) + 2
    print(" " * 26 + "".join(f"{name:>{width}}" for name in ways))
    for pick, choose in PICKS.items():
        shares = [
            sum(bool(v.programs) and v.programs[choose(v)].right for v in votes) / n
            for votes in ways.values()
        ]
        print(f"{pick:26}" + "".join(f"{100 * share:{width - 1}.1f}%" for share in shares))
    costs = (fmean(v.written for v in votes) for votes in ways.values())
    print(f"{'programs written':26}" + "".join(f"{cost:{width}.2f}" for cost in costs))


@dataclass(frozen=True)
class Told:
    """What would be told of one question: the confidence, None without an answer."""

    case: Case
    confidence: float | None = None
    right: bool = False


def told(case: Case, believed: Likelihoods, rules: Rules, weights: ConfidenceWeights) -> Told:
    votes = voted(case, believed, rules)
    tally = votes.tally
    if tally is None:
        return Told(case)
    right = votes.programs[tally.winners[0]].right
    return Told(case, confidence(votes.ballots, tally, case.doubt, weights), right)


def cross_validated(cases: Sequence[Case], rules: Rules) -> list[Told]:
    """Every question told by two fits that have seen nothing of its database."""
    found = []
    for others, own in split(cases, rules):
        programs = fit_programs(others, rules)
        weights = fit_confidence(others, out_of_fold(others, rules), rules)
        found += [told(case, likelihoods(case, programs), rules, weights) for case in own]
    return found


def print_confidence(found: Sequence[Told]) -> None:
    right = [one for one in found if not one.case.wrong]
    wrong = [one for one in found if one.case.wrong]
    calls = [
        Call(one.confidence, one.right, one.case.db_id)
        for one in right
        if one.confidence is not None
    ]
    area = calibration.auroc(calls)
    print(
        f"\nconfidence of {len(calls)} answers to {len(right)} questions: "
        f"ECE {calibration.expected_calibration_error(calls):.3f}, "
        f"Brier {calibration.brier(calls):.3f}, "
        f"AUROC {'undefined' if area is None else format(area, '.3f')}"
    )
    print_reliability(calls)
    print("at least  coverage  right (95% over databases)" + "   wrong databases" * bool(wrong))
    for threshold in THRESHOLDS:
        at = calibration.at_threshold(calls, threshold, len(right))
        line = f"{threshold:8.2f} {100 * at['coverage']:8.1f}%"
        told = f"  {100 * at['right']:5.1f}%" if at["n"] else ""
        if at["n"] and None not in at["interval"]["databases"]:
            low, high = (100 * end for end in at["interval"]["databases"])
            told += f" ({low:5.1f} to {high:5.1f})"
        line += f"{told:31}" if wrong else told
        if wrong:
            share = fmean((one.confidence or 0.0) >= threshold for one in wrong)
            line += f"{100 * share:14.1f}%"
        print(line)
    if wrong:
        refused = sum(not one.case.programs for one in wrong)
        failed = sum(one.confidence is None for one in wrong) - refused
        print(
            f"of {len(wrong)} questions to wrong databases {refused} were refused, {failed} failed"
        )


def as_source(weights: Any) -> str:
    """Weights as Python."""
    name = type(weights).__name__
    values = (f"    {f.name}={round(getattr(weights, f.name), 3)}," for f in fields(weights))
    return "\n".join([f"WEIGHTS = {name}(", *values, ")"])


def print_weights(cases: Sequence[Case], believed: Mapping[Any, Likelihoods], rules: Rules) -> None:
    """The weights of both models, fitted on everything, and what a deviation of each does."""
    weights = fit_programs(cases, rules)
    x, _, _ = rows_for_programs(cases, rules)
    names = [field.name for field in fields(ProgramSigns)]
    moved = sorted(
        zip(x.std(axis=0) * astuple(weights), names, strict=True), key=lambda p: -abs(p[0])
    )
    print(f"\nweight × standard deviation over {len(x)} programs:")
    print(", ".join(f"{name} {effect:+.2f}" for effect, name in moved if abs(effect) >= 0.005))
    print(f"\n# reasoning/verify.py\n{as_source(weights)}")
    print(f"\n# reasoning/confidence.py\n{as_source(fit_confidence(cases, believed, rules))}")


def fit_and_print(given: argparse.Namespace, models: Mapping[str, Any]) -> None:
    cases = replayed(given.index, given.pools, **models)
    wrong = replayed_wrong(given.wrong, given.alone, **models) if given.wrong else []
    rules = Rules(
        given.variants, given.order, given.votes, given.folds, given.l2, given.wrong_weight
    )
    everything = [*cases, *wrong]
    believed = out_of_fold(everything, rules)
    print_variants(cases)
    print_picks(cases, believed, rules)
    print_confidence(cross_validated(everything, rules))
    print_weights(everything, believed, rules)


def names_in(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def main(arguments: Sequence[str] | None = None, **models: Any) -> None:
    """Replay, fit and print; ``models`` are passed on to ``dbrag.connect``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pools", type=Path, nargs="+", metavar="POOL.jsonl")
    parser.add_argument("--index", type=Path, required=True, help="index of all databases")
    parser.add_argument("--wrong", type=Path, action="append", default=[], help="its pool")
    parser.add_argument("--alone", type=Path, help="keeps the indexes of databases opened alone")
    parser.add_argument("--wrong-weight", type=float, default=1.0, help="0: not fitted on")
    parser.add_argument("--variants", type=names_in, default=("A", "B1", "S1", "S2"))
    parser.add_argument("--order", type=names_in, default=("A", "B1", "S1", "S2"))
    parser.add_argument("--votes", type=int, default=3)
    parser.add_argument("--folds", type=int, default=8)
    parser.add_argument("--l2", type=float, default=3.0)
    given = parser.parse_args(arguments)
    run(partial(fit_and_print, given, models))


if __name__ == "__main__":
    main()
