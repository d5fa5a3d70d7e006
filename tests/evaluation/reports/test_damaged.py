"""Runs whose files were damaged or edited: a report or a clear error, nothing else."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbrag.errors import UsageError
from dbrag.evaluation.reports.build import make_report
from dbrag.evaluation.reports.diff import CHANGES, diff_document, make_diff
from dbrag.evaluation.reports.markdown import markdown_of

RESULTS = Path(__file__).parents[3] / "experiments" / "results"
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_damaged_run_is_a_report_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """One value of a published run is something else: never anything but a UsageError."""
    folder = tmp_path_factory.mktemp("runs")
    names = st.sampled_from(["spider-dev-60-gold-tables", "spider-dev-40-rerank-none"])
    source = RESULTS / f"{data.draw(names)}.jsonl"
    records = [json.loads(line) for line in source.read_text().splitlines()[:4]]
    summary = json.loads(source.with_suffix(".json").read_text())
    where: Any = data.draw(st.sampled_from([records[0], summary["config"], summary]))
    while True:
        key = data.draw(st.sampled_from(sorted(where)))
        if not isinstance(where[key], dict) or not where[key] or data.draw(st.booleans()):
            break
        where = where[key]
    where[key] = data.draw(ANYTHING)
    (folder / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    (folder / "a.json").write_text(json.dumps(summary))
    tabled(folder / "a.jsonl")
    try:
        report = make_report([str(folder / "a.jsonl"), str(source)])
    except UsageError:
        return
    report.to_dict()
    markdown_of(report.document, lambda figure: figure.name)


def tabled(run: Path) -> None:
    """No table of ``experiments/tables.py`` ends with a traceback."""
    main = runpy.run_path(str(RESULTS.parent / "tables.py"))["main"]
    for command in ("summary", "paper", "calibration"):
        assert main([command, str(run)]) in (0, 2)


EDITED: list[tuple[tuple[str, ...], Any, str]] = [
    (("seconds",), 10**400, "'seconds' is 1000"),
    (("seconds",), 1e308, "'seconds' is 1e+308, not a number from 0 up to 1e15"),
    (("tokens", "prompt"), 10**400, "'prompt' is 1000"),
    (("gold",), {"tables": [1]}, "'tables' is [1], not a list of texts"),
    (("prediction",), {"tables": "shop.orders"}, "'tables' is 'shop.orders', not a list of texts"),
]
SUMMED: list[tuple[tuple[str, ...], Any, str]] = [
    (("not_run",), "no", "'not_run' is 'no', not an object"),
    (("not_run",), {"reason": "none"}, "'not_run' lacks 'command'"),
    (("by_tables",), {"x": {"n": 1}}, "'by_tables' is {'x': {'n': 1}}, not an object by whole"),
    (("by_tables", "1"), {}, "'1' lacks 'n'"),
    (("by_where", "with", "EX"), "x", "'EX' is 'x', not a number from 0 to 1"),
    (("seconds", "median"), "x", "'median' is 'x', not a number from 0 up to 1e15"),
    (("EX",), "x", "'EX' is 'x', not a number from 0 to 1"),
    (("macro", "Row", "f1"), [], "'f1' is [], not a number from 0 to 1"),
]


@pytest.mark.parametrize(
    ("whole", "keys", "value", "told"),
    [(False, *one) for one in EDITED] + [(True, *one) for one in SUMMED],
)
def test_what_was_edited_is_told_by_its_key(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    whole: bool,
    keys: tuple[str, ...],
    value: Any,
    told: str,
) -> None:
    """The same words from a report, a comparison and the tables, and no traceback."""
    source = RESULTS / "spider-dev-60-gold-tables.jsonl"
    records = [json.loads(line) for line in source.read_text().splitlines()[:4]]
    summary = json.loads(source.with_suffix(".json").read_text())
    inner: Any = summary if whole else records[0]
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    run = tmp_path / "a.jsonl"
    run.write_text("".join(json.dumps(one) + "\n" for one in records))
    run.with_suffix(".json").write_text(json.dumps(summary))
    for read in (
        lambda: make_report([str(run)]),
        lambda: diff_document(make_diff(str(source), str(run)), CHANGES),
    ):
        with pytest.raises(UsageError) as caught:
            read()
        assert told in caught.value.message
    main = runpy.run_path(str(RESULTS.parent / "tables.py"))["main"]
    assert main(["summary" if whole else "calibration", str(run)]) == 2
    assert told in capsys.readouterr().err
