"""What a confidence is called."""

from __future__ import annotations

SURE = 0.7
"""From this confidence on an answer counts as sure."""
UNSURE = 0.5
"""Below it the answer's text says so, and why."""


def in_words(confidence: float) -> str:
    """``sure (86%)``, ``fairly sure (62%)`` or ``not sure (31%)``."""
    word = "not sure"
    if confidence >= UNSURE:
        word = "sure" if confidence >= SURE else "fairly sure"
    return f"{word} ({confidence:.0%})"
