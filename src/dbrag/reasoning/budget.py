"""What one question may cost: tokens and seconds spent, and when to ask no more.

A budget never cuts a call that runs, and never what the engine computes: when it is used
up, no further call of the model is started, and what there is has to do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from dbrag.errors import LimitReached
from dbrag.models.base import Reply
from dbrag.types import AnswerWarning


@dataclass
class Usage:
    """Tokens and seconds spent so far; ``cache_hits`` replies cost none.

    ``started``: when work on the question began, as ``time.perf_counter`` tells it.
    """

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    cache_hits: int = 0
    execute_s: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    def add(self, reply: Reply) -> None:
        """Count one reply."""
        self.prompt += reply.prompt_tokens
        self.cached += reply.cached_tokens
        self.completion += reply.completion_tokens
        self.cache_hits += reply.cached

    def add_tokens(self, tokens: Mapping[str, int]) -> None:
        """Count the replies of another stage, told as by ``tokens``."""
        for name in self.tokens():
            setattr(self, name, getattr(self, name) + tokens.get(name, 0))

    def tokens(self) -> dict[str, int]:
        """The ``tokens`` of the JSON contract."""
        return {
            "prompt": self.prompt,
            "cached": self.cached,
            "completion": self.completion,
            "cache_hits": self.cache_hits,
        }

    def seconds(self) -> float:
        """Since work on the question began."""
        return time.perf_counter() - self.started


@dataclass
class Budget:
    """Whether the model may be asked once more for this question.

    Args:
        seconds: after which it may not; None: no limit.
        tokens: of prompts and replies together, after which it may not; None: no limit.

    Attributes:
        refused: the limit that a call was not made for, None while every call was made.
    """

    usage: Usage
    seconds: float | None = None
    tokens: int | None = None
    refused: LimitReached | None = None

    def allows(self) -> bool:
        """Whether a call may be started now; that it may not is remembered."""
        spent_s = self.usage.seconds()
        spent = self.usage.prompt + self.usage.completion
        if self.seconds is not None and spent_s >= self.seconds:
            self.refused = LimitReached(
                f"the {self.seconds:g} s for one question are used up ({spent_s:.1f} s)",
                "raise answer_s (DBRAG_ANSWER_S), or ask for fewer votes",
            )
        elif self.tokens is not None and spent >= self.tokens:
            self.refused = LimitReached(
                f"the {self.tokens:,} tokens for one question are used up ({spent:,})",
                "raise answer_tokens (DBRAG_ANSWER_TOKENS), or ask for fewer votes",
            )
        else:
            return True
        return False

    def warnings(self) -> tuple[AnswerWarning, ...]:
        """That fewer programs were written or repaired than planned, if a call was refused."""
        if self.refused is None:
            return ()
        told = f"{self.refused.message}: no further program was written or repaired"
        return (AnswerWarning("budget_used_up", told),)
