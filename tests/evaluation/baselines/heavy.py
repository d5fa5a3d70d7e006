"""torch and transformers for tests: skipped where they are missing, but not in CI."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def heavy(name: str) -> Any:
    """A package of the extra ``baselines``; without it the module is skipped, in CI it fails."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        return importlib.import_module(name)
    return pytest.importorskip(name)
