"""Choose the weights of the coarse ranking on Spider's training questions, report on dev.

    dbrag index -s $DBRAG_BENCH/spider/database --index /tmp/spider-index
    python bench/retrieval_weights.py --index /tmp/spider-index --search 100

The parts of every question are computed once (kept in --cache), then weights are tried
on them: the committed ones, each left out, and a random search around them. Only the
training sample is searched on. Source names take no part in text or ranking.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dbrag.evaluation.datasets import load_questions, sample
from dbrag.index.store import Index, open_index
from dbrag.models.embed import load_embedder
from dbrag.retrieval.coarse import DEFAULT, CoarseWeights, Parts, combine, rank, score_parts
from dbrag.settings import load_settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

BENCH = Path(os.environ.get("DBRAG_BENCH", "../shared/benchmarks")) / "spider"
PARTS = [field.name for field in fields(Parts) if field.name != "mentions"]
WEIGHTS = [field.name for field in fields(CoarseWeights)]
CUTS = (5, 15, 50)


class Split:
    """The parts ``[n_questions, n_tables]`` and gold tables of some questions."""

    def __init__(self, parts: dict[str, NDArray[np.float32]], gold: NDArray[np.bool_]) -> None:
        self.parts = parts
        self.gold = gold

    def recall(self, index: Index, weights: CoarseWeights) -> list[float]:
        """R@5, CR@5, R@15, CR@15, R@50, CR@50 in percent."""
        found = np.zeros((len(self.gold), len(CUTS)))
        for i, gold in enumerate(self.gold):
            parts = Parts(**{name: part[i] for name, part in self.parts.items()}, mentions=())
            scores, _ = combine(parts, index.edges, index.components, weights)
            hits = gold[np.argsort(-scores, kind="stable")[: max(CUTS)]]
            found[i] = [hits[:k].sum() / gold.sum() for k in CUTS]
        pairs = zip(found.mean(0), (found == 1).mean(0), strict=True)
        return [100 * float(value) for pair in pairs for value in pair]


def measure(index: Index, name: str, limit: int | None, cache: Path) -> Split:
    """Compute or load the parts of a question file's sample."""
    path = cache.with_name(f"{cache.stem}-{name}-{limit or 'all'}.npz")
    if not path.exists():
        questions = sample(load_questions(BENCH / f"{name}.json", index.catalog), limit, seed=0)
        embedder = load_embedder(load_settings())
        gold = np.zeros((len(questions), len(index.catalog.tables)), bool)
        rows: dict[str, list[NDArray[np.float32]]] = {part: [] for part in PARTS}
        for i, question in enumerate(questions):
            parts = score_parts(index, embedder, question.question)
            gold[i, [index.catalog.position[ref] for ref in question.tables]] = True
            for part in PARTS:
                rows[part].append(getattr(parts, part))
        arrays: dict[str, Any] = {part: np.stack(values) for part, values in rows.items()}
        np.savez(path, gold=gold, **arrays)
    data = np.load(path)
    return Split({part: data[part] for part in PARTS}, data["gold"])


def search(index: Index, split: Split, start: CoarseWeights, tries: int) -> CoarseWeights:
    """Random search around ``start`` for the best R@5 + CR@5."""
    random = np.random.default_rng(0)
    best, best_score = start, sum(split.recall(index, start)[:2])
    for _ in range(tries):
        names = random.choice(WEIGHTS, size=random.integers(1, 4), replace=False)
        tried = replace(
            best, **{str(n): getattr(best, n) * float(np.exp(random.normal(0, 0.4))) for n in names}
        )
        score = sum(split.recall(index, tried)[:2])
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


def main() -> None:
    """Print one line per set of weights, and the latency."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/retrieval-parts"))
    parser.add_argument("--train", type=int, default=1000, help="training questions sampled")
    parser.add_argument("--search", type=int, default=0, help="weights to try")
    parser.add_argument("--latency", action="store_true")
    arguments = parser.parse_args()
    with open_index(arguments.index) as index:
        if arguments.latency:
            print(
                "search ms: p50 {:.0f}, p95 {:.0f}".format(
                    *np.percentile(latency_ms(index), [50, 95])
                )
            )
        splits = {
            "train": measure(index, "train", arguments.train, arguments.cache),
            "dev": measure(index, "dev", None, arguments.cache),
        }
        columns = [f"{kind}@{k}" for k in CUTS for kind in ("R", "CR")]
        print(" " * 20 + "".join(f"{s + ' ' + c:>13}" for s in splits for c in columns))

        def show(name: str, weights: CoarseWeights) -> None:
            values = [v for split in splits.values() for v in split.recall(index, weights)]
            print(f"{name:20}" + "".join(f"{value:13.1f}" for value in values), flush=True)

        show("committed", DEFAULT)
        for name in WEIGHTS:
            show(f"without {name}", replace(DEFAULT, **{name: 0.0}))
        if arguments.search:
            best = search(index, splits["train"], DEFAULT, arguments.search)
            show("best on train", best)
            print({name: round(value, 2) for name, value in asdict(best).items()})


if __name__ == "__main__":
    main()
