"""Baselines that cannot be run here, because their weights or packages are missing.

Such a run has no figure. Its ``summary.json`` holds ``not_run`` with the reason and the
command to type, and ``dbrag eval`` exits 5. A method tells it by raising one of ``MISSING``
while it is made, before a question is asked, with the command as the hint.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbrag.errors import DbragError, ModelNotInstalled, UsageError, WeightsError
from dbrag.evaluation.records import RECORDS, SUMMARY, write_json
from dbrag.evaluation.summary import versions
from dbrag.types import SCHEMA_VERSION

MISSING = (ModelNotInstalled, WeightsError)


def not_run_summary(
    folder: Path, error: DbragError, config: Mapping[str, Any], task: str
) -> dict[str, Any]:
    """The summary of a run that could not begin, also written to ``folder``.

    Args:
        error: one of ``MISSING``; its hint is the command.
        config: of the run; see ``experiments``.

    Raises:
        UsageError: the folder holds the records of a run, or cannot be written.
    """
    if (folder / RECORDS).exists():
        raise UsageError(
            f"{str(folder)!r} holds a run, and {error.message}",
            error.hint or "choose another --out",
        ) from error
    summary = {
        "schema": SCHEMA_VERSION,
        "task": task,
        "method": config.get("method"),
        "not_run": {"reason": error.message, "command": error.hint},
        "config": {"task": task, **config},
        "versions": versions(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / SUMMARY, summary)
    except OSError as failure:
        reason = failure.strerror or str(failure)
        raise UsageError(
            f"cannot write the run to {str(folder)!r}: {reason}", "choose another --out"
        ) from failure
    return summary
