"""Text encoders of other machines: the embeddings endpoint of OpenAI and compatible servers.

``openai:NAME`` (``OPENAI_BASE_URL``, ``OPENAI_API_KEY``), ``ollama:NAME``
(``OLLAMA_BASE_URL``), or either with an address of its own: ``openai:NAME@http://host/v1``.
What leaves this machine are the texts to encode: when tables are indexed their names,
columns, comments and sample rows, at each search the question. ``OPENAI_API_KEY`` goes to
OpenAI, to the host of ``OPENAI_BASE_URL`` and to this machine only: an address may come
with somebody else's ``dbrag.toml``.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx

from dbrag.errors import ModelError, ModelNotInstalled, UsageError
from dbrag.models.endpoints import (
    OLLAMA_URL,
    OPENAI_URL,
    host_of,
    is_loopback,
    is_url,
    without_user,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

MAX_TEXT_BYTES = 8_000
"""More of a text is cut: OpenAI takes 8,192 tokens, and no token is shorter than a byte."""
BATCH_TEXTS = 128
BATCH_BYTES = 250_000
"""Of one request; OpenAI takes 2,048 texts and 300,000 tokens."""
TIMEOUT_S = 60.0
_WAITS_S = (1.0, 2.0, 4.0, 8.0)
_LONGEST_WAIT_S = 60.0
_EMBEDS = "check that it is a model of embeddings, and its address"
_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504})
_EMPTY = "-"
"""Stands for an empty text, which OpenAI refuses."""


class RemoteEmbedder:
    """An encoder behind an HTTP endpoint. Safe to share by threads.

    Args:
        spec: ``provider:model``, or ``provider:model@url``.
        sleep: waits between tries, seconds.

    Raises:
        ModelNotInstalled: the key is not set, or cannot be sent.
        UsageError: the address is no URL.
    """

    def __init__(self, spec: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        named, _, own_url = spec.partition("@")
        provider, _, self._model = named.partition(":")
        self._name = named
        self._url = (own_url or _default_url(provider)).rstrip("/")
        if not is_url(self._url):
            raise UsageError(
                f"the address of the encoder {named!r} is no URL: {self.endpoint!r}",
                f"write for example {named}@https://host.example/v1",
            )
        self._key = _key_for(self._url) if provider == "openai" else ""
        if not self._key and host_of(self._url) == host_of(OPENAI_URL):
            raise ModelNotInstalled(
                f"{named!r} needs the environment variable OPENAI_API_KEY, which is not set",
                "export OPENAI_API_KEY=…",
            )
        self._sleep = sleep
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._dim: int | None = None

    @property
    def name(self) -> str:
        """``provider:model``."""
        return self._name

    @property
    def remote(self) -> bool:
        """False only when the endpoint is on this machine."""
        return not is_loopback(self._url)

    @property
    def endpoint(self) -> str:
        """Where requests go, without user and password."""
        return without_user(self._url)

    @property
    def sha256(self) -> str:
        """Hash of provider, model and address: the weights themselves cannot be seen."""
        return hashlib.sha256(f"{self._name}\n{self.endpoint}".encode()).hexdigest()

    @property
    def dim(self) -> int:
        """Length of a vector; asked for with one word where nothing was encoded yet."""
        if self._dim is None:
            self.encode(["table"])
        assert self._dim is not None  # noqa: S101 - encode has set it
        return self._dim

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors ``[n_texts, dim]``, in the order of ``texts``; some requests for many.

        Raises:
            ModelError: no connection, an HTTP error, an answer of another form.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dim), np.float32)
        cut = [_cut(text) for text in texts]
        vectors = np.concatenate([self._batch(batch) for batch in _batches(cut)])
        norm = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.asarray(vectors / norm, np.float32)

    def _batch(self, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np

        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        data = self._post(body)
        try:
            ordered = sorted(data["data"], key=lambda item: item["index"])
            vectors = np.array([item["embedding"] for item in ordered], np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{self._name!r} gave no vectors: {_short(data)}", _EMBEDS) from error
        dim = self._dim or (vectors.shape[1] if vectors.ndim == 2 else 0)
        if vectors.shape != (len(texts), dim) or dim < 1 or not np.isfinite(vectors).all():
            raise ModelError(
                f"{self._name!r} gave {vectors.shape} numbers for {len(texts)} texts"
                + (f" of {self._dim} each" if self._dim else ""),
                _EMBEDS,
            )
        self._dim = dim
        return vectors

    def _post(self, body: dict[str, Any]) -> Any:
        """The JSON of an answer; what may pass is tried again after a while."""
        for wait_s in (*_WAITS_S, None):
            asked_s = 0.0
            try:
                response = self._http().post(f"{self._url}/embeddings", json=body)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                last = ModelError(
                    f"cannot reach {self._name!r} at {self.endpoint}: "
                    f"{error or type(error).__name__}",
                    "check the network, OPENAI_BASE_URL or OLLAMA_BASE_URL",
                )
            else:
                if response.status_code == 200:
                    try:
                        return response.json()
                    except ValueError as error:
                        raise ModelError(
                            f"{self._name!r} did not answer with JSON", _EMBEDS
                        ) from error
                last = self._failure(response)
                if response.status_code not in _AGAIN or "insufficient_quota" in response.text:
                    break
                asked_s = _retry_after(response)
            if wait_s is not None:
                self._sleep(max(wait_s, asked_s))
        raise last

    def _http(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
                # A proxy of the environment would take this machine's texts elsewhere.
                self._client = httpx.Client(
                    headers=headers, timeout=TIMEOUT_S, trust_env=self.remote
                )
            return self._client

    def _failure(self, response: httpx.Response) -> ModelError:
        try:
            told = response.json()["error"]
            text = str(told["message"] if isinstance(told, dict) else told)
        except (ValueError, KeyError, TypeError):
            text = response.text
        text = _short(text.replace(self._key, "…") if self._key else text)
        status = f"HTTP {response.status_code}"
        if response.status_code in (401, 403):
            if self._key:
                return ModelError(
                    f"{self._name!r} refused the key ({status}): {text}", "check the key"
                )
            return ModelError(
                f"{self._name!r} wants a key ({status}): {text}",
                "OPENAI_API_KEY is sent to OpenAI and to the host of OPENAI_BASE_URL only: "
                "set both",
            )
        if response.status_code == 404:
            hint = "check the model's name and the address"
            return ModelError(f"{self._name!r} was not found at {self.endpoint}: {text}", hint)
        return ModelError(
            f"{self._name!r} failed ({status}): {text}",
            "try again later, or set another encoder (DBRAG_ENCODER)",
        )


def _default_url(provider: str) -> str:
    if provider == "ollama":
        return os.environ.get("OLLAMA_BASE_URL") or OLLAMA_URL
    return os.environ.get("OPENAI_BASE_URL") or OPENAI_URL


def _key_for(url: str) -> str:
    """``OPENAI_API_KEY`` where the URL's host may have it.

    Raises:
        ModelNotInstalled: it has characters that no HTTP header can hold.
    """
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    trusted = {host_of(OPENAI_URL), host_of(os.environ.get("OPENAI_BASE_URL"))}
    if not key or not (host_of(url) in trusted or is_loopback(url)):
        return ""
    if not (key.isascii() and key.isprintable()):
        raise ModelNotInstalled(
            "the environment variable OPENAI_API_KEY is no key: it holds other characters than "
            "keys do",
            "export OPENAI_API_KEY=…",
        )
    return key


def _cut(text: str) -> str:
    """Text as UTF-8 of at most ``MAX_TEXT_BYTES``, never empty."""
    data = text[:MAX_TEXT_BYTES].encode("utf-8", "replace")[:MAX_TEXT_BYTES]
    return data.decode("utf-8", "ignore").strip() or _EMPTY


def _batches(texts: Sequence[str]) -> list[list[str]]:
    batches: list[list[str]] = [[]]
    size = 0
    for text in texts:
        own = len(text.encode())
        if batches[-1] and (len(batches[-1]) == BATCH_TEXTS or size + own > BATCH_BYTES):
            batches.append([])
            size = 0
        batches[-1].append(text)
        size += own
    return batches


def _retry_after(response: httpx.Response) -> float:
    """Seconds that the server asks to wait, capped."""
    try:
        return max(0.0, min(_LONGEST_WAIT_S, float(response.headers.get("Retry-After", ""))))
    except ValueError:
        return 0.0


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 300 else f"{text[:299]}…"
