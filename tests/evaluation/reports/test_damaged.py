"""Runs whose files were damaged or edited: a report or a clear error, nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbrag.errors import UsageError
from dbrag.evaluation.reports.build import make_report
from dbrag.evaluation.reports.markdown import markdown_of

if TYPE_CHECKING:
    import pytest

RESULTS = Path(__file__).parents[3] / "experiments" / "results"
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=4),
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
    try:
        report = make_report([str(folder / "a.jsonl"), str(source)])
    except UsageError:
        return
    report.to_dict()
    markdown_of(report.document, lambda figure: figure.name)
