"""How well joins are inferred where no keys are declared, against the declared ones.

    python bench/join_inference.py                     precision and recall, within and pooled
    python bench/join_inference.py --fit               choose the weights on train databases
    python bench/join_inference.py --recall INDEX      R@5 with declared, inferred, both
    python bench/join_inference.py --seconds           a database of 10 million rows

Train databases are those of ``spider/train``, dev those of ``spider/dev``; only the first
are fitted on. A join that nobody declared counts as wrong, even if it is a good one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from dbrag.catalog import inference
from dbrag.catalog.joins import JoinEdge
from dbrag.catalog.pairs import beside_rivals
from dbrag.catalog.profile import profile_table
from dbrag.catalog.sketches import TableSketch, sketch_columns, sketch_table
from dbrag.evaluation.datasets import load_questions, sample
from dbrag.index.build import remake_texts
from dbrag.index.lazy import StoredCatalog
from dbrag.index.store import open_index
from dbrag.models.embed import load_embedder
from dbrag.settings import load_settings
from dbrag.sources import open_sources
from dbrag.types import Table

BENCH = Path(os.environ.get("DBRAG_BENCH", "../shared/benchmarks")) / "spider"
Sketches = dict[str, list[TableSketch]]


def read(*places: str, profile_rows: int | None = None) -> Sketches:
    """Sketches of all tables of all databases below the places; prints the seconds."""
    settings = load_settings({"sources": places})
    sources, _ = open_sources(settings.sources, settings.open_options())
    found: Sketches = {}
    reading = sketching = 0.0
    for source in sources:
        tables = found.setdefault(source.name, [])
        for bare in source.reflect():
            started = time.process_time()
            table, rows = profile_table(
                source,
                bare,
                profile_rows=profile_rows or settings.profile_rows,
                profile_s=settings.profile_s,
            )
            read_at = time.process_time()
            names = [column.name for column in table.columns]
            tables.append(sketch_table(table, sketch_columns(names, rows)))
            reading += read_at - started
            sketching += time.process_time() - read_at
        source.close()
    count = sum(map(len, found.values()))
    print(f"{count} tables: profiles {reading:.1f} s, sketches {sketching:.1f} s of a core")
    return found


def without_primary_keys(tables: Iterable[TableSketch]) -> list[TableSketch]:
    """As files have them."""
    return [replace(table, primary_key=()) for table in tables]


def databases(name: str) -> set[str]:
    """The databases of a question file."""
    return {q["db_id"] for q in json.loads((BENCH / f"{name}.json").read_text())}


def declared(tables: Iterable[TableSketch]) -> list[JoinEdge]:
    """The declared keys of one column; those of several columns are not inferred."""
    return [
        JoinEdge(t.ref, key.columns, key.target, key.target_columns)
        for t in tables
        for key in t.foreign_keys
    ]


def table_pairs(edges: Iterable[JoinEdge]) -> set[frozenset[Any]]:
    """Pairs of different tables, without direction."""
    return {frozenset((e.left, e.right)) for e in edges if e.left != e.right}


def column_pairs(edges: Iterable[JoinEdge]) -> set[frozenset[Any]]:
    """Pairs of single columns, without direction; letter case is of no account."""
    return {
        frozenset(
            ((e.left, e.left_columns[0].casefold()), (e.right, e.right_columns[0].casefold()))
        )
        for e in edges
        if len(e.left_columns) == 1
    }


def told(name: str, found: Sequence[JoinEdge], truth: Sequence[JoinEdge]) -> str:
    """A line of precision and recall over table pairs and column pairs."""
    text = f"{name:34}"
    for pairs in (table_pairs, column_pairs):
        got, wanted = pairs(found), pairs(truth)
        common = len(got & wanted)
        text += (
            f"  {pairs.__name__.replace('_', ' ')}: P {100 * common / max(1, len(got)):5.1f}"
            f" R {100 * common / max(1, len(wanted)):5.1f}"
            f" ({len(got)} found, {len(wanted)} declared)"
        )
    return text


def quality(sketches: Sketches) -> None:
    """(a) and (c): within each source, and with all sources thrown together."""
    within_sources("keys hidden", sketches)
    bare = {name: without_primary_keys(tables) for name, tables in sketches.items()}
    within_sources("primary keys hidden, too", bare)
    pooled(sketches)


def within_sources(title: str, sketches: Sketches) -> None:
    """Every database by itself."""
    train, dev = databases("train"), databases("dev") - databases("train")
    started = time.perf_counter()
    within = {name: inference.infer_joins(tables) for name, tables in sketches.items()}
    seconds = time.perf_counter() - started
    print(f"within each database, {title}: {seconds:.2f} s")
    for name, group in (("train", train), ("dev", dev), ("all", set(sketches))):
        edges = [e for db in sorted(group) for e in within[db]]
        truth = [e for db in sorted(group) for e in declared(sketches[db])]
        for least in (inference.THRESHOLD, 0.5, 0.9):
            sure = [e for e in edges if e.confidence >= least]
            print(told(f"  {name}, confidence >= {least}", sure, truth))


def pooled(sketches: Sketches) -> None:
    """All tables as if they were of one database."""
    everything = [replace(t, foreign_keys=()) for tables in sketches.values() for t in tables]
    started = time.perf_counter()
    edges = inference.infer_joins(everything)
    seconds = time.perf_counter() - started
    truth = [e for tables in sketches.values() for e in declared(tables)]
    for least in (inference.THRESHOLD, 0.5, 0.9):
        sure = [e for e in edges if e.confidence >= least]
        inside = sum(e.left.source == e.right.source for e in sure)
        print(told(f"pooled, confidence >= {least}", sure, truth), f"; {inside} in one database")
    print(f"inference pooled: {seconds:.2f} s")


class Fit:
    """The pairs of the train databases with what was declared, and models of them."""

    def __init__(self, sketches: Sketches) -> None:
        self.rows: list[list[float]] = []
        self.given: list[float] = []
        self.wanted: list[bool] = []
        self.database: list[str] = []
        for name in sorted(databases("train")):
            self._add(name, sketches[name])
            self._add(name, without_primary_keys(sketches[name]))
        self.x = np.array(self.rows)
        self.y = np.array(self.wanted, float)

    def _add(self, name: str, tables: Sequence[TableSketch]) -> None:
        truth = {
            (e.left, e.left_columns[0].casefold(), e.right, e.right_columns[0].casefold())
            for e in declared(tables)
            if len(e.left_columns) == 1
        }
        for pairs in inference.compared(tables):
            for pair, features in zip(pairs, beside_rivals(pairs), strict=True):
                a = pair.column.table.ref, pair.column.column.name.casefold()
                b = pair.key.table.ref, pair.key.column.name.casefold()
                if (*b, *a) in truth and (*a, *b) not in truth:
                    continue  # the other direction of a declared key says nothing
                given = {name: features.pop(name) for name in inference.GIVEN_WEIGHTS}
                if given["role"] and (*a, *b) not in truth:
                    continue  # right, though seldom declared
                self.given.append(sum(inference.GIVEN_WEIGHTS[n] * v for n, v in given.items()))
                self.names = list(features)
                self.rows.append(list(features.values()))
                self.wanted.append((*a, *b) in truth)
                self.database.append(name)

    def model(self, without: set[str] | frozenset[str] = frozenset()) -> tuple[float, np.ndarray]:
        """Intercept and weights beside the given ones: ridge regression by Newton's method."""
        rows = np.array([name not in without for name in self.database])
        x, y, given = self.x[rows], self.y[rows], np.array(self.given)[rows]
        mean, deviation = x.mean(0), x.std(0) + 1e-9
        z = np.c_[np.ones(len(x)), (x - mean) / deviation]
        penalty = 0.3 * np.eye(z.shape[1])
        penalty[0, 0] = 0
        w = np.zeros(z.shape[1])
        for _ in range(50):
            p = 1 / (1 + np.exp(-z @ w - given))
            step = np.linalg.solve(
                (z * (p * (1 - p))[:, None]).T @ z + penalty, z.T @ (y - p) - penalty @ w
            )
            w += step
            if abs(step).max() < 1e-8:
                break
        weights = w[1:] / deviation
        return float(w[0] - (mean * weights).sum()), weights

    def use(self, model: tuple[float, np.ndarray]) -> None:
        """Let the inference in this process use a model."""
        inference.INTERCEPT = model[0]
        inference.WEIGHTS = dict(zip(self.names, map(float, model[1]), strict=True))


def fit(sketches: Sketches) -> None:
    """Print weights fitted on all train databases, and what they are worth on unseen ones."""
    data = Fit(sketches)
    names = sorted(databases("train"))
    shuffled = list(names)
    random.Random(0).shuffle(shuffled)
    truth = [e for name in names for e in declared(sketches[name])]
    found: dict[str, list[JoinEdge]] = {}
    bare: dict[str, list[JoinEdge]] = {}
    for number in range(5):
        held = shuffled[number::5]
        data.use(data.model(without=set(held)))
        for name in held:
            found[name] = list(inference.infer_joins(sketches[name]))
            bare[name] = list(inference.infer_joins(without_primary_keys(sketches[name])))
    for kind, by_name in (("5-fold", found), ("5-fold, no primary keys", bare)):
        edges = [e for name in names for e in by_name[name]]
        for least in (inference.THRESHOLD, 0.3, 0.5, 0.7, 0.9):
            sure = [e for e in edges if e.confidence >= least]
            print(told(f"{kind}, confidence >= {least}", sure, truth))
    edges = [e for name in names for e in found[name]]
    for low in np.arange(0.2, 1, 0.1):
        some = [e for e in edges if low <= e.confidence < low + 0.1]
        hit = len(column_pairs(some) & column_pairs(truth)) / max(1, len(some))
        print(
            f"  confidence {low:.1f}..{low + 0.1:.1f}: {len(some)} edges, {100 * hit:.0f}% declared"
        )
    intercept, weights = data.model()
    print(f"INTERCEPT = {intercept:.2f}")
    print("WEIGHTS: Mapping[str, float] = {")
    for name, weight in zip(data.names, weights, strict=True):
        print(f'    "{name}": {weight:.2f},')
    print("}")


def make_graphs(given: Path, work: Path) -> dict[str, Path]:
    """Copies of an index with three graphs; only the texts that name joined tables differ."""
    settings = load_settings({})

    def without_keys(self: StoredCatalog, sources: Collection[str]) -> Iterator[Table]:
        return (replace(table, foreign_keys=()) for table in bare(self, sources))

    bare = StoredCatalog.bare

    places = {}
    for name, infer in (("declared", "off"), ("inferred", "undeclared"), ("both", "all")):
        places[name] = place = work / name
        if not place.exists():
            shutil.copytree(given, place)
            hide = patch.object(StoredCatalog, "bare", without_keys)
            with hide if name == "inferred" else nullcontext():
                remake_texts(
                    place,
                    embedder=lambda: load_embedder(settings),
                    settings=replace(settings, infer_joins=infer),
                )
    return places


def recall(given: Path, work: Path, limit: int) -> None:
    """(b): R@5 and CR@5 of the committed ranking with each graph."""
    from retrieval_weights import COLUMNS, measure

    for name, place in make_graphs(given, work).items():
        with open_index(place) as index:
            train = sample(load_questions(BENCH / "train.json", index.catalog), limit, seed=0)
            dev = load_questions(BENCH / "dev.json", index.catalog)
            print(f"{name}: {len(index.joins.edges)} edges")
            for kind, questions in (("train", list(train)), ("dev", list(dev))):
                split = measure(index, kind, questions, work / f"parts-{name}")
                found = split.recall(index).mean(0)
                low, high = split.interval(split.recall(index))
                told = zip(COLUMNS[:4], found, low, high, strict=False)
                text = ", ".join(
                    f"{c} {100 * v:.1f} [{100 * a:.1f}, {100 * b:.1f}]" for c, v, a, b in told
                )
                print(f"  {kind} ({len(questions)}): {text}", flush=True)


_NOUNS = """actor airport album author bank branch camera carrier city client course country
customer department device doctor driver employee event factory film flight game hotel invoice
journal journey lesson machine member museum nurse order parcel patient player product project
region school ship shop singer stadium student supplier teacher team ticket venue"""
NOUNS = _NOUNS.split()


def generate(path: Path, rows: int) -> set[tuple[str, str, str]]:
    """50 tables of counters, references, codes, texts and fractions; no key is declared.

    Returns:
        (table, column, table referred to).
    """
    truth = set()
    with closing(sqlite3.connect(path)) as connection:
        for i, name in enumerate(NOUNS):
            others = [NOUNS[(i + step) % len(NOUNS)] for step in (7, 11, 23)]
            truth |= {(name, f"{other}_id", other) for other in others[:2]}
            truth.add((name, f"{others[2]}_code", others[2]))
            connection.execute(
                f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY, code TEXT, "{others[0]}_id" '
                f'INTEGER, "{others[1]}_id" INTEGER, "{others[2]}_code" TEXT, amount REAL)'
            )
            many, half, third = rows - rows // 3, rows // 2, rows // 3
            connection.execute(
                f'INSERT INTO "{name}" WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n '
                f"WHERE i < {rows}) SELECT i, '{name[:3]}-' || i, 1 + i * 7919 % {many}, "
                f"1 + i * 104729 % {half}, '{others[2][:3]}-' || (1 + i * 1299709 % {third}), "
                "i * 0.37 FROM n"
            )
        connection.commit()
    return truth


def ten_million(work: Path, rows: int) -> None:
    """(d): one database of 50 tables, read as indexing does: within the budget of a source."""
    path = work / "ten_million.db"
    path.unlink(missing_ok=True)
    started = time.perf_counter()
    truth = generate(path, rows)
    size = path.stat().st_size / 1e9
    print(
        f"50 tables x {rows:,} rows, {size:.2f} GB: made in {time.perf_counter() - started:.0f} s"
    )
    budget = load_settings().source_rows // len(NOUNS)
    tables = read(str(path), profile_rows=min(budget, load_settings().profile_rows))[path.stem]
    started = time.perf_counter()
    edges = inference.infer_joins(tables)
    found = {(e.left.name, e.left_columns[0], e.right.name) for e in edges}
    print(
        f"inference {time.perf_counter() - started:.2f} s: {len(edges)} edges, "
        f"{len(found & truth)} of the {len(truth)} true ones"
    )
    path.unlink()


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--recall", type=Path, metavar="INDEX", help="an index of the pack")
    parser.add_argument("--questions", type=int, default=500, help="of spider/train")
    parser.add_argument("--work", type=Path, default=Path("/tmp/join-inference"))
    parser.add_argument("--seconds", action="store_true", help="make and read 10 million rows")
    parser.add_argument("--rows", type=int, default=200_000, help="of each of the 50 tables")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    if arguments.seconds:
        ten_million(arguments.work, arguments.rows)
        return
    if arguments.recall:
        recall(arguments.recall, arguments.work, arguments.questions)
        return
    sketches = read(str(BENCH / "database"))
    if arguments.fit:
        fit(sketches)
    else:
        quality(sketches)


if __name__ == "__main__":
    main()
