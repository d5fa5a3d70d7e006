"""Where a search's time goes: milliseconds by stage, warm, in process.

    dbrag index -s $DBRAG_BENCH/spider/database --index /tmp/spider-index
    python bench/search_stages.py --index /tmp/spider-index

Stages that run side by side (encode, rows, values) each count in full. "one after another"
is the same search with nothing side by side and the candidates' rows always looked up
again; both run in turns on the same questions, so that the load of the machine is shared.
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import dbrag
from dbrag.index.row_search import RowLook
from dbrag.retrieval import lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dbrag import Database

BENCH = Path(os.environ.get("DBRAG_BENCH", "../shared/benchmarks")) / "spider"


class _AtOnce:
    """Runs what is submitted before it returns."""

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(call())
        return done


@contextmanager
def one_after_another() -> Iterator[None]:
    """Without threads, and without using the first look-up of rows a second time."""
    pool, words_of = lookup._pool, RowLook._words_of

    def again(self: RowLook, tables: Any, per_table: int) -> Any:
        self._complete, self._found = False, []
        return words_of(self, tables, per_table)

    at_once = _AtOnce()
    lookup._pool = lambda: at_once  # type: ignore[assignment]
    RowLook._words_of = again  # type: ignore[method-assign]
    try:
        yield
    finally:
        lookup._pool = pool
        RowLook._words_of = words_of  # type: ignore[method-assign]


def timed(db: Database, question: str) -> dict[str, float]:
    """Milliseconds of one search by stage, and in "total"."""
    result = db.search(question)
    return {name: 1000 * s for name, s in {**result.stages, "total": result.seconds}.items()}


def main() -> None:
    """Print p50 and p95 of every stage, before and after, and the ratio of the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=200, help="dev questions")
    arguments = parser.parse_args()
    now: list[dict[str, float]] = []
    before: list[dict[str, float]] = []
    data = json.loads((BENCH / "dev.json").read_text(encoding="utf-8"))
    questions = [one["question"] for one in data[: arguments.limit]]
    with dbrag.connect(index=arguments.index, rerank="off") as db:
        timed(db, "warm up the encoder and the row index")
        for question in questions:
            # Not the same text twice: the encoder remembers what it has read.
            with one_after_another():
                before.append(timed(db, f"{question} ."))
            now.append(timed(db, question))
    print(f"{len(now)} questions, ms{'one after another':>22}{'now':>22}{'ratio':>8}")
    for name in [*dict.fromkeys(n for one in now for n in one if n != "total"), "total"]:
        old, new = ([one.get(name, 0.0) for one in runs] for runs in (before, now))
        were, are = np.percentile(old, [50, 95]), np.percentile(new, [50, 95])
        shown = "".join(f"{f'p50 {a:.1f} p95 {b:.1f}':>22}" for a, b in (were, are))
        print(f"{name:14}{shown}{are[0] / were[0]:8.2f}")


if __name__ == "__main__":
    main()
