"""Contriever's loading and pooling, on a BERT of two layers with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dbrag.errors import ModelNotInstalled, WeightsError
from dbrag.evaluation.baselines import packages
from dbrag.evaluation.baselines.contriever import load_contriever
from dbrag.evaluation.baselines.names import CONTRIEVER

from .heavy import heavy

torch = heavy("torch")
transformers = heavy("transformers")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "table", "name", "student", "ship", "|", ":"]
LIMIT = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(7)
    path = tmp_path_factory.mktemp("models") / "tiny-contriever"
    vocabulary = path.parent / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS))
    transformers.BertTokenizerFast(str(vocabulary)).save_pretrained(path)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=LIMIT,
    )
    transformers.BertModel(config).save_pretrained(path)
    return path


def test_the_mean_of_the_tokens_that_are_there(folder: Path) -> None:
    encoder = load_contriever(str(folder))
    texts = ["student name", "ship", "table name : ship | student", ""]
    found = encoder.encode(texts)
    assert found.shape == (4, encoder.dim) == (4, 8)
    assert found.dtype == np.float32
    model = transformers.BertModel.from_pretrained(folder).eval()
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    for text, vector in zip(texts, found, strict=True):  # one at a time: no padding to leave out
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        mean = states.mean(0).numpy()
        assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def test_long_texts_are_cut(folder: Path) -> None:
    encoder = load_contriever(str(folder))
    long, cut = encoder.encode(["ship " * 500, "ship " * (LIMIT - 2)])
    assert long == pytest.approx(cut, abs=1e-6)


def test_the_order_of_texts_is_kept(folder: Path) -> None:
    encoder = load_contriever(str(folder))
    texts = [f"{'ship ' * (i % 7)}student" for i in range(40)]
    assert encoder.encode(texts) == pytest.approx(
        np.concatenate([encoder.encode([text]) for text in texts]), abs=1e-5
    )
    assert encoder.encode([]).shape == (0, 8)


def test_its_identity_is_that_of_the_weights(folder: Path, tmp_path: Path) -> None:
    encoder = load_contriever(str(folder))
    assert encoder.name == "transformers:tiny-contriever"
    assert encoder.sha256 == load_contriever(str(folder)).sha256
    model = transformers.BertModel.from_pretrained(folder)
    with torch.no_grad():
        model.pooler.dense.bias[0] += 1
    model.save_pretrained(tmp_path)
    transformers.BertTokenizerFast.from_pretrained(folder).save_pretrained(tmp_path)
    assert load_contriever(str(tmp_path)).sha256 != encoder.sha256


def test_missing_weights(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=f"weights missing: '{CONTRIEVER}'") as caught:
        load_contriever(offline=True)
    assert "--weights" in caught.value.hint
    with pytest.raises(WeightsError, match="weights missing"):
        load_contriever(str(tmp_path))  # a folder without a model
    with pytest.raises(WeightsError, match="weights missing: 'no/such-model'"):
        load_contriever("no/such-model")  # a hub that does not answer


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(ModelNotInstalled, match="contriever needs torch") as caught:
        load_contriever()
    assert caught.value.hint == 'pip install "dbrag[baselines]"'
