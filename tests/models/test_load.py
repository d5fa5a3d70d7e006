from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dbrag.errors import UsageError, WeightsError
from dbrag.models import load
from dbrag.models.load import check, is_remote, load_chat_model
from dbrag.models.testing import FunctionModel
from dbrag.settings import Settings
from tests.models.test_gguf import gguf

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache=str(tmp_path / "cache"))


@pytest.fixture
def weights_file(tmp_path: Path) -> Path:
    path = tmp_path / "my model.gguf"
    path.write_bytes(gguf())
    return path


def test_one_model_per_file_and_process(settings: Settings, weights_file: Path) -> None:
    model = load_chat_model(f"local:{weights_file}", settings)
    assert model.name == f"local:{weights_file}"
    assert not model.remote
    assert load_chat_model(str(weights_file), settings) is model
    model.close()
    again = load_chat_model(str(weights_file), settings)
    assert again is not model
    again.close()


def test_missing_weights_name_the_command(settings: Settings) -> None:
    for spec in ("qwen2.5-coder-1.5b", "local:qwen2.5-coder-1.5b", settings.model):
        with pytest.raises(WeightsError) as caught:
            load_chat_model(spec, settings)
        assert caught.value.hint == "dbrag models pull qwen2.5-coder-1.5b"


@pytest.mark.parametrize("spec", ["gpt-5", "", "  ", ":", "openai:", ":gpt", "llama"])
def test_a_name_without_provider_is_a_usage_error(spec: str, settings: Settings) -> None:
    with pytest.raises(UsageError, match="names no provider") as caught:
        load_chat_model(spec, settings)
    assert "local:qwen2.5-coder-1.5b" in caught.value.hint


def test_unknown_local_name_and_an_encoder(settings: Settings) -> None:
    with pytest.raises(UsageError, match="'nope'"):
        load_chat_model("local:nope", settings)
    with pytest.raises(UsageError, match="not a chat model"):
        load_chat_model("local:all-minilm-l6-v2", settings)


def test_a_path_that_is_wrong(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no such model file"):
        load_chat_model("local:/nowhere/model.gguf", settings)
    (tmp_path / "x.gguf").write_text("<html>")
    with pytest.raises(WeightsError, match="not a GGUF"):
        load_chat_model(f"local:{tmp_path / 'x.gguf'}", settings)


def test_remote_or_not_without_loading() -> None:
    assert is_remote("openai:gpt-5")
    assert is_remote("openrouter:a/b:free")
    assert not is_remote("local:qwen2.5-coder-1.5b")
    assert not is_remote("qwen2.5-coder-1.5b")
    assert not is_remote("C:\\models\\a.gguf")


def test_offline_refuses_remote_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pydantic_ai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    settings = Settings(cache=str(tmp_path), offline=True)
    with pytest.raises(UsageError, match="offline is set"):
        load_chat_model("openai:gpt-5", settings)
    assert not load_chat_model("ollama:m", settings).remote, "the loopback is no other machine"


def test_check_tells_speed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    model = FunctionModel(lambda _: "SELECT 1")
    monkeypatch.setattr(load, "_load", lambda *_: model)
    report = check("any:thing", settings)
    assert report.text == "SELECT 1"
    assert report.name == model.name
    assert report.tokens_per_s > 0
    assert model.calls[0]["max_tokens"] <= 100


def test_check_refuses_an_empty_answer(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    empty: Any = FunctionModel(lambda _: " ")
    monkeypatch.setattr(load, "_load", lambda *_: empty)
    with pytest.raises(load.ModelError, match="empty answer"):
        check("any:thing", settings)
