"""Values of public reference implementations, for ``test_reference.py``.

In an environment of its own, since scikit-learn and the others are no dependencies of dbrag:

    python -m venv reference && reference/bin/pip install \
        scikit-learn==1.9.1 scipy==1.17.1 statsmodels==0.15.0 pytrec_eval-terrier==0.5.11
    reference/bin/python tests/evaluation/reference/make.py

writes ``values.json`` beside this file: inputs, drawn with a fixed seed, and what they give.
"""

from __future__ import annotations

import json
import random
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytrec_eval
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

BINS = 10
RESAMPLES = 200_000


def recall(draw: random.Random) -> dict[str, Any]:
    """trec_eval's recall at 1, 5 and 15, which divides by all that is relevant."""
    ranked = [f"t{i}" for i in draw.sample(range(40), draw.randint(3, 30))]
    gold = sorted(f"t{i}" for i in draw.sample(range(40), draw.randint(1, 5)))
    run = {"q": {name: float(len(ranked) - i) for i, name in enumerate(ranked)}}
    judge = pytrec_eval.RelevanceEvaluator({"q": dict.fromkeys(gold, 1)}, {"recall.1,5,15"})
    found = judge.evaluate(run)["q"]
    return {"gold": gold, "ranked": ranked, "recall": {k: found[f"recall_{k}"] for k in (1, 5, 15)}}


def sureness(draw: random.Random) -> dict[str, Any]:
    """scikit-learn's ROC area and Brier score; the calibration error of its reliability curve."""
    told = [round(draw.random(), 3) + 0.0004 for _ in range(draw.randint(8, 60))]
    told = [min(one, 0.9996) for one in told]
    right = [draw.random() < one**0.5 for one in told]
    right[0], right[1] = True, False
    shares, means = calibration_curve(right, told, n_bins=BINS, strategy="uniform")
    counts = np.histogram(told, bins=BINS, range=(0, 1))[0]
    weights = counts[counts > 0] / len(told)
    return {
        "told": told,
        "right": right,
        "auroc": float(roc_auc_score(right, told)),
        "brier": float(brier_score_loss(right, told)),
        "ece": float((weights * np.abs(shares - means)).sum()),
    }


def ties(draw: random.Random) -> dict[str, Any]:
    """The ROC area where many are told alike."""
    told = [draw.choice([0.25, 1 / 3, 0.5, 1.0]) for _ in range(30)]
    right = [True, False, *(draw.random() < one for one in told[2:])]
    return {"told": told, "right": right, "auroc": float(roc_auc_score(right, told))}


def shares(draw: random.Random) -> dict[str, Any]:
    """scipy's score interval of a share (Wilson)."""
    n = draw.randint(1, 500)
    k = draw.randint(0, n)
    found = stats.binomtest(k, n).proportion_ci(method="wilson")
    return {"k": k, "n": n, "low": float(found.low), "high": float(found.high)}


def discordant(draw: random.Random) -> dict[str, Any]:
    """statsmodels' exact McNemar test."""
    wins, losses = draw.randint(0, 90), draw.randint(1, 40)
    found = mcnemar([[5, wins], [losses, 7]], exact=True)
    return {"wins": wins, "losses": losses, "p": float(found.pvalue)}


def adjusted(draw: random.Random) -> dict[str, Any]:
    """statsmodels' correction of Holm."""
    p = [round(draw.random() ** 3, 6) for _ in range(draw.randint(1, 9))]
    return {"p": p, "holm": [float(one) for one in multipletests(p, method="holm")[1]]}


def signs(draw: random.Random) -> dict[str, Any]:
    """scipy's permutation test of a mean difference: every exchange within the pairs."""
    n = draw.randint(5, 14)
    a, b = ([draw.choice([0, 0.25, 1 / 3, 0.5, 1]) for _ in range(n)] for _ in range(2))
    found = stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(y - x, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    return {"a": a, "b": b, "p": float(found.pvalue)}


def intervals(draw: random.Random) -> dict[str, Any]:
    """scipy's percentile bootstrap, over questions and (sums by sizes) over databases."""
    units = [f"db{draw.randint(0, 9)}" for _ in range(120)]
    level = {unit: draw.random() for unit in sorted(set(units))}
    a = [float(draw.random() < level[unit]) for unit in units]
    b = [float(draw.random() < level[unit] ** 0.5) for unit in units]
    names = sorted(set(units))

    def of(scores: list[float]) -> dict[str, list[float]]:
        sums = [sum(s for s, u in zip(scores, units, strict=True) if u == name) for name in names]
        sizes = [units.count(name) for name in names]
        kinds = {
            "questions": stats.bootstrap(
                (scores,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=1, batch=1000
            ),
            "databases": stats.bootstrap(
                (sums, sizes),
                lambda x, n, axis: np.sum(x, axis=axis) / np.sum(n, axis=axis),
                n_resamples=RESAMPLES,
                method="percentile",
                paired=True,
                rng=1,
                batch=1000,
            ),
        }
        return {
            kind: [float(found.confidence_interval.low), float(found.confidence_interval.high)]
            for kind, found in kinds.items()
        }

    differences = [y - x for x, y in zip(a, b, strict=True)]
    return {"a": a, "b": b, "units": units, "mean": of(b), "difference": of(differences)}


def main() -> None:
    """Write the file."""
    draw = random.Random(0)
    made = {
        "recall": [recall(draw) for _ in range(12)],
        "sureness": [sureness(draw) for _ in range(6)],
        "ties": [ties(draw) for _ in range(3)],
        "wilson": [shares(draw) for _ in range(8)],
        "mcnemar": [discordant(draw) for _ in range(8)],
        "holm": [adjusted(draw) for _ in range(5)],
        "randomisation": [signs(draw) for _ in range(6)],
        "bootstrap": [intervals(draw) for _ in range(2)],
    }
    names = ("scikit-learn", "scipy", "statsmodels", "pytrec_eval-terrier", "numpy")
    versions = {name: metadata.version(name) for name in names}
    target = Path(__file__).with_name("values.json")
    lines = [f' "versions": {json.dumps(versions)}']
    lines += [
        f' "{kind}": [\n  ' + ",\n  ".join(map(json.dumps, cases)) + "\n ]"
        for kind, cases in made.items()
    ]
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
