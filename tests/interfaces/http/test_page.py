"""Static files at ``/``: open to whoever may connect, with a policy of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dbrag.database import Database
from tests.interfaces.http.conftest import TOKEN, Served, in_process


@pytest.fixture
def page(open_shop: Callable[..., Database], tmp_path: Path) -> Iterator[Served]:
    folder = tmp_path / "page"
    (folder / "parts").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>dbrag</title>")
    (folder / "parts" / "page.js").write_text("export {}")
    with in_process(open_shop(), folder, token=TOKEN) as served:
        yield served


def test_the_page_needs_no_token_and_allows_nothing_from_elsewhere(page: Served) -> None:
    response = page.http.get("/")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert page.http.head("/").status_code == 200
    script = page.http.get("/parts/page.js")
    assert "javascript" in script.headers["content-type"]


def test_failures_are_ours_at_every_address(page: Served) -> None:
    right = {"authorization": f"Bearer {TOKEN}"}
    for method, path, status in (
        ("GET", "/nothing.html", 404),
        ("GET", "/parts", 404),
        ("POST", "/", 405),
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api/v2/ask", 404),
        ("GET", "/api/v1/ask", 405),
        ("POST", "/api/v1/sources", 405),
    ):
        response = page.http.request(method, path, headers=right)
        assert response.status_code == status, path
        assert response.json()["error"]["code"] in ("not_found", "method")
        if status == 405:
            assert response.headers["allow"]


def test_the_api_beside_it_asks_for_its_token(page: Served) -> None:
    assert page.get("/sources").status_code == 401


def test_links_out_of_the_folder_are_not_followed(page: Served, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    link = tmp_path / "page" / "link.txt"
    try:
        link.symlink_to(tmp_path / "secret.txt")
    except OSError:
        pytest.skip("no symbolic links here")
    assert page.http.get("/link.txt").status_code == 404


def test_without_a_page_the_address_is_empty(
    open_shop: Callable[..., Database], tmp_path: Path
) -> None:
    with in_process(open_shop(), tmp_path / "none") as served:
        response = served.http.get("/")
        assert response.status_code == 404
        assert "openapi.json" in response.json()["error"]["hint"]
