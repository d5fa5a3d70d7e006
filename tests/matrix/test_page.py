"""The published matrix is that of these tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"


def test_the_page_has_a_row_for_every_kind(request: pytest.FixtureRequest) -> None:
    kinds = {
        str(value)
        for item in request.session.items
        for name, value in item.user_properties
        if name == "kind"
    }
    rows = {
        line.split("|")[1].strip() for line in PAGE.read_text("utf-8").splitlines() if "|" in line
    }
    missing = sorted(kinds - rows)
    assert not missing, "made anew by: DBRAG_MATRIX=docs/matrix.md pytest tests/matrix"
