"""dbrag: ask a question in plain language, get the answer computed from a whole database.

>>> import dbrag
>>> db = dbrag.connect("shop.db")          # doctest: +SKIP
>>> db.ask("How many customers are there?") # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError
from dbrag.settings import Settings
from dbrag.types import Answer, Candidate, SearchResult, TableRef

if TYPE_CHECKING:
    from dbrag.database import Database, connect

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Candidate",
    "Database",
    "DbragError",
    "SearchResult",
    "Settings",
    "TableRef",
    "__version__",
    "connect",
]


def __getattr__(name: str) -> Any:
    # Loaded on first use: importing dbrag must not load a database or model library.
    if name in ("connect", "Database"):
        from dbrag import database

        return getattr(database, name)
    raise AttributeError(f"module 'dbrag' has no attribute {name!r}")
