"""Packages and weights that only baselines need, and what to type where they are missing."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dbrag.errors import ModelNotInstalled, WeightsError

if TYPE_CHECKING:
    from collections.abc import Callable

INSTALL = 'pip install "dbrag[baselines]"'


def need(method: str, *packages: str) -> None:
    """Refuse where a package is missing; imports nothing.

    Raises:
        ModelNotInstalled: with the command that installs it.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ModelNotInstalled(f"{method} needs {' and '.join(missing)}", INSTALL)


def transformers_for(method: str) -> Any:
    """The package ``transformers``, torch beside it.

    Raises:
        ModelNotInstalled: one of the two is missing or cannot be loaded.
    """
    need(method, "torch", "transformers")
    try:
        import_module("torch")
        return import_module("transformers")
    except (ImportError, OSError) as error:  # OSError: a library of the system is missing
        reason = " ".join(str(error).split())[:200]
        raise ModelNotInstalled(f"{method} cannot load torch: {reason}", INSTALL) from error


def loaded(what: Callable[[], Any], name: str, command: str) -> Any:
    """What ``what`` loads with transformers.

    Raises:
        WeightsError: the files are neither here nor can be fetched, or are not of the form.
    """
    try:
        return what()
    except Exception as error:  # of the hub, of files, of tensors: without a common base
        reason = " ".join(str(error).split())[:200]
        raise WeightsError(f"weights missing: {name!r} ({reason})", command) from error
