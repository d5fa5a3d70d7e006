"""``ask --explain`` and ``--trace`` of a program that is written step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from dbrag.interfaces.cli.notices import next_text

from .test_whole_way import model  # noqa: F401  fixture

if TYPE_CHECKING:
    import pytest

REPLIES = (
    'paid: SELECT l.order_id, l.quantity * l.price AS total FROM "order lines" AS l '
    "WHERE l.product = 'green tea'",
    "sums: SELECT nothing FROM paid",
    "sums: SELECT SUM(total) AS t FROM paid",
    "DONE",
)


def test_steps_are_told(
    cli,
    model,  # noqa: F811
    small_shop: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DBRAG_PROGRAM", "steps")
    replies = iter(REPLIES)
    model._fn = lambda _: next(replies)
    path = tmp_path / "trace.json"
    done = cli(
        "ask", "-s", small_shop, "How much was paid for Green Tea?",
        "--votes", "1", "--explain", "--trace", path,
    )  # fmt: skip
    assert done.code == 0
    steps = done.out[done.out.index("\nstep 1") : done.out.index("\nprogram")].splitlines()[1:]
    assert steps[0] == "step 1: paid"
    assert steps[1].startswith("  SELECT l.order_id, l.quantity * l.price AS total FROM")
    assert steps[2:] == [
        "  'green tea' read as 'Green Tea'",
        "  2 rows",
        "  columns: order_id int64, total double",
        "  1 | 9.0",
        "  2 | 4.5",
        "step 2: sums",
        "  sums: SELECT nothing FROM paid",
        "  failed: no such column: 'nothing'",
        "step 2: sums (after 1 repair)",
        "  SELECT SUM(total) AS t FROM paid",
        "  1 row",
        "  columns: t double",
        "  13.5",
    ]
    trace = json.loads(path.read_text(encoding="utf-8"))
    assert [e["name"] for e in trace["trace"] if e["stage"] == "step"] == ["paid", "sums", "sums"]
    assert [step["name"] for step in trace["answer"]["steps"]] == ["paid", "answer"]


def test_a_step_is_said_on_the_way() -> None:
    assert next_text({"stage": "step", "name": "paid"}) == "writing the next step …"
