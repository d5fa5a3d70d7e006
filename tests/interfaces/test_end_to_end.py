"""The whole way with the real local model and encoder, offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbrag.settings import Settings

pytestmark = pytest.mark.model


@pytest.fixture
def offline(model_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBRAG_CACHE", str(model_settings.cache_dir))
    monkeypatch.setenv("DBRAG_INDEX", str(model_settings.index))
    monkeypatch.setenv("DBRAG_OFFLINE", "1")


def test_the_demo(cli, offline) -> None:
    """At least five of the six questions, the README's one among them."""
    done = cli("demo", "--check", "--json")
    for question in done.json["questions"]:
        print(question["right"], f"{question['seconds']:.1f} s", question["sql"])
    assert done.code == 0, done.json
    assert done.json["right"] >= 5
    assert done.json["questions"][0]["right"]


def test_nothing_is_written_beside_the_database(cli, offline) -> None:
    cli("demo", "shop/shop.db")
    before = Path("shop/shop.db").read_bytes()
    value = cli("ask", "-s", "shop/shop.db", "How many stores are there?", "--json").json
    assert value["rows"] == [[8]]
    assert value["model"] == "local:qwen2.5-coder-1.5b"
    assert value["tokens"]["completion"] > 0
    assert [p.name for p in Path("shop").iterdir()] == ["shop.db"]
    assert Path("shop/shop.db").read_bytes() == before


def test_models_check(cli, offline) -> None:
    assert cli("models", "check", "--json").code == 0
