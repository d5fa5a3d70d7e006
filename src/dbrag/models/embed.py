"""Text encoders: sentence vectors by ONNX in process, and a cache for repeated texts.

The default is all-MiniLM-L6-v2 (Reimers and Gurevych 2019, Apache-2.0) quantised to
int8: mean of the token states, scaled to length 1, texts cut at 256 tokens.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.errors import ModelError, ModelNotInstalled, UsageError, WeightsError
from dbrag.models.endpoints import PROVIDERS
from dbrag.types import AnswerWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.models.base import Embedder
    from dbrag.settings import Settings

MAX_TOKENS = 256
"""The length all-MiniLM-L6-v2 was trained with; more text is cut."""

_MAX_CHARS = 8_192
"""Characters handed to the tokenizer, far more than ``MAX_TOKENS`` tokens of any prose."""

_BATCH_TEXTS = 16
_BATCH_TOKENS = 2_048
"""Larger batches were slower (2 cores: 16 texts 5.0 s, 32 texts 6.6 s for 200 long ones)."""

_LOCAL = ("all-minilm-l6-v2",)


class OnnxEmbedder:
    """A sentence encoder in ONNX with a Hugging Face ``tokenizer.json``.

    Nothing is loaded before the first ``encode`` or ``dim``. Safe to share by threads.

    Args:
        model_path: the ``.onnx`` file; its first output is ``[batch, tokens, dim]``.
        tokenizer_path: the ``tokenizer.json`` file.
        threads: threads of one ``encode``; None takes the cores this process may use.
        name: ``provider:model``.
    """

    def __init__(
        self,
        model_path: Path,
        tokenizer_path: Path,
        threads: int | None = None,
        *,
        name: str = "local:all-minilm-l6-v2",
    ) -> None:
        self._model_path = Path(model_path)
        self._tokenizer_path = Path(tokenizer_path)
        self._threads = threads or _free_cores()
        self._name = name
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any, frozenset[str]] | None = None

    @property
    def name(self) -> str:
        """``provider:model``."""
        return self._name

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the model file."""
        try:
            with self._model_path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _unreadable(self._model_path, error) from error

    @cached_property
    def dim(self) -> int:
        """Length of a vector."""
        session, _, inputs = self._load()
        width = session.get_outputs()[0].shape[-1]
        return width if isinstance(width, int) else _run(session, inputs, [[0]]).shape[1]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors ``[n_texts, dim]``, in the order of ``texts``.

        Texts are batched by length, so that little is spent on padding; a vector
        depends on its neighbours in the batch by less than 1e-6.

        Raises:
            WeightsError: the files are missing or no encoder.
            ModelError: the runtime fails.
        """
        import numpy as np

        session, tokenizer, inputs = self._load()
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        ids = [encoding.ids for encoding in tokenizer.encode_batch([_clean(t) for t in texts])]
        vectors = np.empty((len(ids), self.dim), np.float32)
        for batch in _batches([len(tokens) for tokens in ids]):
            vectors[batch] = _run(session, inputs, [ids[i] for i in batch])
        return vectors

    def knows_word(self, word: str) -> bool:
        """Whether the vocabulary has a folded word whole (WordPiece, SentencePiece)."""
        tokenizer = self._load()[1]
        return any(tokenizer.token_to_id(form) is not None for form in (word, f"▁{word}"))

    def _load(self) -> tuple[Any, Any, frozenset[str]]:
        """The session, the tokenizer and the names of the model's inputs."""
        with self._lock:
            if self._loaded is None:
                tokenizer = _load_tokenizer(self._tokenizer_path)
                session = _load_session(self._model_path, self._threads)
                names = frozenset(value.name for value in session.get_inputs())
                self._loaded = session, tokenizer, names
            return self._loaded


class CachedEmbedder:
    """An encoder that remembers the vectors of the last ``size`` texts asked for one at a time.

    A question is encoded when it is searched and again when it is answered; whole
    batches (indexing) pass by the cache.
    """

    def __init__(self, embedder: Embedder, size: int = 256) -> None:
        self._embedder = embedder
        self._size = size
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """``provider:model``."""
        return self._embedder.name

    @property
    def remote(self) -> bool:
        """True when texts leave this machine."""
        return bool(getattr(self._embedder, "remote", False))

    @property
    def sha256(self) -> str:
        """Identity of the weights."""
        return self._embedder.sha256

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._embedder.dim

    def knows_word(self, word: str) -> bool:
        """Whether the encoder's vocabulary has a folded word whole; no if it has none to ask."""
        knows = getattr(self._embedder, "knows_word", None)
        return knows is not None and bool(knows(word))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors ``[n_texts, dim]``."""
        if len(texts) != 1:
            return self._embedder.encode(texts)
        text = texts[0]
        with self._lock:
            known = self._vectors.get(text)
            if known is not None:
                self._vectors.move_to_end(text)
                return known.copy()
        vectors = self._embedder.encode(texts)
        with self._lock:
            self._vectors[text] = vectors.copy()
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
        return vectors


def load_embedder(settings: Settings) -> Embedder:
    """The encoder that ``settings.encoder`` names; its weights are found now, loaded at first use.

    ``local:all-minilm-l6-v2``; the path of a folder with ``model.onnx`` (or
    ``onnx/model.onnx``) and ``tokenizer.json``; ``openai:NAME`` or ``ollama:NAME``, which
    are other machines' (``models.embed_remote``).

    Raises:
        ModelNotInstalled: no such encoder, or its key is not set.
        UsageError: a folder without the two files; a remote encoder while offline.
        WeightsError: the weights can be neither found nor fetched.
    """
    wanted = settings.encoder
    provider, _, model = wanted.partition(":")
    if provider == "local" and model in _LOCAL:
        from dbrag.models.weights import locate

        onnx = locate(model, settings)
        return CachedEmbedder(OnnxEmbedder(onnx, locate(f"{model}-tokenizer", settings)))
    folder = Path(wanted).expanduser()
    if wanted and folder.is_dir():
        return CachedEmbedder(_from_folder(folder))
    if is_remote_encoder(wanted):
        from dbrag.models.embed_remote import RemoteEmbedder

        remote = RemoteEmbedder(wanted)
        if settings.offline and remote.remote:
            raise UsageError(
                f"{wanted!r} is a remote encoder and offline is set",
                "unset DBRAG_OFFLINE, or choose a local encoder: encoder = "
                '"local:all-minilm-l6-v2"',
            )
        return CachedEmbedder(remote)
    possible = ", ".join(f"local:{name}" for name in _LOCAL)
    raise ModelNotInstalled(
        f"unknown encoder {wanted!r}",
        f"possible: {possible}, openai:NAME, ollama:NAME, or the path of a folder with "
        "model.onnx and tokenizer.json",
    )


def is_remote_encoder(spec: str) -> bool:
    """Whether an encoder is named by a provider of endpoints; loads nothing."""
    provider, _, model = spec.partition(":")
    return provider in PROVIDERS and bool(model)


def remote_encoder_warnings(embedder: Embedder, row_search: str) -> tuple[AnswerWarning, ...]:
    """That texts leave this machine to be encoded; nothing for an encoder of this machine."""
    if not getattr(embedder, "remote", False):
        return ()
    rows = "sample rows" if row_search == "text" else "rows"
    text = (
        f"{embedder.name} is an encoder of another machine: names, comments, notes and {rows} of "
        "tables are sent there when they are indexed, and every question, learned ones too"
    )
    return (AnswerWarning("remote_encoder", text),)


def _from_folder(folder: Path) -> OnnxEmbedder:
    places = folder / "model.onnx", folder / "onnx" / "model.onnx"  # the hub's layout
    model = next((place for place in places if place.is_file()), places[0])
    files = model, folder / "tokenizer.json"
    for file in files:
        if not file.is_file():
            raise UsageError(
                f"the encoder folder {str(folder)!r} has no {file.name}",
                "it must hold model.onnx (or onnx/model.onnx) and tokenizer.json",
            )
    return OnnxEmbedder(*files, name=f"onnx:{folder.resolve().name}")


def _free_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _clean(text: str) -> str:
    """Text a tokenizer takes: cut, and without the lone surrogates it refuses."""
    return text[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Positions grouped by similar length (in tokens), shortest first."""
    batches: list[list[int]] = []
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == _BATCH_TEXTS or (len(batch) + 1) * lengths[i] > _BATCH_TOKENS):
            batches.append(batch)
            batch = []
        batch.append(i)
    return [*batches, batch] if batch else batches


def _run(session: Any, inputs: frozenset[str], ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Normalised mean of the token states, ``[batch, dim]``."""
    import numpy as np

    tokens = np.zeros((len(ids), max(len(row) for row in ids)), np.int64)
    mask = np.zeros_like(tokens)
    for i, row in enumerate(ids):
        tokens[i, : len(row)] = row
        mask[i, : len(row)] = 1
    feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
    try:
        states = session.run(None, {name: feed[name] for name in inputs if name in feed})[0]
    except Exception as error:  # onnxruntime's exceptions have no common base
        raise ModelError(
            f"the text encoder failed: {_one_line(error)}", "dbrag doctor looks at its files"
        ) from error
    weight = mask[:, :, None].astype(np.float32)
    mean = (states * weight).sum(1) / weight.sum(1)
    norm = np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
    return np.asarray(mean / norm, np.float32)


def _load_session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Spinning threads fight with everything else on a small machine: 3 times slower there.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not path.is_file():
        raise _unreadable(path, FileNotFoundError(2, "no such file"))
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise _unreadable(path, error) from error


def _load_tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises a bare Exception
        raise _unreadable(path, error) from error
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def _unreadable(path: Path, error: Exception) -> WeightsError:
    reason = getattr(error, "strerror", None) or _one_line(error)
    return WeightsError(
        f"cannot load the text encoder from {str(path)!r}: {reason}",
        "fetch it again: dbrag models pull all-minilm-l6-v2",
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
