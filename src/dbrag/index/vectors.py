"""Matrices of text vectors on disk: encoded once, then found by the hash of the text.

Row by row into the file: a matrix of a million vectors is never in memory.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from dbrag.index.arrays import load_array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.layout import Generation
    from dbrag.models.base import Embedder

_CHUNK = 256
_COPIED = 8_192


class MatrixWriter:
    """One matrix in the making, ``[len(texts), dim]``.

    Args:
        name: of the matrix in the generation.
        previous: where vectors may be taken from; None encodes everything.
        dtype: float32, or float16 for half the space: of unit vectors of 384 numbers
            inner products then change by some 1e-4.
    """

    def __init__(
        self,
        generation: Generation,
        previous: Generation | None,
        name: str,
        texts: Sequence[str],
        dtype: type[np.float32] | type[np.float16],
    ) -> None:
        import numpy as np

        self._path = generation.matrix(name)
        self._hash_path = generation.hashes(name)
        self._texts = texts
        self._dtype = np.dtype(dtype)
        self._hashes = _hashes(texts)
        self._old: Any = None
        self._from = np.full(len(texts), -1, np.int64)
        if previous is not None and previous.hashes(name).is_file():
            self._old = load_array(previous.matrix(name), mapped="r")
            self._from = _find(self._hashes, load_array(previous.hashes(name)))
        # Texts of similar length together: little padding in the encoder's batches.
        self.missing = sorted(np.flatnonzero(self._from < 0).tolist(), key=self._length)

    def _length(self, i: int) -> int:
        return len(self._texts[i])

    def write(self, embedder: Callable[[], Embedder], on_encoded: Callable[[int], None]) -> None:
        """Copy what is known, encode the rest.

        Args:
            embedder: called only if something has to be encoded.
            on_encoded: called with the number of texts just encoded.
        """
        import numpy as np

        np.save(self._hash_path, self._hashes)
        with self._path.open("wb") as file:
            dim = 0 if self._old is None or not len(self._old) else int(self._old.shape[1])
            rows = _Rows(file, len(self._texts), self._dtype)
            if dim:
                rows.start(dim)
                kept = np.flatnonzero(self._from >= 0)
                for start in range(0, len(kept), _COPIED):
                    chunk = kept[start : start + _COPIED]
                    rows.put(chunk, self._old[self._from[chunk]])
            for start in range(0, len(self.missing), _CHUNK):
                places = self.missing[start : start + _CHUNK]
                vectors = embedder().encode([self._texts[i] for i in places])
                if not dim:
                    dim = int(vectors.shape[1])
                    rows.start(dim)
                rows.put(places, vectors)
                on_encoded(len(places))
            if not dim:
                rows.start(0)


class _Rows:
    """Rows written into a ``.npy`` file in any order."""

    def __init__(self, file: Any, n: int, dtype: np.dtype[Any]) -> None:
        self._file = file
        self._n = n
        self._dtype = dtype
        self._base = 0
        self._width = 0

    def start(self, dim: int) -> None:
        import numpy as np

        self._width = dim * self._dtype.itemsize
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._n, dim)}
        np.lib.format.write_array_header_1_0(self._file, header)
        self._base = self._file.tell()
        self._file.truncate(self._base + self._n * self._width)

    def put(self, places: Sequence[int] | NDArray[np.int64], vectors: NDArray[Any]) -> None:
        import numpy as np

        if vectors.shape[1] * self._dtype.itemsize != self._width:
            raise ValueError(f"vectors of {vectors.shape[1]} numbers among others")
        data = np.ascontiguousarray(vectors, self._dtype)
        following = -1
        for place, row in zip(places, data, strict=True):
            if place != following:
                self._file.seek(self._base + int(place) * self._width)
            self._file.write(row.data)
            following = place + 1


def checked_matrix(path: Path) -> NDArray[Any]:
    """A matrix, memory-mapped.

    Raises:
        OSError, ValueError: missing or damaged.
    """
    matrix = load_array(path, mapped="r")
    if matrix.ndim != 2:
        raise ValueError(f"{path.name} is not a matrix")
    return matrix


def _hashes(texts: Sequence[str]) -> NDArray[np.uint8]:
    import numpy as np

    digests = b"".join(
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts
    )
    return np.frombuffer(digests, np.uint8).reshape(len(texts), 16)


def _find(hashes: NDArray[np.uint8], known: NDArray[np.uint8]) -> NDArray[np.int64]:
    """For each of ``hashes`` ``[n, 16]`` its row in ``known`` ``[m, 16]``, or -1."""
    import numpy as np

    found = np.full(len(hashes), -1, np.int64)
    if not len(known) or not len(hashes):
        return found
    old, new = (np.ascontiguousarray(part).view("<u8") for part in (known, hashes))
    order = np.argsort(old[:, 0], kind="stable")
    at = np.searchsorted(old[:, 0], new[:, 0], sorter=order)
    rows = order[np.minimum(at, len(order) - 1)]
    # Of two texts with equal first halves one is found, the other encoded again.
    same = (old[rows] == new).all(axis=1)
    found[same] = rows[same]
    return found
