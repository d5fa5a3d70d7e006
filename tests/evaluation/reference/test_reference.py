"""Metrics and tests against public implementations: trec_eval, scikit-learn, scipy, statsmodels.

Their values were made by ``make.py``, which says how; here they are only compared.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbrag.evaluation.calibration import Call, auroc, brier, expected_calibration_error
from dbrag.evaluation.metrics import complete_recall_at_k, recall_at_k
from dbrag.evaluation.reports.paired import holm, randomisation_p
from dbrag.evaluation.significance import bootstrap, mcnemar, paired_bootstrap, wilson

VALUES: dict[str, Any] = json.loads(Path(__file__).with_name("values.json").read_text("utf-8"))


def calls(case: dict[str, Any]) -> list[Call]:
    return [Call(told, right) for told, right in zip(case["told"], case["right"], strict=True)]


@pytest.mark.parametrize("case", VALUES["recall"])
def test_recall_is_that_of_trec_eval(case: dict[str, Any]) -> None:
    for k, value in case["recall"].items():
        found = recall_at_k(case["gold"], case["ranked"], int(k))
        assert found == pytest.approx(value, abs=1e-9)
        assert complete_recall_at_k(case["gold"], case["ranked"], int(k)) == (value == 1)


@pytest.mark.parametrize("case", VALUES["sureness"])
def test_calibration_is_that_of_scikit_learn(case: dict[str, Any]) -> None:
    assert auroc(calls(case)) == pytest.approx(case["auroc"])
    assert brier(calls(case)) == pytest.approx(case["brier"])
    assert expected_calibration_error(calls(case)) == pytest.approx(case["ece"])


@pytest.mark.parametrize("case", VALUES["ties"])
def test_the_area_of_ties_is_that_of_scikit_learn(case: dict[str, Any]) -> None:
    assert auroc(calls(case)) == pytest.approx(case["auroc"])


@pytest.mark.parametrize("case", VALUES["wilson"])
def test_the_interval_of_a_share_is_that_of_scipy(case: dict[str, Any]) -> None:
    assert wilson(case["k"], case["n"]) == pytest.approx((case["low"], case["high"]), abs=1e-7)


@pytest.mark.parametrize("case", VALUES["mcnemar"])
def test_mcnemar_is_that_of_statsmodels(case: dict[str, Any]) -> None:
    assert mcnemar(case["wins"], case["losses"]) == pytest.approx(case["p"], rel=1e-9)


@pytest.mark.parametrize("case", VALUES["holm"])
def test_holms_correction_is_that_of_statsmodels(case: dict[str, Any]) -> None:
    assert holm(case["p"]) == pytest.approx(case["holm"])


@pytest.mark.parametrize("case", VALUES["randomisation"])
def test_the_randomisation_test_is_that_of_scipy(case: dict[str, Any]) -> None:
    # 10,000 draws against all of them: three standard errors of a share.
    assert randomisation_p(case["a"], case["b"]) == pytest.approx(case["p"], abs=0.016)


@pytest.mark.parametrize("case", VALUES["bootstrap"])
def test_the_bootstrap_is_that_of_scipy(case: dict[str, Any]) -> None:
    a, b, units = case["a"], case["b"], case["units"]
    for kind, drawn in (("questions", None), ("databases", units)):
        mean = bootstrap(b, drawn)
        assert (mean.low, mean.high) == pytest.approx(case["mean"][kind], abs=0.009)
        gain = paired_bootstrap(a, b, drawn)
        assert (gain.low, gain.high) == pytest.approx(case["difference"][kind], abs=0.009)
