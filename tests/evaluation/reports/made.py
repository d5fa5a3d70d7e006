"""Run folders as ``dbrag eval`` writes them, made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RECALLS = {"R@1": 0.0, "R@5": 0.0, "R@50": 0.0, "CR@5": 0.0}


def record(id_: str, db: str, n_tables: int, scores: Mapping[str, float], **more: Any) -> Any:
    """A record; one without scores has failed."""
    error = None if scores else {"code": "limit", "message": "30 s are over"}
    return {
        "id": id_,
        "db_id": db,
        "n_tables": n_tables,
        "where": n_tables > 1,
        "scores": dict(scores),
        "seconds": 0.5,
        "stages": {},
        "tokens": {},
        "error": error,
        **more,
    }


def write_run(
    folder: Path,
    records: Sequence[Any],
    task: str = "answers",
    method: str = "dbrag",
    model: str | None = None,
    settings: Mapping[str, Any] | None = None,
    data: tuple[str, int, int] = ("pack", 2, 9),
    finished: bool = True,
    **summary: Any,
) -> str:
    """Write a folder; its path. ``data`` are name, databases, tables."""
    folder.mkdir(parents=True)
    config = {
        "task": task,
        "method": method,
        "data": {"name": data[0], "sources": data[1], "tables": data[2], "skipped": []},
        "questions": {"name": "dev.json", "sha256": "0123", "n": 4},
        "settings": dict(settings or {}),
    }
    (folder / "config.json").write_text(json.dumps(config))
    lines = "".join(json.dumps(one) + "\n" for one in records)
    (folder / "records.jsonl").write_text(lines)
    if finished:
        versions = {"encoder": {"name": "local:enc", "sha256": "ab"}}
        told = {"schema": 1, "task": task, "config": config, **summary}
        told["versions"] = {**versions, **({"model": model} if model else {})}
        (folder / "summary.json").write_text(json.dumps(told))
    return str(folder)


def not_run(folder: Path, task: str, method: str, reason: str, command: str) -> str:
    """A run that could not begin, on the questions of :func:`write_run`."""
    folder.mkdir(parents=True)
    why = {"reason": reason, "command": command}
    config = {
        "method": method,
        "data": {"name": "pack", "sources": 2, "tables": 9},
        "questions": {"name": "dev.json", "sha256": "0123", "n": 4},
    }
    told = {"task": task, "method": method, "not_run": why, "config": config}
    (folder / "summary.json").write_text(json.dumps(told))
    return str(folder)


def recall(id_: str, db: str, n_tables: int, r5: float, **more: Any) -> Any:
    """A record of a ranking."""
    scores = {"R@1": r5 / 2, "R@5": r5, "R@50": 1.0, "CR@5": float(r5 == 1)}
    return record(id_, db, n_tables, scores, **more)
