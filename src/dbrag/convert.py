"""Values of settings: from text or TOML to the type of the setting."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


def one_of(words: Iterable[str]) -> str:
    """``one of "a", "b"`` for a message."""
    return "one of " + ", ".join(f'"{word}"' for word in words)


def _to_sources(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (
            tuple(part for part in value.split(os.pathsep) if part)
            if "://" not in value
            else (value,)
        )
    return tuple(str(part) for part in value)


def _to_texts(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(text for part in parts if (text := str(part).strip()))


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        raise ValueError(value)
    return text in ("1", "true", "yes", "on")


def _to_int(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(value)
    return int(value)


def is_of(kind: str, value: Any) -> bool:
    """Whether a value of TOML is of that kind; a list of one text may be the text alone."""
    if kind in ("texts", "tuple[str, ...]"):
        parts = value if isinstance(value, list) else [value]
        return all(isinstance(part, str) for part in parts)
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "str":
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool)


CONVERT: Mapping[str, Callable[[Any], Any]] = {
    "texts": _to_texts,
    "tuple[str, ...]": _to_sources,
    "str": str,
    "int": _to_int,
    "float": float,
    "bool": _to_bool,
}
"""Kind of a setting (its type as text) → value of any layer as that type."""
KIND_NAMES = {
    "texts": "a list of names",
    "tuple[str, ...]": "a list of sources",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
"""The same kinds, for messages."""

WORDS: Mapping[str, tuple[str, ...]] = {
    "infer_joins": ("all", "undeclared", "off"),
    "selection": ("auto", "off"),
    "mend": ("on", "off"),
    "rerank": ("auto", "on", "off"),
    "reply_cache": ("auto", "on", "off"),
    "row_context": ("relevant", "random", "none"),
    "row_search": ("text", "dense", "both"),
    "join_ranking": ("pagerank", "neighbour", "greedy", "off"),
    "program": ("query", "steps"),
    "looks": ("auto", "on", "off"),
    "program_rows": ("sample", "context"),
    "naming_hint": ("on", "off"),
}
"""Settings that take one of a few words."""
AT_LEAST_ONE = (
    *("k", "top", "votes", "max_result_rows", "max_result_mb", "profile_rows"),
    *("engine_mb", "source_rows", "m", "rerank_votes", "rerank_tokens", "dense_rows"),
    *("max_steps", "program_tokens", "answer_tokens", "prompt_tokens", "readtable_tokens"),
)
NOT_NEGATIVE = ("rounds", "max_rows", "context_rows", "refresh_s")
POSITIVE = ("timeout_s", "profile_s", "source_s", "answer_s")
"""Settings by the numbers they take; a None is not looked at."""


def out_of_range(given: Any, sample_rows: int) -> Iterator[tuple[str, str]]:
    """Settings whose value cannot be, and what it has to be, as of ``k``: "be at least 1".

    Args:
        given: the ``Settings``.
        sample_rows: rows of a table that are known without asking its source.
    """
    for name in AT_LEAST_ONE:
        value = getattr(given, name)
        if value is not None and value < 1:
            yield name, "be at least 1"
    if given.rerank_k is not None and given.rerank_k < 2:  # one table has no order
        yield "rerank_k", "be at least 2"
    if given.row_context == "random" and given.context_rows > sample_rows:
        yield "context_rows", f'be at most {sample_rows} with row_context = "random"'
    if not 0 <= given.vote_temperature <= 2:  # what providers take
        yield "vote_temperature", "be 0 to 2"
    for name, words in WORDS.items():
        if getattr(given, name) not in words:
            yield name, f"be {one_of(words)}"
    for name in NOT_NEGATIVE:
        if not getattr(given, name) >= 0:
            yield name, "not be negative"
    for name in POSITIVE:
        value = getattr(given, name)
        # servers and timers take no infinite one
        if value is not None and not 0 < value < math.inf:
            yield name, "be positive and finite"
