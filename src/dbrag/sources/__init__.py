"""Databases and files, opened read-only: ``open_sources`` finds them, ``Source`` is the seam."""

from __future__ import annotations

from dbrag.sources.base import ColumnStatistics, Session, SkippedSource, Source
from dbrag.sources.open import open_sources

__all__ = ["ColumnStatistics", "Session", "SkippedSource", "Source", "open_sources"]
