"""The best column of every table for a question, up to a million columns.

Columns are compared exactly where there are few. Many are first compared in 64
dimensions: the vectors' projections on their own principal axes (the eigenvectors of
their second moments, Eckart and Young 1936), which keep most of every inner product;
then the best 4,000 or so exactly. A table none of whose columns is among those keeps the
approximate score.

What it costs, forced upon the 3,571 column texts of the Spider pack and 600 of its
training questions: R@5 91.4 exactly; 91.6 with the best 45 exact, 91.4 with the best
200, when the five tables were the same for 97% of the questions (89% with 45).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from dbrag.index.arrays import load_array
from dbrag.index.vectors import checked_matrix

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.layout import Generation

    Array = NDArray[np.float32]

EXACT = 65_536
"""Columns up to which all are compared exactly (100 MB as float32)."""
AXES = 64
_RESCORED = 4_000
_EVERY = 16
_SAMPLE = 20_000
_CHUNK = 16_384


class ColumnVectors:
    """The vectors of all distinct column texts of a generation; safe to share by threads."""

    def __init__(self, generation: Generation) -> None:
        """Open the files.

        Raises:
            OSError, ValueError: missing or damaged.
        """

        self._vectors = checked_matrix(generation.matrix("columns"))
        self._lock = threading.Lock()
        self._exact: Array | None = None
        self._low: Array | None = None
        if len(self._vectors) > EXACT:
            self._axes: Array = load_array(generation.column_axes)
            self._low = checked_matrix(generation.column_low)
            if len(self._low) != len(self._vectors):
                raise ValueError("projections and columns differ in number")

    def __len__(self) -> int:
        return len(self._vectors)

    def scores(self, question_vector: Array) -> Array:
        """Cosine of the question with every column text, ``[n]``; see above for large n.

        Args:
            question_vector: ``[dim]``, length 1.
        """
        import numpy as np

        if self._low is None:
            return self._all() @ question_vector
        scores = self._low @ (self._axes @ question_vector)
        best = _about(scores, _RESCORED)
        scores[best] = self._vectors[best].astype(np.float32) @ question_vector
        _let_go(self._vectors)
        return np.asarray(scores)

    def _all(self) -> Array:
        import numpy as np

        with self._lock:
            if self._exact is None:
                self._exact = np.asarray(self._vectors, np.float32)
            return self._exact


def _let_go(matrix: NDArray[np.generic]) -> None:
    """Tell the system that what was read of a mapped matrix is not needed.

    It stays in the system's cache as long as nothing else wants the room; counted to this
    process, a million columns would be 750 MB after a few questions. Takes 1 ms or two.
    """
    import mmap

    mapped = getattr(matrix, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        mapped.madvise(mmap.MADV_DONTNEED)


def _about(scores: Array, n: int) -> NDArray[np.int64]:
    """Positions of the ``n`` largest, in order; some more or less where they are many.

    The bound is taken from every 16th, an eighth of the time of a partition of all.
    """
    import numpy as np

    part = scores[::_EVERY] if len(scores) > n * _EVERY else scores
    place = len(part) - max(1, n * len(part) // len(scores))
    bound = np.partition(part, place)[place] if place > 0 else -np.inf
    return np.flatnonzero(scores >= bound)


def _every(path: Path, step: int) -> Array:
    """Every so many-th row of a matrix, by reading: mapping would bring in all between."""
    import numpy as np

    matrix = checked_matrix(path)
    n, dim = matrix.shape
    width = dim * matrix.itemsize
    base = path.stat().st_size - n * width
    rows = []
    with path.open("rb") as file:
        for i in range(0, n, step):
            file.seek(base + i * width)
            rows.append(np.frombuffer(file.read(width), matrix.dtype))
    return np.asarray(rows, np.float32)


def write_projections(generation: Generation) -> None:
    """Write what :class:`ColumnVectors` needs beside the vectors, if they are many."""
    import numpy as np

    path = generation.matrix("columns")
    n = len(checked_matrix(path))
    if n <= EXACT:
        return
    sample = _every(path, max(1, n // _SAMPLE))
    # Ascending eigenvalues; the last axes are the principal ones.
    _, axes = np.linalg.eigh(sample.T @ sample)
    chosen = np.ascontiguousarray(axes[:, ::-1][:, :AXES].T, np.float32)
    np.save(generation.column_axes, chosen)
    with generation.column_low.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, len(chosen))}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, n, _CHUNK):
            # Mapped anew for each part: what was read of the file then leaves the memory.
            part = np.asarray(checked_matrix(path)[start : start + _CHUNK], np.float32)
            file.write(np.ascontiguousarray(part @ chosen.T, np.float32).tobytes())
