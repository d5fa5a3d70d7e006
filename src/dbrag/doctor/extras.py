"""The extras: which are installed, and what is lost without the others."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbrag.doctor.check import Check, ok, problem, warning
from dbrag.errors import UsageError

if TYPE_CHECKING:
    from dbrag.settings import Settings


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of the package: the modules it brings, and what does not work without them."""

    name: str
    modules: tuple[str, ...]
    cost: str


EXTRAS = (
    Extra("local", ("xllamacpp",), "no chat model on this machine (local:…)"),
    Extra("remote", ("pydantic_ai",), "no remote chat model (openai:…, anthropic:…, ollama:…)"),
    Extra("servers", ("psycopg", "pymysql"), "no PostgreSQL, MySQL or MariaDB server"),
    Extra("mcp", ("mcp",), "no dbrag mcp: agents cannot use the sources"),
    Extra(
        "serve",
        ("fastapi", "uvicorn", "prometheus_client", "vl_convert"),
        "no dbrag serve: neither the page nor the HTTP API",
    ),
)
_SERVERS = ("postgresql", "postgres", "mysql", "mariadb")


def extras(settings: Settings) -> Iterator[Check]:
    """One finding for each; a missing one is a problem where the settings ask for it."""
    asked = _asked(settings)
    for extra in EXTRAS:
        missing = [name for name in extra.modules if not installed(name)]
        name, hint = f"extra {extra.name}", f"pip install 'dbrag[{extra.name}]'"
        if not missing:
            yield ok(name, f"installed ({', '.join(extra.modules)})")
            continue
        text = f"{', '.join(missing)} not installed: {extra.cost}"
        if extra.name in asked:
            yield problem(name, f"{text}; needed for {asked[extra.name]}", hint)
        else:
            yield warning(name, text, hint)


def installed(module: str) -> bool:
    """Whether a module can be found; it is not imported."""
    if module in sys.modules:
        return sys.modules[module] is not None
    return importlib.util.find_spec(module) is not None


def _asked(settings: Settings) -> dict[str, str]:
    """Names of extras → what in the settings needs them, as it may be shown."""
    from dbrag.doctor.sources import split_spec
    from dbrag.models.load import is_remote
    from dbrag.textsafe import without_password

    asked = {}
    with suppress(UsageError):  # the check of the model tells
        asked["remote" if is_remote(settings.model) else "local"] = repr(settings.model)
    for spec in settings.sources:
        _, place = split_spec(spec)
        if "://" in place and place.partition("://")[0].partition("+")[0] in _SERVERS:
            asked.setdefault("servers", repr(without_password(place)))
    return asked
