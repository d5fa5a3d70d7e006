"""A tiny DTR as google-research/tapas saves one, and its forward pass in plain numpy.

Names and arithmetic are those of tapas/models/bert/modeling.py; nothing of transformers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[EMPTY]", "ship", "name", "id", "who"]
WORDS += [*"0123456789", "old", "new", "##s", "age"]
HIDDEN, INNER, HEADS, LAYERS, LIMIT, PROJECTED = 12, 20, 3, 2, 64, 5
KINDS = [3, 256, 256, 2, 256, 256, 10]
CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": HIDDEN,
    "initializer_range": 0.02,
    "intermediate_size": INNER,
    "max_position_embeddings": LIMIT,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "softmax_temperature": 1.0,
    "type_vocab_size": KINDS,
    "vocab_size": len(WORDS),
}


def shapes(scope: str) -> dict[str, tuple[int, ...]]:
    """The variables of one encoder."""
    found: dict[str, tuple[int, ...]] = {
        "embeddings/word_embeddings": (len(WORDS), HIDDEN),
        "embeddings/position_embeddings": (LIMIT, HIDDEN),
        **{f"embeddings/token_type_embeddings_{i}": (n, HIDDEN) for i, n in enumerate(KINDS)},
    }
    dense = {"pooler/dense": (HIDDEN, HIDDEN)}
    norms = ["embeddings"]
    for layer in (f"encoder/layer_{i}" for i in range(LAYERS)):
        for one in ("query", "key", "value"):
            dense[f"{layer}/attention/self/{one}"] = (HIDDEN, HIDDEN)
        dense[f"{layer}/attention/output/dense"] = (HIDDEN, HIDDEN)
        dense[f"{layer}/intermediate/dense"] = (HIDDEN, INNER)
        dense[f"{layer}/output/dense"] = (INNER, HIDDEN)
        norms += [f"{layer}/attention/output", f"{layer}/output"]
    for name, (inner, outer) in dense.items():
        found |= {f"{name}/kernel": (inner, outer), f"{name}/bias": (outer,)}
    for name in norms:
        found |= {f"{name}/LayerNorm/gamma": (HIDDEN,), f"{name}/LayerNorm/beta": (HIDDEN,)}
    return {f"{scope}/{name}": shape for name, shape in found.items()}


def random_variables(scopes: Sequence[str] = ("bert", "bert_1")) -> dict[str, Array]:
    """All of a checkpoint with its projections."""
    random = np.random.default_rng(7)
    wanted = {name: shape for scope in scopes for name, shape in shapes(scope).items()}
    wanted |= {f"{of}_projection": (PROJECTED, HIDDEN) for of in ("text", "table")}
    return {name: random.normal(0, 0.5, s).astype(np.float32) for name, s in wanted.items()}


def write_beside(folder: Path, **changed: Any) -> Path:
    """The files that Google publishes beside a checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    (folder / "bert_config.json").write_text(json.dumps(CONFIG | changed))
    return folder


def pooled(variables: Mapping[str, Array], scope: str, words: Sequence[str], kinds: Array) -> Array:
    """The pooled output, ``[hidden]``, of word pieces with token types ``[n_words, 7]``."""

    def dense(x: Array, name: str) -> Array:
        return x @ variables[f"{scope}/{name}/kernel"] + variables[f"{scope}/{name}/bias"]

    def norm(x: Array, name: str) -> Array:
        x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
        at = f"{scope}/{name}/LayerNorm"
        return x * variables[f"{at}/gamma"] + variables[f"{at}/beta"]

    def split(x: Array) -> Array:  # into [heads, n_words, size]
        return x.reshape(len(words), HEADS, -1).transpose(1, 0, 2)

    def embedded(name: str) -> Array:
        return variables[f"{scope}/embeddings/{name}"]

    hidden = embedded("word_embeddings")[[WORDS.index(word) for word in words]]
    hidden = hidden + embedded("position_embeddings")[: len(words)]
    for i in range(7):
        hidden = hidden + embedded(f"token_type_embeddings_{i}")[kinds[:, i]]
    hidden = norm(hidden, "embeddings")
    for at in (f"encoder/layer_{i}" for i in range(LAYERS)):
        query, key, value = (
            split(dense(hidden, f"{at}/attention/self/{one}")) for one in ("query", "key", "value")
        )
        logits = np.exp(query @ key.transpose(0, 2, 1) / np.sqrt(HIDDEN / HEADS))
        context = logits / logits.sum(-1, keepdims=True) @ value
        context = context.transpose(1, 0, 2).reshape(len(words), HIDDEN)
        seen = norm(
            dense(context, f"{at}/attention/output/dense") + hidden, f"{at}/attention/output"
        )
        inner = dense(seen, f"{at}/intermediate/dense")
        inner = inner * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
        hidden = norm(dense(inner, f"{at}/output/dense") + seen, f"{at}/output")
    result: Array = np.tanh(dense(hidden[0], "pooler/dense"))
    return result
