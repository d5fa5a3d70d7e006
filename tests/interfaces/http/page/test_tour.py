"""The walk that makes the pictures of the documents, here with a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.interfaces.http.conftest import Served
from tests.interfaces.http.page import tour
from tests.interfaces.http.page.conftest import Script


def test_the_walk_and_its_pictures(
    browser: Any, site: Served, script: Script, tmp_path: Path
) -> None:
    tour.walk(browser, site.url, tmp_path, script.held)
    made = {path.stem: path.read_bytes() for path in tmp_path.glob("*.png")}
    assert set(made) == set(tour.NAMES)
    assert all(one.startswith(b"\x89PNG\r\n") for one in made.values())
    assert len(set(made.values())) == len(made)
