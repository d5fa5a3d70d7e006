"""Questions with gold answers, metrics, runs and their comparison.

Read :mod:`dbrag.evaluation.experiments` first: ``run_eval`` is ``dbrag eval``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbrag.evaluation.experiments import run_eval

__all__ = ["run_eval"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: a metric alone should not cost the import of a database.
    if name == "run_eval":
        from dbrag.evaluation import experiments

        return experiments.run_eval
    raise AttributeError(f"module 'dbrag.evaluation' has no attribute {name!r}")
