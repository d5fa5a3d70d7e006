"""What makes a run the run it is: corpus, settings, weights, models; its folder's name."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.errors import UsageError
from dbrag.evaluation.methods import MODEL_METHODS
from dbrag.models.endpoints import spec_without_user
from dbrag.models.load import is_remote, load_chat_model
from dbrag.models.registry import LOCAL
from dbrag.settings import Settings

if TYPE_CHECKING:
    from dbrag.database import Database
    from dbrag.models.base import ChatModel

IRRELEVANT = frozenset({"sources", "index", "cache", "learned", "max_rows", "offline"})
"""Settings that no figure of a run depends on: where things lie, how much is printed.

Every other one is recorded, a new one too, unless it is left out below for the methods that
do not use it. ``learned`` is off in every run.
"""
# For writing programs only: neither a ranking nor the naive query depends on them.
_REASONING = frozenset(
    {
        "votes",
        "rounds",
        "top",
        "selection",
        "mend",
        "prompt_tokens",
        "program",
        "looks",
        "max_steps",
        "program_tokens",
        "answer_s",
        "answer_tokens",
        "vote_temperature",
        "program_rows",
        "naming_hint",
    }
)
_RERANKING = (
    "model",
    "reply_cache",
    "rerank",
    "rerank_k",
    "rerank_votes",
    "rerank_tokens",
    "m",
    "row_context",
    "context_rows",
)
_BASELINES = {"readtable": "readtable_tokens", "mtqa": "mtqa_model", "mtqa-gold": "mtqa_model"}
"""Methods with a setting of their own, which no other method depends on."""
_WEIGHTS_ONLY = ("mtqa", "mtqa-gold")
_OTHERS = frozenset({"naive", *_BASELINES})
"""Methods of answers that write no programs as dbrag does."""
LATER = frozenset(
    {
        "vote_temperature",
        "program_rows",
        "naming_hint",
        "readtable_tokens",
        "mtqa_model",
    }
)
"""Settings that published runs did not know: recorded where they are not the default."""


def out_folder(out: str | Path | None, resume: bool, task: str, method: str) -> Path:
    """The run's folder, named by task, method and time where none is given.

    Raises:
        UsageError: a run to go on with that is not named.
    """
    if out is not None:
        return Path(out)
    if resume:
        raise UsageError("--resume needs the folder of the run to go on with", "add --out DIR")
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return Path("dbrag-eval") / f"{task}-{method}-{stamp}"


def corpus(db: Database, path: Path) -> dict[str, Any]:
    """What is searched; a skipped source makes another, easier corpus."""
    return {
        "name": path.resolve().name,
        "sources": len(db.sources),
        "tables": len(db.opened_index().catalog.tables),
        "skipped": sorted(skipped.name for skipped in db.skipped),
    }


_READING = ("schemas", "redact", "source_options", "file_options", "notes", "joins")


def asks_model(settings: Settings, method: str) -> bool:
    """Whether a retrieval method may ask the chat model."""
    if method in MODEL_METHODS:
        return True
    auto = settings.rerank == "auto" and is_remote(settings.model)
    return method == "dbrag" and (settings.rerank == "on" or auto)


def asks_chat(settings: Settings, task: str, method: str) -> bool:
    """Whether a method of either task may ask the chat model."""
    if task == "retrieval" or method in _WEIGHTS_ONLY:
        return asks_model(settings, method if task == "retrieval" else "dbrag")
    return True


def for_run(
    settings: Settings, task: str, method: str, chat_model: ChatModel | None = None
) -> Settings:
    """The settings as they hold for the run: nothing learned, and no "auto" for replies.

    Args:
        chat_model: an object to use instead of loading ``settings.model``; it remembers
            nothing.

    Raises:
        ModelError: the remote model that the run will ask cannot be used.
    """
    settings = replace(settings, learned="off")
    if chat_model is not None:
        return replace(settings, model=chat_model.name, reply_cache="off")
    if settings.reply_cache != "auto" or not asks_chat(settings, task, method):
        return settings
    remote = is_remote(settings.model) and load_chat_model(settings.model, settings).remote
    return replace(settings, reply_cache="on" if remote else "off")


def ignored(settings: Settings, task: str, method: str) -> frozenset[str]:
    """Names of the settings that this kind of run does not depend on."""
    unused = IRRELEVANT | (set(_BASELINES.values()) - {_BASELINES.get(method)})
    if task == "retrieval":
        unused |= _REASONING | {"threads", "k"}
        return unused if asks_model(settings, method) else unused | set(_RERANKING)
    if method == "naive":
        return unused | _REASONING | set(_RERANKING[2:])
    if method == "readtable":
        unused |= _REASONING - {"votes", "vote_temperature", "naming_hint"}
        return unused if asks_model(settings, "dbrag") else unused | (set(_RERANKING[2:]) - {"m"})
    if method in _BASELINES:
        unused |= _REASONING
        return unused if asks_model(settings, "dbrag") else unused | (set(_RERANKING) - {"m"})
    return unused


def behaviour(settings: Settings, task: str, method: str) -> dict[str, Any]:
    """The settings and ranking weights that can change a run's figures.

    All settings but those that :func:`ignored` names.
    """
    unused = ignored(settings, task, method)
    values = {
        name: value
        for name, value in asdict(settings).items()
        if name not in unused and not (name in LATER and value == getattr(Settings(), name))
    }
    values |= {name: told(values[name]) for name in ("model", "encoder") if name in values}
    if "mtqa_model" in values and Path(values["mtqa_model"]).exists():
        values["mtqa_model"] = Path(values["mtqa_model"]).resolve().name
    # They hold names of the user's, and records are published: only whether they changed counts.
    reading = [values.pop(name) for name in _READING]
    if any(map(_says_something, reading)):
        values["reading"] = hashlib.sha256(repr(reading).encode()).hexdigest()[:16]
    return {"settings": values, "weights": _weights(task, method)}


def told(spec: str) -> str:
    """The name of a model or an encoder as it may be published.

    No folder of this machine, no user and password; ``versions`` has an encoder's hash.
    """
    provider, colon, _ = spec.partition(":")
    if colon and len(provider) > 1 and not spec.startswith(LOCAL):
        return spec_without_user(spec)
    head = LOCAL if spec.startswith(LOCAL) else ""
    return head + re.split(r"[\\/]", spec.removeprefix(LOCAL).rstrip("\\/"))[-1]


def _says_something(value: Any) -> bool:
    return any(map(_says_something, value.values())) if isinstance(value, dict) else bool(value)


def _weights(task: str, method: str) -> dict[str, Any]:
    from dbrag.reasoning import confidence, select, source_doubt, verify
    from dbrag.retrieval import coarse, rerank

    found = {
        "coarse": asdict(coarse.DEFAULT),
        "rerank": asdict(rerank.DEFAULT),
        "select": asdict(select.DEFAULT),
    }
    if task == "answers" and method not in _OTHERS:
        # what decides between the programs voted on
        found |= {
            "source": asdict(source_doubt.WEIGHTS),
            "verify": asdict(verify.WEIGHTS),
            "confidence": asdict(confidence.WEIGHTS),
        }
    return found


def identity(db: Database, task: str, method: str) -> dict[str, Any]:
    """Names and hashes of the models in use."""
    encoder = db.embedder()
    found: dict[str, Any] = {"encoder": {"name": encoder.name, "sha256": encoder.sha256}}
    if asks_chat(db.settings, task, method):
        found["model"] = told(db.settings.model)
    return found
