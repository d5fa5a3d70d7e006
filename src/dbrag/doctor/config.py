"""The settings file and the environment: everything that is wrong, not the first thing only."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from dbrag.doctor.check import Check, ok, problem, warning
from dbrag.settings import Settings, config_path
from dbrag.textsafe import without_password

if TYPE_CHECKING:
    from dbrag.errors import UsageError

_UNKNOWN = re.compile(r"unknown setting '([^']+)'")
_VARIABLE = re.compile(r"\bDBRAG_\w+")
_OTHERS = ("API_TOKEN",)
"""``DBRAG_*`` variables that are no settings."""


def config(
    config: str | None, environ: Mapping[str, str], problems: Sequence[UsageError]
) -> Iterator[Check]:
    """What is wrong with the settings, else where they come from.

    Args:
        problems: what ``lenient_settings`` left out.
    """
    path = config_path(config)
    place = "the settings" if path is None else str(path)
    for error in problems:
        yield problem("settings", error.message, _hint(error, place))
    names = {f"DBRAG_{one.name.upper()}" for one in fields(Settings)}
    given = [name for name in sorted(environ) if name.startswith("DBRAG_") and environ[name]]
    for name in given:
        close = difflib.get_close_matches(name, names, 1, 0.8)
        if name not in names and close and name.removeprefix("DBRAG_") not in _OTHERS:
            hint = f"if you mean {close[0]}: unset {name}; export {close[0]}=…"
            yield warning("settings", f"{name} is set, which is no setting", hint)
    if path is not None and _holds_password(path):
        yield warning(
            "settings",
            f"a password is written in {str(path)!r}, in the URL of a source",
            "take it out, and name the variable that holds it: password_env in [source.NAME]",
        )
    if not problems:
        text = f"{str(path)!r} is whole" if path else "no dbrag.toml here or above: defaults hold"
        ours = [name for name in given if name in names]
        yield ok("settings", f"{text}; set in the environment: {', '.join(ours)}" if ours else text)


def _hint(error: UsageError, place: str) -> str:
    """A near name for an unknown one; the list of all settings is no way out."""
    unknown = _UNKNOWN.match(error.message)
    if unknown:
        names = [one.name for one in fields(Settings)] + ["source", "files"]
        close = difflib.get_close_matches(unknown[1], names, 1)
        return f"in {place}: {f'write {close[0]}' if close else f'take {unknown[1]} out'}"
    variable = _VARIABLE.search(error.message)
    if variable:
        return f"unset {variable[0]}, or export {variable[0]}=… as it has to be"
    hint = error.hint or "correct it, then dbrag doctor"
    return hint if place in error.message else f"in {place}: {hint}"


def _holds_password(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    # Comments, too: whoever reads the file reads them.
    return any(without_password(url) != url for url in re.findall(r"[\w+]+://[^\s\"']+", text))
