"""The two seams to models: ``ChatModel`` and ``Embedder``.

Everything that talks to a language model goes through ``ChatModel.sample``;
everything that embeds text through ``Embedder.encode``. Public fakes for both
are in ``dbrag.models.testing``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt whose stable part comes first, so that an evaluated prefix can be reused.

    ``system`` and ``context`` (instructions, column lines) stay equal over questions
    on the same tables; ``request`` (matched values, rows, question) changes.
    ``turns`` are later (assistant, user) pairs of a repair dialogue.
    """

    system: str
    context: str
    request: str
    turns: tuple[tuple[str, str], ...] = ()

    def messages(self) -> list[dict[str, str]]:
        """The chat messages, roles ``system``, ``user``, ``assistant``, ``user`` …"""
        user = f"{self.context}\n\n{self.request}" if self.context else self.request
        messages = [{"role": "system", "content": self.system}] if self.system else []
        messages.append({"role": "user", "content": user})
        for assistant, reply in self.turns:
            messages.append({"role": "assistant", "content": assistant})
            messages.append({"role": "user", "content": reply})
        return messages

    def text(self) -> str:
        """All of it as text, for logs, caches and snapshots."""
        return "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in self.messages())


@dataclass(frozen=True, slots=True)
class Reply:
    """One sampled completion.

    ``prompt_tokens`` and ``cached_tokens`` are charged to the first reply of a call
    only. ``logprob`` is the mean log-probability per completion token, None where
    the model does not tell. ``finish`` is "length" when the reply was cut. ``cached``
    replies come from the reply cache (``models.cache``) and cost no tokens.
    ``first_token_s`` are seconds from sending the request to the first token, None where
    they are not measured; two replies are equal whatever it is.
    """

    text: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    logprob: float | None = None
    finish: Literal["stop", "length"] = "stop"
    cached: bool = False
    first_token_s: float | None = field(default=None, compare=False)


@runtime_checkable
class ChatModel(Protocol):
    """A model that completes a chat prompt."""

    @property
    def name(self) -> str:
        """``provider:model``."""
        ...

    @property
    def remote(self) -> bool:
        """True when prompts leave this machine."""
        ...

    @property
    def context_tokens(self) -> int:
        """Prompt and completion of one sample must fit into this many tokens."""
        ...

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
        """``n`` completions of one prompt.

        Args:
            schema: a JSON schema that each reply then follows.

        Raises:
            PromptTooLong: the prompt does not fit ``context_tokens``.
            InvalidReply: a reply does not follow ``schema``.
            ModelError: the model fails.
        """
        ...

    def close(self) -> None:
        """Free memory and threads; a closed model may not be used again."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """A text encoder."""

    @property
    def name(self) -> str:
        """``provider:model``."""
        ...

    @property
    def sha256(self) -> str:
        """Identity of the weights; an index built with another one is refused."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors ``[n_texts, dim]``; long texts are cut at the encoder's own limit."""
        ...
