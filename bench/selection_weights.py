"""Fit the weights of the selection (``reasoning/select.py``, ``reasoning/relevance.py``).

    python bench/selection_weights.py --index DIR [--train 800] [--dev 391]

Reads ``$DBRAG_BENCH/spider``: fits on training questions (round robin over databases,
fixed seed), prints the weights and, for both sets, how often the source is right and how
often the tables are exactly, or at least, the gold ones. Nothing is written.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections import defaultdict
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np

import dbrag
from dbrag.reasoning.relevance import Signs, signs_of
from dbrag.reasoning.select import connect
from dbrag.retrieval.coverage import SourceVocabulary

L2 = 1e-3
THRESHOLDS = (0.2, 0.3, 0.4, 0.5)


def questions(path: Path, n: int, seed: int = 1) -> list[dict[str, Any]]:
    by_database = defaultdict(list)
    for record in json.loads(path.read_text(encoding="utf-8")):
        by_database[record["db_id"]].append(record)
    order = random.Random(seed)
    for records in by_database.values():
        order.shuffle(records)
    names = sorted(by_database)
    order.shuffle(names)
    rounds = max(map(len, by_database.values()))
    turns = [by_database[name][i : i + 1] for i in range(rounds) for name in names]
    return [record for turn in turns for record in turn][:n]


def retrieved(db: dbrag.Database, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    index = db.opened_index()
    vocabulary = SourceVocabulary(index.catalog.tables)
    found = []
    for record in records:
        candidates = db.search(record["question"], top=50, k=50).candidates
        coverage = vocabulary.coverage(record["question"])
        by_source = defaultdict(list)
        for candidate in candidates:
            by_source[candidate.table.source].append(candidate)
        signs = [
            [own[0].score, coverage[name], float(any(c.matches for c in own))]
            for name, own in by_source.items()
        ]
        own = by_source.get(record["db_id"], [])
        gold = {name.casefold() for name in record["tables"]}
        found.append(
            {
                "sources": np.array(signs),
                "right": [*by_source].index(record["db_id"]) if own else -1,
                "refs": [c.table for c in own],
                "signs": np.array(
                    [astuple(s) for s in signs_of(record["question"], own, index.catalog.by_ref)]
                ),
                "needed": np.array([float(c.table.name.casefold() in gold) for c in own]),
                "gold": gold,
            }
        )
    return found


def newton(gradient_and_hessian: Any, size: int, steps: int = 60) -> Any:
    weights = np.zeros(size)
    for _ in range(steps):
        gradient, hessian = gradient_and_hessian(weights)
        step = np.linalg.solve(hessian, gradient)
        weights = weights - step * min(1.0, 2.0 / (np.abs(step).max() + 1e-9))
    return weights


def fit_sources(data: list[dict[str, Any]]) -> Any:
    """Multinomial logit: which of a question's sources is the right one."""
    rows = [(d["sources"], d["right"]) for d in data if d["right"] >= 0]

    def at(w: Any) -> Any:
        gradient, hessian = L2 * w, L2 * np.eye(len(w))
        for signs, right in rows:
            z = signs @ w
            p = np.exp(z - z.max())
            p /= p.sum()
            mean = p @ signs
            gradient = gradient + (mean - signs[right]) / len(rows)
            hessian = hessian + ((signs * p[:, None]).T @ signs - np.outer(mean, mean)) / len(rows)
        return gradient, hessian

    return newton(at, 3)


def fit_tables(data: list[dict[str, Any]]) -> Any:
    """Logistic regression: is this table of the right source needed."""
    signs = np.vstack([d["signs"] for d in data if len(d["signs"])])
    needed = np.concatenate([d["needed"] for d in data if len(d["signs"])])

    def at(w: Any) -> Any:
        p = 1 / (1 + np.exp(-signs @ w))
        gradient = signs.T @ (p - needed) / len(needed) + L2 * w
        hessian = (signs * (p * (1 - p))[:, None]).T @ signs / len(needed) + L2 * np.eye(len(w))
        return gradient, hessian

    return newton(at, signs.shape[1])


def report(name: str, data: list[dict[str, Any]], sources: Any, tables: Any, joins: Any) -> None:
    hits = [d["right"] >= 0 and (d["sources"] @ sources).argmax() == d["right"] for d in data]
    print(f"{name}: right source {100 * np.mean(hits):.1f}%")
    known = [d for d in data if len(d["signs"])]
    for threshold in THRESHOLDS:
        exact = complete = size = 0
        for d in known:
            p = 1 / (1 + np.exp(-d["signs"] @ tables))
            order = np.argsort(-p, kind="stable")
            likely = [d["refs"][i] for i in order if p[i] >= threshold] or [d["refs"][order[0]]]
            names = {ref.name.casefold() for ref in connect(likely[:5], joins)}
            exact += names == d["gold"]
            complete += d["gold"] <= names
            size += len(names)
        n = len(known)
        print(
            f"  p >= {threshold}: exactly the gold tables {100 * exact / n:.1f}%, "
            f"all of them {100 * complete / n:.1f}%, {size / n:.2f} tables"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", required=True)
    parser.add_argument("--train", type=int, default=800)
    parser.add_argument("--dev", type=int, default=391)
    arguments = parser.parse_args()
    pack = Path(os.environ.get("DBRAG_BENCH", "../shared/benchmarks")) / "spider"
    with dbrag.connect(pack / "database", index=arguments.index) as db:
        joins = db.opened_index().joins
        train = retrieved(db, questions(pack / "train.json", arguments.train))
        dev = retrieved(db, questions(pack / "dev.json", arguments.dev))
    sources, tables = fit_sources(train), fit_tables(train)
    score, coverage, values = sources
    print(f"SelectWeights: coverage={coverage / score:.2f}, values={values / score:.2f}")
    pairs = zip(fields(Signs), tables, strict=True)
    print("Signs:", ", ".join(f"{field.name}={w:.2f}" for field, w in pairs))
    report("train", train, sources, tables, joins)
    report("dev", dev, sources, tables, joins)


if __name__ == "__main__":
    main()
