"""All checks, in the order in which a fault of one explains those of the next."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbrag.doctor import config, extras, index, machine, sources, weights
from dbrag.doctor.check import Check, guarded, warning
from dbrag.settings import Settings, lenient_settings

if TYPE_CHECKING:
    from dbrag.sources.base import Source

_BUG = "report it as a bug of dbrag, with this line"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look at.

    Attributes:
        arguments: settings of the command line, as ``load_settings`` takes them.
        config: the settings file, None for the one that is found.
        flags: of this call, with a blank before, for the next command to type.
        deep: read local weights for their hash: seconds for a gigabyte.
        call: let the chat model answer a fixed question of a few words.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    config: str | None = None
    flags: str = ""
    deep: bool = False
    call: bool = False


def examine(wanted: Wanted) -> Iterator[Check]:
    """Every finding, as soon as it is known. Nothing is raised but an interruption."""
    environ = dict(os.environ)
    settings, problems = lenient_settings(wanted.arguments, config=wanted.config, environ=environ)
    try:
        needs = weights.needs(settings)
    except Exception:  # the checks of the models will say what it is
        needs = weights.Needs(settings.model)
    yield from guarded("python", machine.software, _BUG)
    yield from guarded("memory", lambda: machine.memory(needs), _BUG)
    yield from guarded("disk", lambda: machine.disk(settings, needs), _BUG)
    yield from guarded("cache", lambda: machine.cache(settings), _BUG)
    yield from guarded("settings", lambda: config.config(wanted.config, environ, problems), _BUG)
    yield from guarded("extras", lambda: extras.extras(settings), _BUG)
    yield from guarded(
        "model",
        lambda: weights.chat_model(settings, deep=wanted.deep, call=wanted.call),
        "dbrag models list",
    )
    yield from guarded("encoder", lambda: weights.encoder(settings), "dbrag models list")
    yield from guarded("sources", lambda: _data(settings, wanted), f"dbrag status{wanted.flags}")


def _data(settings: Settings, wanted: Wanted) -> Iterator[Check]:
    """Sources and index."""
    if not settings.sources and not settings.index:
        yield warning(
            "sources", "no source is named", "dbrag demo, then dbrag doctor -s demo/shop.db"
        )
        return
    opened = sources.open_all(settings)
    reached: list[Source] = []
    try:
        yield from sources.look_at(opened, wanted.flags, reached)
        yield from guarded(
            "index",
            lambda: index.index(settings, opened, reached, wanted.flags),
            f"dbrag index{wanted.flags} --force",
        )
    finally:
        for source in opened.sources:
            if source in reached:  # another one may still be waited for, in its own thread
                source.close()
