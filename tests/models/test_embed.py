from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dbrag.errors import ModelNotInstalled, UsageError, WeightsError
from dbrag.models.base import Embedder
from dbrag.models.embed import CachedEmbedder, OnnxEmbedder, _batches, load_embedder
from dbrag.models.testing import HashEmbedder
from dbrag.settings import Settings


class Counting(HashEmbedder):
    calls = 0

    def encode(self, texts: Any) -> Any:
        self.calls += 1
        return super().encode(texts)


def test_cache_remembers_single_texts() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, size=2)
    assert (cached.name, cached.sha256, cached.dim) == (inner.name, inner.sha256, inner.dim)
    first = cached.encode(["a"])
    first[:] = 0  # what a caller does with its array is its own business
    assert np.allclose(cached.encode(["a"]), inner.encode(["a"]))
    assert inner.calls == 2
    cached.encode(["b"])
    cached.encode(["a"])
    cached.encode(["c"])  # pushes b out, a was used since
    calls = inner.calls
    cached.encode(["a"])
    assert inner.calls == calls
    cached.encode(["b"])
    assert inner.calls == calls + 1
    assert cached.encode(["a", "b"]).shape == (2, 64)
    assert inner.calls == calls + 2


def test_batches_hold_everything_once_and_little_padding() -> None:
    lengths = [5, 250, 3, 250, 250, 40, 7] * 10
    batches = _batches(lengths)
    assert sorted(i for batch in batches for i in batch) == list(range(70))
    assert all(len(batch) <= 16 for batch in batches)
    assert all(len(b) * max(lengths[i] for i in b) <= 2048 for b in batches if len(b) > 1)
    order = [lengths[i] for batch in batches for i in batch]
    assert order == sorted(order)
    assert _batches([]) == []


@pytest.mark.parametrize("name", ["local:other", "cohere:embed", "nonsense", ""])
def test_unknown_encoders_name_what_is_possible(name: str) -> None:
    with pytest.raises(ModelNotInstalled, match=name or "''") as error:
        load_embedder(Settings(encoder=name, offline=True))
    assert "local:all-minilm-l6-v2" in error.value.hint


def test_a_folder_without_the_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no model\.onnx"):
        load_embedder(Settings(encoder=str(tmp_path)))


def test_broken_files(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    embedder = load_embedder(Settings(encoder=str(tmp_path)))
    assert len(embedder.sha256) == 64  # nothing is loaded for that
    with pytest.raises(WeightsError, match="cannot load") as error:
        embedder.encode(["x"])
    assert "\n" not in error.value.message
    with pytest.raises(WeightsError):
        OnnxEmbedder(tmp_path / "missing.onnx", tmp_path / "tokenizer.json").sha256  # noqa: B018


@pytest.mark.model
def test_the_real_encoder(model_settings: Settings) -> None:
    embedder = load_embedder(model_settings)
    assert isinstance(embedder, Embedder)
    assert embedder.dim == 384
    texts = [
        "How many singers are there?",
        "count of vocalists",
        "the price of steel",
        "",
        "x" * 99_999,
        "\ud800",
        "东京",
    ]
    vectors = embedder.encode(texts)
    assert vectors.shape == (7, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    alone = np.concatenate([embedder.encode([text]) for text in texts])
    assert np.allclose(alone, vectors, atol=1e-4)
    assert embedder.encode([]).shape == (0, 384)
