from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.errors import ModelError, PromptTooLong
from dbrag.models.base import ChatModel, Embedder, Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder, ScriptedModel, ScriptExhausted

PROMPT = Prompt("Write SQL.", "table a(b)", "How many?")


def test_fakes_are_models() -> None:
    assert isinstance(ScriptedModel([]), ChatModel)
    assert isinstance(FunctionModel(lambda _: ""), ChatModel)
    assert isinstance(HashEmbedder(), Embedder)


def test_script_in_order_with_callables() -> None:
    model = ScriptedModel(["one", lambda prompt: prompt.request.upper(), "three"])
    assert [r.text for r in model.sample(PROMPT, 2, temperature=0.5, seed=3)] == [
        "one",
        "HOW MANY?",
    ]
    assert model.left == 1
    assert model.sample(PROMPT, stop=[";"])[0].text == "three"
    assert model.prompts == [PROMPT, PROMPT]
    assert [(call["n"], call["seed"], call["stop"]) for call in model.calls] == [
        (2, 3, ()),
        (1, 0, (";",)),
    ]


def test_exhausted_script_says_what_was_asked() -> None:
    model = ScriptedModel(["one"])
    model.sample(PROMPT)
    with pytest.raises(ScriptExhausted, match=r"all its 1 replies.*'How many\?'") as caught:
        model.sample(PROMPT)
    assert isinstance(caught.value, ModelError)
    assert isinstance(caught.value, AssertionError)


def test_tokens_are_words_and_charged_once() -> None:
    replies = FunctionModel(lambda _: "select 1", logprob=-0.5).sample(PROMPT, 2)
    # the roles count too: "[system]", "[user]"
    assert [r.prompt_tokens for r in replies] == [9, 0]
    assert [r.completion_tokens for r in replies] == [2, 2]
    assert [r.logprob for r in replies] == [-0.5, -0.5]


def test_too_long_and_closed() -> None:
    model = FunctionModel(lambda _: "", context_tokens=5)
    with pytest.raises(PromptTooLong, match="9 words"):
        model.sample(PROMPT)
    model.close()
    with pytest.raises(ModelError, match="closed"):
        model.sample(PROMPT)


def test_same_text_same_vector_and_shared_words_are_near() -> None:
    embedder = HashEmbedder(256)
    a, b, c, again = embedder.encode(
        ["orders of a customer", "customer orders", "zebra mountain", "Orders of a CUSTOMER"]
    )
    assert np.array_equal(a, again)
    assert a @ b > 0.6
    assert abs(a @ c) < 0.3


@given(st.lists(st.text(max_size=40), max_size=8), st.integers(1, 100))
def test_vectors_are_unit_whatever_the_text(texts: list[str], dim: int) -> None:
    vectors = HashEmbedder(dim).encode(texts)
    assert vectors.shape == (len(texts), dim)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_identity_depends_on_the_dimension() -> None:
    assert HashEmbedder(64).sha256 == HashEmbedder(64).sha256 != HashEmbedder(32).sha256
    with pytest.raises(ModelError):
        HashEmbedder(0)
