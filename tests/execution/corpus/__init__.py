"""Statements the guard must admit, and statements it must refuse: one a line."""

from __future__ import annotations

from pathlib import Path

ENGINES = ("sqlite", "postgres", "mysql", "duckdb")


def honest() -> list[tuple[str, str]]:
    """(dialect, statement): all admitted, and run by the engine."""
    return _read("honest.txt")


def hostile() -> list[tuple[str, str]]:
    """(dialect, statement): all refused."""
    return _read("hostile.txt")


def _read(name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    section = ""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    for line in text.split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]") and " " not in line:
            section = line[1:-1]
            continue
        statement = line.replace("⏎", "\n")
        engines = set(ENGINES) if section == "all" else set(section.split(","))
        for engine in ENGINES:
            if statement.endswith("]") and f" [-{engine}]" in statement:
                engines.discard(engine)
                statement = statement.replace(f" [-{engine}]", "")
        found += [(engine, statement) for engine in ENGINES if engine in engines]
    return found
