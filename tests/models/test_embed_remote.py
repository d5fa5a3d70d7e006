"""Encoders behind an HTTP endpoint, against a real server on the loopback."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.errors import ModelError, ModelNotInstalled, UsageError
from dbrag.models import embed_remote
from dbrag.models.embed import is_remote_encoder, load_embedder
from dbrag.models.embed_remote import RemoteEmbedder, _batches, _cut
from dbrag.settings import Settings

if TYPE_CHECKING:
    from .conftest import Web

KEY = "sk-proj-abcdefghijklmnopqrstuvwx"


def answer(path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Vectors ``[len(text), 1, 0]``, told in the wrong order."""
    assert path == "/v1/embeddings"
    assert body["encoding_format"] == "float"
    data = [
        {"object": "embedding", "index": i, "embedding": [len(text), 1, 0]}
        for i, text in enumerate(body["input"])
    ]
    return 200, {"object": "list", "data": data[::-1], "model": body["model"]}


@pytest.fixture
def endpoint(web: Web, monkeypatch: pytest.MonkeyPatch) -> Web:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{web.url}/v1")
    web.post = answer
    return web


def encoder(waits: list[float] | None = None, spec: str = "openai:small") -> RemoteEmbedder:
    return RemoteEmbedder(spec, sleep=([] if waits is None else waits).append)


def test_unit_vectors_in_the_order_of_the_texts(endpoint: Web) -> None:
    one = encoder()
    vectors = one.encode(["abc", "a", ""])
    assert vectors.dtype == np.float32
    expected = [[3 / math.sqrt(10), 1 / math.sqrt(10), 0], *([[1 / math.sqrt(2)] * 2 + [0]] * 2)]
    assert np.allclose(vectors, expected)
    assert endpoint.requests[0][2]["authorization"] == f"Bearer {KEY}"
    assert one.dim == 3
    assert len(endpoint.requests) == 1
    assert one.encode([]).shape == (0, 3)
    assert not one.remote


def test_dim_asks_with_one_word(endpoint: Web) -> None:
    assert encoder().dim == 3
    assert len(endpoint.requests) == 1


def test_many_texts_go_in_batches(endpoint: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_remote, "BATCH_TEXTS", 4)
    texts = ["x" * (i + 1) for i in range(10)]
    vectors = encoder().encode(texts)
    assert np.allclose(vectors[:, 0] / vectors[:, 1], range(1, 11), atol=1e-4)
    assert len(endpoint.requests) == 3


@given(st.lists(st.text(max_size=50), max_size=30))
def test_batches_hold_everything_in_order(texts: list[str]) -> None:
    cut = [_cut(text) for text in texts]
    assert [text for batch in _batches(cut) for text in batch] == cut


@given(st.text(max_size=20).map(lambda text: text * 1_000))
def test_texts_are_cut_to_what_the_endpoint_takes(text: str) -> None:
    cut = _cut(text)
    assert 1 <= len(cut.encode()) <= embed_remote.MAX_TEXT_BYTES


def test_the_identity_is_provider_model_and_address(
    endpoint: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = encoder().sha256
    assert first == encoder().sha256
    assert first != encoder(spec="openai:large").sha256
    assert first != encoder(spec=f"openai:small@{endpoint.url}/other").sha256
    assert encoder(spec=f"openai:small@{endpoint.url}/v1").sha256 == first
    assert encoder(spec="openai:small@http://x/v1").name == "openai:small"
    assert not endpoint.requests


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(endpoint: Web, status: int) -> None:
    left = [status, status]

    def flaky(path: str, body: dict[str, Any]) -> tuple[int, Any]:
        return (left.pop(), {"error": {"message": "busy"}}) if left else answer(path, body)

    endpoint.post = flaky
    waits: list[float] = []
    assert encoder(waits).encode(["a"]).shape == (1, 3)
    assert [wait for wait in waits if wait] == [1.0, 2.0]


def test_in_the_end_the_last_error_is_told(endpoint: Web) -> None:
    endpoint.post = lambda *_: (503, {"error": {"message": "over\nloaded"}})
    with pytest.raises(ModelError, match=r"'openai:small' failed \(HTTP 503\): over loaded"):
        encoder().encode(["a"])
    assert len(endpoint.requests) == 5


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, "refused the key"),
        (404, {"error": "model not found"}, "was not found"),
        (400, {"error": {"message": "too long"}}, r"failed \(HTTP 400\): too long"),
        (429, {"error": {"message": "pay", "code": "insufficient_quota"}}, "HTTP 429"),
        (200, {"data": [{"index": 0}]}, "gave no vectors"),
        (200, {"data": []}, "numbers for 1 texts"),
        (200, {"data": [{"index": 0, "embedding": []}]}, "numbers for 1 texts"),
        (200, {"data": [{"index": 0, "embedding": ["x"]}]}, "gave no vectors"),
        (200, ["?"], "gave no vectors"),
    ],
)
def test_other_errors_are_told_at_once_without_the_key(
    endpoint: Web, status: int, body: Any, message: str
) -> None:
    endpoint.post = lambda *_: (status, body)
    with pytest.raises(ModelError, match=message) as caught:
        encoder().encode(["a"])
    assert KEY not in str(caught.value)
    assert len(endpoint.requests) == 1


def test_a_vector_of_another_length_is_refused(endpoint: Web) -> None:
    one = encoder()
    one.encode(["a"])
    endpoint.post = lambda *_: (200, {"data": [{"index": 0, "embedding": [1.0]}]})
    with pytest.raises(ModelError, match="of 3 each"):
        one.encode(["b"])


def test_no_connection(endpoint: Web) -> None:
    waits: list[float] = []
    with pytest.raises(ModelError, match="cannot reach 'openai:small'"):
        encoder(waits, "openai:small@http://127.0.0.1:9/v1").encode(["a"])
    assert waits == [1.0, 2.0, 4.0, 8.0]


def test_a_password_is_no_part_of_the_identity_and_is_not_told(endpoint: Web) -> None:
    host = endpoint.url.removeprefix("http://")
    one = encoder(spec=f"openai:small@http://me:first-pw@{host}/v1")
    assert one.sha256 == encoder(spec=f"openai:small@http://me:other-pw@{host}/v1").sha256
    assert one.endpoint == f"{endpoint.url}/v1"
    endpoint.post = lambda *_: (404, {"error": "no model"})
    with pytest.raises(ModelError) as caught:
        one.encode(["a"])
    assert "first-pw" not in str(caught.value)
    with pytest.raises(UsageError) as wrong:
        encoder(spec="openai:small@http://me:first-pw@host:port/v1")
    assert "first-pw" not in str(wrong.value)


def test_the_key_goes_only_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://mine.example/v1")
    sent = {
        "openai:x": KEY,
        "openai:x@https://mine.example/other": KEY,
        "openai:x@https://api.openai.com/v1": KEY,
        "openai:x@http://127.0.0.1:8080/v1": KEY,
        "openai:x@https://else.example/v1": None,
        "openai:x@https://mine.example.else.example/v1": None,
        "ollama:x@https://mine.example/v1": None,
    }
    for spec, key in sent.items():
        expected = None if key is None else f"Bearer {key}"
        assert encoder(spec=spec)._http().headers.get("authorization") == expected, spec


def test_without_a_key_one_is_asked_for(endpoint: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    endpoint.post = lambda *_: (401, {"error": {"message": "who are you?"}})
    with pytest.raises(ModelError, match="wants a key") as caught:
        encoder().encode(["a"])
    assert "OPENAI_BASE_URL" in caught.value.hint


def test_a_key_that_no_header_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "schlüssel")
    with pytest.raises(ModelNotInstalled, match="OPENAI_API_KEY is no key") as caught:
        encoder(spec="openai:x@http://127.0.0.1:9/v1")
    assert "schlüssel" not in str(caught.value)


def test_no_proxy_between_this_machine_and_itself(
    endpoint: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert encoder().encode(["a"]).shape == (1, 3)


def test_the_server_says_how_long_to_wait(endpoint: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint.post = lambda *_: (429, {"error": "slow"})
    monkeypatch.setattr(embed_remote, "_retry_after", lambda _: 3.0)
    waits: list[float] = []
    with pytest.raises(ModelError):
        encoder(waits).encode(["a"])
    assert waits == [3.0, 3.0, 4.0, 8.0]  # and none after the last try


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelNotInstalled, match="OPENAI_API_KEY"):
        load_embedder(Settings(encoder="openai:text-embedding-3-small"))
    with pytest.raises(UsageError, match="no URL"):
        load_embedder(Settings(encoder="openai:x@host"))
    with pytest.raises(ModelNotInstalled, match=r"unknown encoder .*") as caught:
        load_embedder(Settings(encoder="cohere:x"))
    assert "openai:NAME" in caught.value.hint


def test_offline_forbids_other_machines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    far = Settings(encoder="openai:text-embedding-3-small", offline=True)
    with pytest.raises(UsageError, match="offline"):
        load_embedder(far)
    near = load_embedder(Settings(encoder="ollama:bge-m3", offline=True))
    assert (near.name, near.remote) == ("ollama:bge-m3", False)  # type: ignore[attr-defined]


def test_which_names_are_endpoints() -> None:
    assert is_remote_encoder("openai:x")
    assert is_remote_encoder("ollama:bge-m3")
    assert not is_remote_encoder("local:all-minilm-l6-v2")
    assert not is_remote_encoder("/models/openai")
    assert not is_remote_encoder("openai:")
