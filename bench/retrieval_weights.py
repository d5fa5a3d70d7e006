"""Choose the weights of the coarse ranking on Spider's training questions, report on dev.

    dbrag index -s $DBRAG_BENCH/spider/database --index /tmp/spider-index
    python bench/retrieval_weights.py --index /tmp/spider-index --search 100

The parts of every question are computed once (kept in --cache), then weights are tried
on them: the committed ones with intervals by bootstrap over databases, each left out,
the other ways of using joins, and a random search. Only the tuning sample is searched
on; "held out" are other training questions. Source names take no part in text or ranking.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dbrag.evaluation.datasets import Question, load_questions, sample
from dbrag.index.store import Index, open_index
from dbrag.models.embed import load_embedder
from dbrag.retrieval.coarse import DEFAULT, CoarseWeights, Parts, combine, rank, score_parts
from dbrag.retrieval.joinaware import JOIN_RANKINGS
from dbrag.settings import load_settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

BENCH = Path(os.environ.get("DBRAG_BENCH", "../shared/benchmarks")) / "spider"
PARTS = [field.name for field in fields(Parts) if field.name != "mentions"]
WEIGHTS = [f.name for f in fields(CoarseWeights) if f.name not in ("preferred", "group")]
CUTS = (5, 15, 50)
COLUMNS = [f"{kind}@{k}" for k in CUTS for kind in ("R", "CR")]
RESAMPLES = 2_000


@dataclass(frozen=True)
class Split:
    """The parts ``[n_questions, n_tables]``, gold tables and databases of some questions."""

    parts: dict[str, NDArray[np.float32]]
    gold: NDArray[np.bool_]
    databases: NDArray[np.str_]

    def recall(
        self, index: Index, weights: CoarseWeights = DEFAULT, **options: Any
    ) -> NDArray[np.float64]:
        """R@5, CR@5, R@15, … of every question, ``[n_questions, n_cuts]``."""
        found = np.zeros((len(self.gold), len(CUTS)))
        for i, gold in enumerate(self.gold):
            parts = Parts(**{name: part[i] for name, part in self.parts.items()}, mentions=())
            scores, _ = combine(parts, index.adjacency, weights, **options)
            hits = gold[np.argsort(-scores, kind="stable")[: max(CUTS)]]
            found[i] = [hits[:k].sum() / gold.sum() for k in CUTS]
        return np.stack([found, found == 1], axis=2).reshape(len(found), -1)

    def interval(self, recall: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """95% of the means over resampled databases, all their questions with them."""
        names, which = np.unique(self.databases, return_inverse=True)
        sums = np.stack([recall[which == i].sum(0) for i in range(len(names))])
        sizes = np.bincount(which)
        drawn = np.random.default_rng(0).integers(len(names), size=(RESAMPLES, len(names)))
        means = sums[drawn].sum(1) / sizes[drawn].sum(1)[:, None]
        return np.quantile(means, 0.025, axis=0), np.quantile(means, 0.975, axis=0)


def measure(index: Index, name: str, questions: list[Question], cache: Path) -> Split:
    """Compute the parts of some questions, or load them if they are of this index.

    How scores are computed is not looked at: remove the files when that changes.
    """
    path = cache.with_name(f"{cache.stem}-{name}-{len(questions)}.npz")
    gold = np.zeros((len(questions), len(index.catalog.tables)), bool)
    for i, question in enumerate(questions):
        gold[i, [index.catalog.position[ref] for ref in question.tables]] = True
    state = index.manifest
    made_of = json.dumps([state.created, state.generation, [q.id for q in questions]])
    key = sha256(made_of.encode()).hexdigest()
    if not path.exists() or str(np.load(path).get("key")) != key:
        embedder = load_embedder(load_settings())
        found = [score_parts(index, embedder, question.question) for question in questions]
        arrays: dict[str, Any] = {
            part: np.stack([getattr(one, part) for one in found]) for part in PARTS
        }
        np.savez(path, key=np.array(key), **arrays)
    data = np.load(path)
    databases = np.array([question.db_id for question in questions])
    return Split({part: data[part] for part in PARTS}, gold, databases)


def splits(index: Index, tuning: int, held_out: int, cache: Path) -> dict[str, Split]:
    """The tuning sample, other training questions, and all of dev."""
    train = load_questions(BENCH / "train.json", index.catalog)
    chosen = list(sample(train, tuning, seed=0))
    used = {question.id for question in chosen}
    others = sample([q for q in train if q.id not in used], held_out, seed=1)
    dev = load_questions(BENCH / "dev.json", index.catalog)
    named = {"tuning": chosen, "held out": list(others), "dev": list(dev)}
    return {name: measure(index, name.replace(" ", "-"), q, cache) for name, q in named.items()}


def search(index: Index, split: Split, start: CoarseWeights, tries: int) -> CoarseWeights:
    """Random search around ``start`` for the best R@5 + CR@5 + (R@15 + CR@15) / 2."""

    def worth(weights: CoarseWeights) -> float:
        return float(split.recall(index, weights).mean(0)[:4] @ [1, 1, 0.5, 0.5])

    random = np.random.default_rng(0)
    best, best_score = start, worth(start)
    for _ in range(tries):
        names = random.choice(WEIGHTS, size=random.integers(1, 4), replace=False)
        tried = replace(
            best,
            **{str(n): getattr(best, n) * float(np.exp(random.normal(0, 0.35))) for n in names},
        )
        score = worth(tried)
        if score > best_score:
            best, best_score = tried, score
    return best


def latency_ms(index: Index, limit: int = 200) -> NDArray[np.float64]:
    """Milliseconds of ``rank``, warm, in process, for the first dev questions."""
    embedder = load_embedder(load_settings())
    questions = load_questions(BENCH / "dev.json", index.catalog)[:limit]
    rank(index, embedder, "warm up the encoder and the row index")
    taken = []
    for question in questions:
        started = time.perf_counter()
        rank(index, embedder, question.question)
        taken.append(1000 * (time.perf_counter() - started))
    return np.array(taken)


def database_groups(index: Index) -> NDArray[np.int32]:
    """``[n_tables]``: number of each table's database, for the line with membership used."""
    sources = [table.ref.source for table in index.catalog.tables]
    return np.unique(sources, return_inverse=True)[1].astype(np.int32)


def compare(index: Index, parts: dict[str, Split], tries: int) -> None:
    """Print one line per set of weights."""

    def show(name: str, weights: CoarseWeights = DEFAULT, **options: Any) -> None:
        values = [
            100 * v for s in parts.values() for v in s.recall(index, weights, **options).mean(0)
        ]
        print(f"{name:26}" + "".join(f"{value:8.2f}" for value in values), flush=True)

    print(" " * 26 + "".join(f"{name:>48}" for name in parts))
    print(" " * 26 + "".join(f"{column:>8}" for _ in parts for column in COLUMNS))
    show("committed")
    show("with membership", groups=database_groups(index))
    for name in WEIGHTS:
        show(f"without {name}", replace(DEFAULT, **{name: 0.0}))
    for ranking in JOIN_RANKINGS:
        show(f"joins: {ranking}", join_ranking=ranking)
    for name, split in parts.items():
        low, high = split.interval(split.recall(index))
        pairs = zip(COLUMNS, low, high, strict=True)
        told = ", ".join(f"{column} {100 * a:.1f} to {100 * b:.1f}" for column, a, b in pairs)
        print(f"95% over the {len(set(split.databases))} databases, {name}: {told}")
    if tries:
        best = search(index, parts["tuning"], DEFAULT, tries)
        show("best on the tuning sample", best)
        print({name: round(value, 2) for name, value in asdict(best).items()})


def main() -> None:
    """Print the comparison, and the latency."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/retrieval-parts"))
    parser.add_argument("--tuning", type=int, default=1500, help="training questions to tune on")
    parser.add_argument("--held-out", type=int, default=500, help="others of the training set")
    parser.add_argument("--search", type=int, default=0, help="weights to try")
    parser.add_argument("--latency", action="store_true")
    arguments = parser.parse_args()
    with open_index(arguments.index) as index:
        if arguments.latency:
            taken = np.percentile(latency_ms(index), [50, 95])
            print("search ms: p50 {:.0f}, p95 {:.0f}".format(*taken))
        found = splits(index, arguments.tuning, arguments.held_out, arguments.cache)
        compare(index, found, arguments.search)


if __name__ == "__main__":
    main()
