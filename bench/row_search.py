"""Rows by full text, by vectors (the paper's way), or both: recall, time and size.

    python bench/row_search.py --rows 15               # all databases pooled
    python bench/row_search.py --only-asked            # those of dev.json alone, all rows

Indexes the databases with row vectors (kept in --work, so that a second run encodes
nothing), then ranks the tables for the dev questions in the three ways with the committed
weights, with rows weighed more, and by rows alone. Source names take no part.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dbrag.evaluation.datasets import load_questions
from dbrag.index.build import build_index
from dbrag.index.files import tree_bytes
from dbrag.index.layout import Layout
from dbrag.index.store import Index, open_index
from dbrag.models.embed import load_embedder
from dbrag.retrieval.coarse import DEFAULT, CoarseWeights, combine, score_parts
from dbrag.retrieval.lookup import look_up
from dbrag.retrieval.timing import StageTimer
from dbrag.settings import load_settings
from dbrag.sources import open_sources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbrag.evaluation.datasets import Question
    from dbrag.index.row_search import RowMode
    from dbrag.models.base import Embedder

BENCH = Path(os.environ.get("DBRAG_BENCH", "../shared/benchmarks")) / "spider"
MODES: tuple[RowMode, ...] = ("text", "dense", "both")
ROWS_ALONE = replace(
    CoarseWeights(**{field.name: 0.0 for field in fields(CoarseWeights)}), rows=1.0
)
WEIGHTS: Mapping[str, CoarseWeights] = {
    "committed": DEFAULT,
    "without rows": replace(DEFAULT, rows=0.0),
    "rows x 2": replace(DEFAULT, rows=2 * DEFAULT.rows),
    "rows x 4": replace(DEFAULT, rows=4 * DEFAULT.rows),
    "rows alone, no joins": ROWS_ALONE,
}


def build(specs: Sequence[str], directory: Path, embedder: Embedder, dense_rows: int) -> None:
    """Index by text, then by vectors too; print what each took."""
    sources, _ = open_sources(specs)
    size = 0
    for mode in ("text", "dense"):
        settings = replace(load_settings(), row_search=mode, dense_rows=dense_rows)
        rows = 0

        def told(progress: object) -> None:
            nonlocal rows
            if getattr(progress, "stage", "") == "rows":
                rows = int(getattr(progress, "total", 0))

        started = time.perf_counter()
        build_index(directory, sources, embedder=embedder, settings=settings, progress=told)
        seconds = time.perf_counter() - started
        grown = tree_bytes(directory) - size
        size += grown
        print(f"{mode:6} {seconds:7.1f} s, {grown / 2**20:6.1f} MB more, {rows:,} rows encoded")
    for source in sources:
        source.close()


def recall(
    index: Index, embedder: Embedder, questions: Sequence[Question], mode: RowMode
) -> tuple[dict[str, list[float]], list[float]]:
    """R@5 and CR@5 in percent by weights, and the milliseconds of looking rows up."""
    found: dict[str, list[float]] = {name: [] for name in WEIGHTS}
    taken = []
    for question in questions:
        timer = StageTimer()
        looked = look_up(index, embedder, question.question, mode, timer)
        parts = score_parts(index, embedder, question.question, looked)
        taken.append(1000 * timer.seconds["rows"])
        gold = {index.catalog.position[ref] for ref in question.tables}
        for name, weights in WEIGHTS.items():
            ranking = "off" if weights is ROWS_ALONE else "pagerank"
            scores, _ = combine(parts, index.adjacency, weights, join_ranking=ranking)
            best = np.argsort(-scores, kind="stable")[:5].tolist()
            found[name].append(len(gold.intersection(best)) / len(gold))
    shares = {
        name: [100 * float(np.mean(one)), 100 * float(np.mean(np.array(one) == 1))]
        for name, one in found.items()
    }
    return shares, taken


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("/tmp/row-search"))
    parser.add_argument("--rows", type=int, default=10_000, help="rows encoded of a table")
    parser.add_argument("--only-asked", action="store_true", help="only databases of dev.json")
    arguments = parser.parse_args()
    folders = sorted(path for path in (BENCH / "database").iterdir() if path.is_dir())
    asked = {str(one["db_id"]) for one in json.loads((BENCH / "dev.json").read_text())}
    if arguments.only_asked:
        folders = [path for path in folders if path.name in asked]
    embedder = load_embedder(load_settings())
    directory = arguments.work / ("asked" if arguments.only_asked else "all")
    directory.parent.mkdir(parents=True, exist_ok=True)
    specs = [str(path) for path in folders]
    build(specs, directory, embedder, arguments.rows)
    with open_index(directory) as index:
        vectors = Layout(directory).generation(index.manifest.generation).row_vectors
        print(f"{len(folders)} databases, {len(index.catalog.tables)} tables,", end=" ")
        print(f"{len(np.load(vectors, mmap_mode='r')):,} row vectors")
        questions = load_questions(BENCH / "dev.json", index.catalog)
        print(f"{len(questions)} questions, R@5 / CR@5" + "".join(f"{m:>16}" for m in MODES))
        results = {mode: recall(index, embedder, questions, mode) for mode in MODES}
        for name in WEIGHTS:
            cells = ("{:.1f} / {:.1f}".format(*results[mode][0][name]) for mode in MODES)
            print(f"{name:26}" + "".join(f"{cell:>16}" for cell in cells))
        times = (np.percentile(results[mode][1], [50, 95]) for mode in MODES)
        cells = (f"{p50:.1f}, {p95:.1f}" for p50, p95 in times)
        print(f"{'rows, ms: p50, p95':26}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
