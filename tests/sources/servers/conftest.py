"""Databases on real servers, one per module of tests."""

from __future__ import annotations

from tests.servers import mysql, postgres, private_postgres

__all__ = ["mysql", "postgres", "private_postgres"]
