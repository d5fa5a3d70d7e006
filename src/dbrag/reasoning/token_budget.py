"""What a program prompt may take, in tokens, and how many a text has at most.

No model is loaded for it: a local one exactly counts only what it is given, and refuses
what does not fit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbrag.models.base import ChatModel
    from dbrag.settings import Settings

LOCAL_TOKENS, REMOTE_TOKENS = 3_000, 12_000
"""Default budgets: a small local model reads slowly, and reads long prompts badly."""
PROBLEM_TOKENS = 300
"""For what a repair is told; the reply before it stands in its prompt, too."""
TEMPLATE_TOKENS = 64
"""For the marks of the chat template and between the parts."""

_PIECES = re.compile(
    r"[A-Z]?[a-z]+|[A-Z]+|[^\x00-\x7f]+|[^\sA-Za-z]|\n|[^\S\n]{2,}|[^\S\n](?=[0-9])"
)
_NO_WORD = re.compile(r"(?i)\A[^aeiou]+\Z|[^aeiouy]{4}")


def prompt_budget(settings: Settings, model: ChatModel) -> int:
    """Tokens that a program prompt may take: ``prompt_tokens``, or the default of the kind
    of model; never more than leaves room in its context for a reply and one repair, or half
    of a short context."""
    wanted = settings.prompt_tokens or (REMOTE_TOKENS if model.remote else LOCAL_TOKENS)
    room = model.context_tokens - 2 * settings.program_tokens - PROBLEM_TOKENS
    return min(wanted, max(room, model.context_tokens // 2))


def tokens_of(text: str) -> int:
    """An upper estimate of a text's tokens, never more than its bytes.

    A token for every three letters of a word (two of capitals), for every letter of what is
    no word (of consonants only, or four in a row), for every mark, every digit and a blank
    before it, for every byte of other scripts. Qwen2.5's byte-pair tokenizer takes 0.4 to
    0.7 of it for prompts, and at most a twentieth more than it for hashes, Base64, random
    letters and other scripts.
    """
    total = 0
    for piece in _PIECES.findall(text):
        if not piece.isascii():
            total += len(piece.encode("utf-8", "replace"))
        elif piece[0].isspace():
            total += 1 + len(piece) // 16
        elif _NO_WORD.search(piece):
            total += len(piece)
        else:
            total += -(-len(piece) // (2 if piece.isupper() else 3))
    return total
