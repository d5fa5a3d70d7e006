"""One request to llama.cpp, on a thread of its own, collected from its chunks."""

from __future__ import annotations

import threading
import time
from typing import Any

from dbrag.errors import ModelError, PromptTooLong
from dbrag.models.base import Reply

AGAIN = "ask again; if it stays, dbrag doctor"


class _Choice:
    """One completion as it arrives."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.logprob = 0.0
        self.logprobs = 0
        self.finish = ""
        self.usage: dict[str, Any] = {}
        self.first_s: float | None = None


class LlamaStream(threading.Thread):
    """One request on a thread of its own, so that the caller can be interrupted.

    llama.cpp gives every token to a callback, which ends the request by returning
    True; while a prompt is evaluated it is called once per batch.
    """

    def __init__(self, server: Any, request: dict[str, Any], count: int) -> None:
        super().__init__(name="dbrag-llama", daemon=True)
        self._server = server
        self._request = request
        self._choices = [_Choice() for _ in range(count)]
        self._last = 0
        self._sent_at = time.perf_counter()
        self.cancelled = False
        self.finished = threading.Event()
        self.failure: Any = None
        self.cause: Exception | None = None

    def run(self) -> None:
        """Send the request and collect; never raises."""
        try:
            self._server.handle_chat_completions(self._request, self._chunk)
        except Exception as error:
            self.failure, self.cause = str(error), error
        finally:
            del self._server  # the last reference to it stops the engine
            self.finished.set()

    def _chunk(self, chunk: Any) -> bool:
        try:
            if not isinstance(chunk, dict) or "error" in chunk:
                self.failure = chunk
                return True
            for choice in chunk.get("choices") or ():
                self._last = int(choice["index"])
                self._add(self._choices[self._last], choice)
            if "usage" in chunk:  # follows the last chunk of its choice
                self._choices[self._last].usage = chunk["usage"]
        except Exception as error:  # an exception here would be printed and forgotten
            self.failure, self.cause = str(error), error
            return True
        return self.cancelled

    def _add(self, into: _Choice, choice: dict[str, Any]) -> None:
        text = choice.get("delta", {}).get("content") or ""
        if text and into.first_s is None:  # the chunk before it names the role only
            into.first_s = time.perf_counter() - self._sent_at
        into.parts.append(text)
        for token in (choice.get("logprobs") or {}).get("content") or ():
            into.logprob += token["logprob"]
            into.logprobs += 1
        into.finish = choice.get("finish_reason") or into.finish

    def replies(self, charge_prompt: bool) -> list[Reply]:
        """The completions; prompt tokens are on the first one, if they are to be charged."""
        if any(not choice.finish for choice in self._choices):
            raise ModelError("the local model stopped without finishing its reply", AGAIN)
        first = self._choices[0].usage
        cached = (first.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        return [
            Reply(
                "".join(choice.parts),
                prompt_tokens=int(first["prompt_tokens"]) if charge_prompt and i == 0 else 0,
                cached_tokens=int(cached) if charge_prompt and i == 0 else 0,
                completion_tokens=int(choice.usage["completion_tokens"]),
                logprob=choice.logprob / choice.logprobs if choice.logprobs else None,
                finish="length" if choice.finish == "length" else "stop",
                first_token_s=choice.first_s,
            )
            for i, choice in enumerate(self._choices)
        ]


def failure(name: str, answer: Any) -> ModelError:
    """llama.cpp's error object, or the text of an exception, as ours."""
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    if isinstance(error, dict):
        if error.get("type") == "exceed_context_size_error":
            return PromptTooLong(
                f"a prompt of {error.get('n_prompt_tokens', 0):,} tokens exceeds the "
                f"{error.get('n_ctx', 0):,} tokens of {name!r}"
            )
        error = error.get("message", error)
    text = " ".join(str(error).split())
    return ModelError(f"{name!r} failed: {text[:300]}", AGAIN)
