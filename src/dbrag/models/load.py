"""From a name to a chat model: ``local:NAME``, ``local:/path/to/model.gguf``, ``openai:NAME`` …"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbrag.errors import ModelError, UsageError
from dbrag.models.base import ChatModel, Prompt
from dbrag.models.registry import LOCAL, REGISTRY, spec_of
from dbrag.models.weights import is_path, locate

if TYPE_CHECKING:
    from dbrag.models.local import LlamaModel
    from dbrag.settings import Settings

_local: dict[tuple[Path, int | None], LlamaModel] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """What a tiny prompt showed.

    ``load_s`` seconds until the model was ready, ``seconds`` for the answer,
    ``tokens_per_s`` completion tokens a second, prompt included.
    """

    name: str
    remote: bool
    context_tokens: int
    load_s: float
    seconds: float
    tokens_per_s: float
    text: str


def is_remote(spec: str) -> bool:
    """Whether ``spec`` names a provider other than ``local``; loads nothing.

    Raises:
        UsageError: as ``load_chat_model``.
    """
    return not spec_in_full(spec).startswith(LOCAL)


def load_chat_model(spec: str, settings: Settings) -> ChatModel:
    """The chat model of that name; the weights of a local one are read at its first use.

    A local model exists once per process and file, whoever asks for it. It remembers its
    replies where ``settings.reply_cache`` says so.

    Raises:
        UsageError: an empty or ambiguous name, or a remote model while offline.
        WeightsError: a local model's file is missing, cut short or wrong.
        ModelNotInstalled: an extra or a key is missing.
    """
    model = _load(spec, settings)
    return _remembering(model, settings) if caches(model.remote, settings) else model


def caches(remote: bool, settings: Settings) -> bool:
    """Whether replies of a model are remembered: "auto" means where they may cost money."""
    return settings.reply_cache == "on" or (settings.reply_cache == "auto" and remote)


def _remembering(model: ChatModel, settings: Settings) -> ChatModel:
    from dbrag.models.cache import CachedModel, ReplyCache

    cache = ReplyCache(settings.cache_dir)

    def identity() -> str:
        if not model.name.startswith(LOCAL):
            return str(getattr(model, "endpoint", ""))
        from importlib.metadata import version

        path = locate(model.name, settings)
        weights = cache.weights_sha256(path) if is_path(model.name) else spec_of(model.name).sha256
        return f"{weights} xllamacpp {version('xllamacpp')}"

    return CachedModel(model, cache, identity)


def _load(spec: str, settings: Settings) -> ChatModel:
    """The model itself, without a cache."""
    name = spec_in_full(spec)
    if name.startswith(LOCAL):
        path = locate(name, settings)
        from dbrag.models.local import LlamaModel

        with _lock:
            key = (path.resolve(), settings.threads)
            model = _local.get(key)
            if model is None or model.closed:
                model = LlamaModel(path, name=name, threads=settings.threads)
                _local[key] = model
            return model
    from dbrag.models.remote import RemoteModel

    remote = RemoteModel(name)
    if settings.offline and remote.remote:
        raise UsageError(
            f"{name!r} is a remote model and offline is set",
            "unset DBRAG_OFFLINE, or choose a local model: --model local:qwen2.5-coder-1.5b",
        )
    return remote


def check(spec: str, settings: Settings) -> ModelCheck:
    """Load the model and let it answer one tiny prompt.

    Raises:
        DbragError: as ``load_chat_model`` and ``ChatModel.sample``.
    """
    began = time.monotonic()
    model = _load(spec, settings)
    load = getattr(model, "load", None)
    if load is not None:
        load()
    ready = time.monotonic()
    prompt = Prompt(
        "You write SQL.", "", "Write SQL that counts the rows of the table orders by year."
    )
    reply = model.sample(prompt, max_tokens=60)[0]
    seconds = time.monotonic() - ready
    if not reply.text.strip():
        raise ModelError(f"{model.name!r} gave an empty answer", "choose another model: --model")
    return ModelCheck(
        name=model.name,
        remote=model.remote,
        context_tokens=model.context_tokens,
        load_s=round(ready - began, 3),
        seconds=round(seconds, 3),
        tokens_per_s=round(reply.completion_tokens / seconds, 1) if seconds > 0 else 0.0,
        text=reply.text.strip(),
    )


def spec_in_full(spec: str) -> str:
    """``spec`` with its provider.

    A bare name is taken where only one reading is possible: registered weights, or a path.

    Raises:
        UsageError: it names no provider, or weights that are not known or no chat model.
    """
    text = spec.strip()
    provider, colon, model = text.partition(":")
    if colon and provider and model and not _is_drive(provider, model):
        if provider == "local" and not is_path(model) and spec_of(model).kind != "chat":
            raise UsageError(f"{spec!r} is not a chat model", f"chat models: {_chat_names()}")
        return text
    if text in REGISTRY and REGISTRY[text].kind == "chat":
        return LOCAL + text
    if text.lower().endswith(".gguf"):
        return LOCAL + text
    raise UsageError(
        f"the model {spec!r} names no provider",
        f"name it provider:model, such as {_chat_names()}, local:/path/to/model.gguf or "
        f"openai:{text or 'NAME'}",
    )


def _is_drive(provider: str, model: str) -> bool:
    """``C:\\models\\a.gguf`` is a path."""
    return len(provider) == 1 and model[:1] in ("\\", "/")


def _chat_names() -> str:
    return ", ".join(LOCAL + spec.name for spec in REGISTRY.values() if spec.kind == "chat")
