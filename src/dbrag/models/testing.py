"""Public fakes of both seams: no weights, no network, the same answers every time.

``ScriptedModel`` answers from a list, ``FunctionModel`` by a function,
``HashEmbedder`` embeds words by their hashes.
"""

from __future__ import annotations

import hashlib
import re
import threading
from typing import TYPE_CHECKING, Any

from dbrag.errors import ModelError, PromptTooLong
from dbrag.models.base import Prompt, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FunctionModel", "HashEmbedder", "ScriptExhausted", "ScriptedModel"]

_WORD = re.compile(r"\w+")
_HASH_BYTES = 9


class ScriptExhausted(ModelError, AssertionError):
    """A ``ScriptedModel`` was asked for more replies than it was given."""


class FunctionModel:
    """A chat model that answers with ``fn(prompt)``; sample ``i`` of a call may differ.

    Args:
        fn: gives the text of a reply; called once for each of the ``n`` samples.
        name: shown as the model's name.
        context_tokens: prompts of more words than this raise ``PromptTooLong``.
        logprob: what every reply reports as its mean log-probability.

    Attributes:
        prompts: every prompt, in order of arrival.
        calls: the keyword arguments of every call, with ``n``.
    """

    def __init__(
        self,
        fn: Callable[[Prompt], str],
        *,
        name: str = "test:function",
        context_tokens: int = 1_000_000,
        remote: bool = False,
        logprob: float | None = None,
    ) -> None:
        self._fn = fn
        self._name = name
        self._context_tokens = context_tokens
        self._remote = remote
        self._logprob = logprob
        self._lock = threading.Lock()
        self.prompts: list[Prompt] = []
        self.calls: list[dict[str, Any]] = []
        self.closed = False

    @property
    def name(self) -> str:
        """The given name."""
        return self._name

    @property
    def remote(self) -> bool:
        """As given; nothing ever leaves the machine."""
        return self._remote

    @property
    def context_tokens(self) -> int:
        """As given, counted in words."""
        return self._context_tokens

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
        """``n`` replies; words count as tokens, ``max_tokens`` and ``stop`` are ignored.

        Raises:
            PromptTooLong: more words than ``context_tokens``.
            ModelError: used after ``close``.
        """
        with self._lock:
            if self.closed:
                raise ModelError(f"{self._name!r} is closed", "make a new one")
            words = len(_WORD.findall(prompt.text()))
            if words > self._context_tokens:
                raise PromptTooLong(
                    f"the prompt has {words:,} words, {self._name!r} holds {self._context_tokens:,}"
                )
            self.prompts.append(prompt)
            self.calls.append(
                {
                    "n": n,
                    "temperature": temperature,
                    "max_tokens": max_tokens,
                    "schema": schema,
                    "stop": tuple(stop),
                    "seed": seed,
                }
            )
            texts = [self._fn(prompt) for _ in range(n)]
        return [
            Reply(
                text,
                prompt_tokens=words if i == 0 else 0,
                completion_tokens=len(_WORD.findall(text)),
                logprob=self._logprob,
            )
            for i, text in enumerate(texts)
        ]

    def close(self) -> None:
        """Later calls are refused."""
        self.closed = True


class ScriptedModel(FunctionModel):
    """A chat model that gives out ``replies`` in order, one for each sample.

    A callable among the replies is called with the prompt.

    Attributes:
        left: how many replies have not been asked for.
    """

    def __init__(
        self,
        replies: Sequence[str | Callable[[Prompt], str]],
        *,
        name: str = "test:scripted",
        context_tokens: int = 1_000_000,
        remote: bool = False,
        logprob: float | None = None,
    ) -> None:
        super().__init__(
            self._next,
            name=name,
            context_tokens=context_tokens,
            remote=remote,
            logprob=logprob,
        )
        self._replies = list(replies)
        self._given = 0

    @property
    def left(self) -> int:
        """Replies not asked for yet."""
        return len(self._replies) - self._given

    def _next(self, prompt: Prompt) -> str:
        if not self.left:
            raise ScriptExhausted(
                f"{self.name!r} has given all its {len(self._replies)} replies "
                f"and is asked again: {prompt.request[-200:]!r}",
                "add a reply to the script",
            )
        reply = self._replies[self._given]
        self._given += 1
        return reply if isinstance(reply, str) else reply(prompt)


class HashEmbedder:
    """A text encoder without weights: signed feature hashing of lower-case words.

    Each distinct word adds +1 or −1 times the square root of its count at one of
    ``dim`` places (Weinberger et al. 2009, https://arxiv.org/abs/0902.2206);
    vectors are then normalised. Texts that share words are similar, nothing else.
    A text without words is the first unit vector.
    """

    def __init__(self, dim: int = 64) -> None:
        if dim < 1:
            raise ModelError(f"dim must be at least 1, not {dim!r}", "leave it out for 64")
        self._dim = dim

    @property
    def name(self) -> str:
        """``test:hash-<dim>``."""
        return f"test:hash-{self._dim}"

    @property
    def sha256(self) -> str:
        """Hash of the name: another ``dim`` is another encoder."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors ``[n_texts, dim]``."""
        import numpy as np

        vectors = np.zeros((len(texts), self._dim), dtype=np.float32)
        for row, text in enumerate(texts):
            counts: dict[str, int] = {}
            for word in _WORD.findall(text.casefold()):
                counts[word] = counts.get(word, 0) + 1
            for word, count in counts.items():
                digest = hashlib.blake2b(word.encode(), digest_size=_HASH_BYTES).digest()
                place = int.from_bytes(digest[1:], "big") % self._dim
                vectors[row, place] += (1.0 if digest[0] & 1 else -1.0) * count**0.5
        lengths = np.linalg.norm(vectors, axis=1)
        vectors[lengths == 0] = np.eye(1, self._dim, dtype=np.float32)
        lengths[lengths == 0] = 1.0
        unit: NDArray[np.float32] = vectors / lengths[:, None]
        return unit
