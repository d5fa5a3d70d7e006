"""The largest of many scores, without sorting all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


def top(scores: Array, limit: int) -> NDArray[np.int64]:
    """Positions of the ``limit`` largest, largest first, equal ones in order."""
    import numpy as np

    if limit < 1:
        return np.zeros(0, np.int64)
    if limit < len(scores):
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        found = np.flatnonzero(scores >= least)
    else:
        found = np.arange(len(scores))
    return found[np.argsort(-scores[found], kind="stable")][:limit]
