"""Which folder an index lies in; cheap to import: shells ask for it while a word is typed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbrag.textsafe import without_password

if TYPE_CHECKING:
    from dbrag.settings import Settings


def identity(spec: str) -> str:
    """A source as one text whatever the working directory: the default index depends on it.

    It holds no password: another one is still the same source.
    """
    name, separator, rest = spec.partition("=")
    if separator and not any(mark in name for mark in "/\\:"):
        return f"{name}={identity(rest)}"
    return without_password(spec) if "://" in spec else str(Path(spec).expanduser().resolve())


def index_dir(settings: Settings, specs: Sequence[str]) -> Path:
    """The given folder, or one in the cache that depends on the set of sources only."""
    if settings.index:
        return Path(settings.index).expanduser()
    identities = sorted(identity(spec) for spec in specs)
    key = hashlib.sha256("\n".join(identities).encode()).hexdigest()[:16]
    return settings.cache_dir / "indexes" / key
