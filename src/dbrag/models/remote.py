"""Chat models of other machines, through pydantic-ai's direct API.

All requests run on one event loop of a thread of their own: a model object that
several loops share fails now and then, and the caller may itself run inside a
loop (a notebook). What leaves this machine is the prompt and nothing else.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbrag.cancel import check
from dbrag.errors import DbragError, InvalidReply, ModelError, ModelNotInstalled, PromptTooLong
from dbrag.models.base import Prompt, Reply
from dbrag.models.endpoints import OLLAMA_URL, OPENAI_URL, host_of, is_loopback, without_user
from dbrag.models.json_schema import problem_of

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

TIMEOUT_S = 120.0
AT_ONCE = 8
"""Requests under way at the same time, over all calls of one model."""
DEFAULT_CONTEXT_TOKENS = 128_000
_ALIASES = {"google-gla": "google", "google-vertex": "google-cloud"}
_VARIABLE = re.compile(r"`?\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b`?")
_EXTRA = re.compile(r"pydantic-ai-slim\[([\w-]+)\]")
_SECRET = re.compile(r"\b(?:sk|pk|gsk|xai|key|Bearer)[-_ ][\w.*-]{6,}|\bAIza[\w-]{20,}")


class RemoteModel:
    """A model named as pydantic-ai names it, ``provider:model``.

    ``openai:`` with ``OPENAI_BASE_URL`` set means an OpenAI-compatible endpoint
    (chat completions); ``ollama:`` means ``OLLAMA_BASE_URL`` or Ollama's own port.

    Args:
        spec: ``provider:model``.
        timeout_s: for one request with all its attempts.
        model: a pydantic-ai ``Model`` to use instead of the one ``spec`` names.

    Raises:
        ModelNotInstalled: the extra, the provider's package or its key is missing.
    """

    def __init__(self, spec: str, *, timeout_s: float = TIMEOUT_S, model: Any = None) -> None:
        self._name = spec
        self._timeout_s = timeout_s
        self._model = model if model is not None else _build(spec)
        self._closed = False
        self._slots: asyncio.Semaphore | None = None
        self._schemas = True  # until the endpoint refuses one

    @property
    def name(self) -> str:
        """``provider:model``."""
        return self._name

    @property
    def remote(self) -> bool:
        """False only when the endpoint is on this machine."""
        return not is_loopback(getattr(self._model, "base_url", None))

    @property
    def endpoint(self) -> str:
        """Where requests go, without user and password; empty where it is not told."""
        return without_user(str(getattr(self._model, "base_url", None) or ""))

    @property
    def context_tokens(self) -> int:
        """As pydantic-ai knows it, else 128,000; the provider's refusal is ``PromptTooLong``."""
        return int(self._profile().get("context_window") or DEFAULT_CONTEXT_TOKENS)

    def sample(
        self,
        prompt: Prompt,
        n: int = 1,
        *,
        temperature: float = 0.0,
        max_tokens: int = 400,
        schema: Mapping[str, Any] | None = None,
        stop: Sequence[str] = (),
        seed: int = 0,
    ) -> list[Reply]:
        """``n`` completions by ``n`` requests at once; at temperature 0 one, given ``n`` times.

        A reply that does not follow ``schema`` is asked for once more.

        Raises:
            PromptTooLong: the provider says so.
            ModelError: no connection, an HTTP error, a timeout.
            InvalidReply: a reply against ``schema``.
        """
        if self._closed:
            raise ModelError(f"{self._name!r} is closed", "make a new one")
        distinct = n if temperature > 0 else 1
        settings: dict[str, Any] = {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "timeout": self._timeout_s,
            "request_timeout": self._timeout_s,
            "thinking": False,  # else a reasoning model spends max_tokens on thoughts
        }
        if stop:
            settings["stop_sequences"] = list(stop)
        # stop sequences are also cut here, a seed is a wish: what is not known is left out
        for key in getattr(self._model, "unsupported_settings", ()):
            settings.pop(key, None)
        replies = _run(self._sample(prompt, distinct, settings, schema, seed))
        replies = [replace(reply, text=_cut(reply.text, stop)) for reply in replies]
        again = replace(replies[0], prompt_tokens=0, cached_tokens=0, completion_tokens=0)
        return replies + [again] * (n - distinct)

    def close(self) -> None:
        """Later calls are refused."""
        self._closed = True

    # --- on the background loop -----------------------------------------------------------

    async def _sample(
        self,
        prompt: Prompt,
        n: int,
        settings: dict[str, Any],
        schema: Mapping[str, Any] | None,
        seed: int,
    ) -> list[Reply]:
        if self._slots is None:
            self._slots = asyncio.Semaphore(AT_ONCE)
        tasks = [
            asyncio.ensure_future(self._one(prompt, {**settings, "seed": seed + i}, schema))
            for i in range(n)
        ]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def _one(
        self, prompt: Prompt, settings: dict[str, Any], schema: Mapping[str, Any] | None
    ) -> Reply:
        reply = await self._request(prompt, settings, schema)
        if schema is None or reply.finish == "length":
            return reply
        problem = problem_of(reply.text, schema)
        if problem is None:
            return reply
        complaint = f"That does not follow the JSON schema: {problem}. Answer again, JSON only."
        prompt = replace(prompt, turns=(*prompt.turns, (reply.text, complaint)))
        second = await self._request(prompt, settings, schema)
        problem = problem_of(second.text, schema)
        if problem is not None:
            raise InvalidReply(f"{self._name!r} did not follow the JSON schema: {problem}")
        return replace(
            second,
            prompt_tokens=reply.prompt_tokens + second.prompt_tokens,
            cached_tokens=reply.cached_tokens + second.cached_tokens,
            completion_tokens=reply.completion_tokens + second.completion_tokens,
        )

    async def _request(
        self, prompt: Prompt, settings: dict[str, Any], schema: Mapping[str, Any] | None
    ) -> Reply:
        from pydantic_ai.direct import model_request

        assert self._slots is not None  # noqa: S101
        messages, parameters = self._messages(prompt, schema)
        try:
            async with self._slots:
                response = await model_request(
                    self._model,
                    messages,
                    model_settings=settings,  # type: ignore[arg-type]
                    model_request_parameters=parameters,
                )
        except Exception as error:
            if parameters.output_mode == "native" and _refuses_schema(error):
                self._schemas = False
                return await self._request(prompt, settings, schema)
            raise self._failure(error) from error
        usage = response.usage
        text = "".join(part.content for part in response.parts if part.part_kind == "text")
        # Half a surrogate pair ("\\ud800" in JSON) can be neither sent again nor stored.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return Reply(
            _unfenced(text) if schema is not None else text,
            prompt_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            completion_tokens=usage.output_tokens,
            finish="length" if response.finish_reason == "length" else "stop",
        )

    def _messages(self, prompt: Prompt, schema: Mapping[str, Any] | None) -> tuple[list[Any], Any]:
        from pydantic_ai import messages as m
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        system = prompt.system
        parameters = ModelRequestParameters()
        native = self._schemas and self._profile().get("supports_json_schema_output")
        if schema is not None and native:
            definition = OutputObjectDefinition(json_schema=dict(schema), name="reply")
            parameters = ModelRequestParameters(output_mode="native", output_object=definition)
        elif schema is not None:
            system += (
                f"\n\nAnswer with JSON only, following this JSON schema:\n{json.dumps(schema)}"
            )
        messages: list[Any] = []
        for message in prompt.messages():
            if message["role"] == "assistant":
                messages.append(m.ModelResponse(parts=[m.TextPart(message["content"])]))
            elif message["role"] == "user":
                part = m.UserPromptPart(message["content"])
                messages.append(m.ModelRequest(parts=[part], instructions=system.strip() or None))
        return messages, parameters

    def _profile(self) -> Mapping[str, Any]:
        profile = getattr(self._model, "profile", None)
        return profile if isinstance(profile, dict) else {}

    def _failure(self, error: Exception) -> DbragError:
        """An error of pydantic-ai or of the provider's library in one line, without secrets."""
        from pydantic_ai import exceptions

        if isinstance(error, DbragError):
            return error
        text = _one_line(error)
        if isinstance(error, exceptions.ModelContextWindowExceededError):
            return PromptTooLong(f"the prompt exceeds the context of {self._name!r}")
        if isinstance(error, exceptions.ModelAuthenticationError):
            return ModelError(f"{self._name!r} refused the key: {text}", "check the API key")
        if isinstance(error, exceptions.ModelNotFoundError):
            return ModelError(f"{self._name!r} was not found: {text}", "check the model's name")
        timeouts = (exceptions.ModelTimeoutError, exceptions.ModelRequestTimeout, TimeoutError)
        if isinstance(error, timeouts):
            return ModelError(
                f"{self._name!r} did not answer within {self._timeout_s:g} s",
                "ask again, or use a faster model (--model)",
            )
        if isinstance(error, exceptions.ModelConnectionError):
            return ModelError(f"cannot reach {self._name!r}: {text}", "check the network")
        return ModelError(
            f"{self._name!r} failed: {text}", "ask again later, or use another model (--model)"
        )


def _build(spec: str) -> Any:
    """The pydantic-ai model of ``provider:model``."""
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider
    except ImportError as error:
        raise ModelNotInstalled(
            f"{spec!r} is a remote model and needs the package 'pydantic-ai-slim'",
            "pip install 'dbrag[remote]'",
        ) from error

    def provider(name: str) -> Any:
        if name == "ollama" and not os.environ.get("OLLAMA_BASE_URL"):
            from pydantic_ai.providers.ollama import OllamaProvider

            return OllamaProvider(base_url=OLLAMA_URL)
        return infer_provider(name)

    try:
        return infer_model(_known_as(spec), provider_factory=provider)
    except ImportError as error:
        extra = _EXTRA.search(str(error))
        package = f"pydantic-ai-slim[{extra.group(1)}]" if extra else "dbrag[remote]"
        raise ModelNotInstalled(
            f"{spec!r} needs the provider's package, which is not installed",
            f"pip install '{package}'",
        ) from error
    except UserError as error:
        variable = _VARIABLE.search(str(error))
        if variable is None:
            raise ModelNotInstalled(
                f"no model is known as {spec!r}",
                "name it provider:model, such as openai:NAME, anthropic:NAME, ollama:NAME",
            ) from error
        raise ModelNotInstalled(
            f"{spec!r} needs the environment variable {variable.group(1)}, which is not set",
            f"export {variable.group(1)}=…",
        ) from error
    except ValueError as error:  # an unknown provider
        raise ModelNotInstalled(
            f"no provider is known as {spec.partition(':')[0]!r}",
            "name the model provider:model, such as openai:NAME, anthropic:NAME, ollama:NAME",
        ) from error
    except Exception as error:  # a provider's library has errors of its own (AWS profiles, …)
        raise ModelError(
            f"{spec!r} cannot be set up: {_one_line(error)}",
            "check what the provider reads: keys, profile, region",
        ) from error


def _known_as(spec: str) -> str:
    """Our name as pydantic-ai's: old provider names, compatible endpoints."""
    provider, _, model = spec.partition(":")
    provider = _ALIASES.get(provider, provider)
    base = os.environ.get("OPENAI_BASE_URL", "")
    if provider == "openai" and base and host_of(base) != host_of(OPENAI_URL):
        provider = "openai-chat"  # others rarely have OpenAI's newer responses API
    return f"{provider}:{model}"


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    for name, value in os.environ.items():
        if value and len(value) >= 8 and re.search(r"KEY|TOKEN|SECRET|PASSWORD", name):
            text = text.replace(value, "…")
    text = _SECRET.sub("…", text)
    return text if len(text) <= 300 else f"{text[:299]}…"


def _refuses_schema(error: Exception) -> bool:
    """gpt-3.5-turbo and many compatible endpoints answer a schema with HTTP 400."""
    words = r"response_format|json_schema|text\.format|structured"
    return getattr(error, "status_code", None) in (400, 422) and bool(re.search(words, str(error)))


def _cut(text: str, stop: Sequence[str]) -> str:
    """Not every provider knows stop sequences."""
    places = [place for word in stop if word and (place := text.find(word)) >= 0]
    return text[: min(places)] if places else text


def _unfenced(text: str) -> str:
    """JSON out of a Markdown fence, where a model wraps it in spite of its orders."""
    match = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", text, re.DOTALL)
    return match.group(1) if match else text


# --- the loop ---------------------------------------------------------------------------------

_loop: asyncio.AbstractEventLoop | None = None
_loop_lock = threading.Lock()


def _run(coroutine: Coroutine[Any, Any, list[Reply]]) -> list[Reply]:
    """Run on the background loop; Ctrl-C cancels the requests."""
    global _loop
    with _loop_lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="dbrag-remote", daemon=True).start()
    future = asyncio.run_coroutine_threadsafe(coroutine, _loop)
    try:
        while True:
            try:
                return future.result(timeout=0.2)  # short waits: Ctrl-C also works on Windows
            except concurrent.futures.TimeoutError:
                if future.done():
                    raise
                check()
    except BaseException:
        future.cancel()
        raise
