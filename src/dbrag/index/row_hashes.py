"""Which rows have vectors already: by hashes, from the last generation or a killed run."""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Hashes = NDArray[np.int64]

_HEADER_BYTES = 64
_SEVERAL = 50_000
_UNEVEN = 0.01


def hash_rows(texts: Sequence[str], columns: Sequence[Sequence[str]]) -> Hashes:
    """One hash per row of its cells and the names of its columns, ``[n]``, 63 bits.

    Two of a million rows share one with probability 5e-8.
    """
    import numpy as np

    keys: dict[tuple[str, ...], bytes] = {}
    hashes = np.empty(len(texts), np.int64)
    for i, (text, names) in enumerate(zip(texts, columns, strict=True)):
        named = tuple(names)
        key = keys.get(named)
        if key is None:
            data = json.dumps(named).encode("ascii")
            key = keys[named] = blake2b(data, digest_size=32).digest()
        digest = blake2b(text.encode("utf-8"), digest_size=8, key=key).digest()
        hashes[i] = int.from_bytes(digest, "big") >> 1
    return hashes


class Known:
    """Vectors by hash; of several with one hash the one added first."""

    def __init__(self) -> None:
        self._parts: list[tuple[Hashes, NDArray[np.intp], Array]] = []

    @property
    def dim(self) -> int:
        """Length of the vectors; 0 where there are none."""
        return int(self._parts[0][2].shape[1]) if self._parts else 0

    def add(self, hashes: Hashes, vectors: Array) -> None:
        """Add vectors ``[n, dim]`` with their hashes ``[n]``.

        Raises:
            ValueError: the lengths differ.
        """
        import numpy as np

        if len(hashes) != len(vectors):
            raise ValueError(f"{len(vectors)} row vectors have {len(hashes)} hashes")
        if len(hashes):
            order = np.argsort(hashes, kind="stable")
            self._parts.append((hashes[order], order, vectors))

    def holds(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Which of these have a vector, ``[n]``."""
        import numpy as np

        found = np.zeros(len(hashes), bool)
        for sorted_hashes, _, _ in self._parts:
            at = np.searchsorted(sorted_hashes, hashes) % len(sorted_hashes)
            found |= sorted_hashes[at] == hashes
        return found

    def copy(self, hashes: Hashes, matrix: Array, which: NDArray[np.bool_]) -> None:
        """Copy the known vectors of ``which`` rows into ``matrix`` ``[n, dim]``."""
        import numpy as np

        left = np.flatnonzero(which)
        for sorted_hashes, order, vectors in self._parts:
            at = np.searchsorted(sorted_hashes, hashes[left]) % len(sorted_hashes)
            here = sorted_hashes[at] == hashes[left]
            to, source = left[here], order[at[here]]
            for start in range(0, len(to), _SEVERAL):
                part = slice(start, start + _SEVERAL)
                matrix[to[part]] = vectors[source[part]]
            left = left[~here]


class Partial:
    """What a run has encoded so far, in a file that a killed run leaves to the next one.

    A header names the encoder; then one record per row: its hash and its vector. A torn
    last record is left out.
    """

    def __init__(self, path: Path, encoder_sha256: str) -> None:
        self._path = path
        self._encoder = encoder_sha256[:32]
        self._goes_on = False
        self._file: Any = None

    def read(self) -> tuple[Hashes, Array]:
        """Hashes ``[n]`` and vectors ``[n, dim]`` of an earlier run with the same encoder.

        Vectors stay in the file, memory-mapped. Records that a power failure left without
        their vector, of length 1, are passed over.
        """
        import numpy as np

        try:
            with self._path.open("rb") as file:
                head = file.read(_HEADER_BYTES).decode("ascii", "replace")
        except FileNotFoundError:
            head = ""
        encoder, _, width = head.partition(" ")
        dim = int(width) if width.strip().isdigit() else 0
        if encoder != self._encoder or dim < 1:
            return np.zeros(0, np.int64), np.zeros((0, 0), np.float32)
        record = _record(dim)
        n = (self._path.stat().st_size - _HEADER_BYTES) // record.itemsize
        os.truncate(self._path, _HEADER_BYTES + n * record.itemsize)
        self._goes_on = True
        if not n:
            return np.zeros(0, np.int64), np.zeros((0, dim), np.float32)
        found = np.memmap(self._path, record, "r", _HEADER_BYTES, (n,))
        vectors = found["vector"]
        lengths = np.concatenate(
            [
                np.square(vectors[start : start + _SEVERAL]).sum(axis=1)
                for start in range(0, n, _SEVERAL)
            ]
        )
        # A hash that no row has, which are all positive.
        return np.where(abs(lengths - 1) < _UNEVEN, found["hash"], -1), vectors

    def append(self, hashes: Hashes, vectors: Array) -> None:
        """Add rows that were encoded, after those that were read."""
        import numpy as np

        if self._file is None:
            self._file = self._path.open("ab" if self._goes_on else "wb")
        if not self._goes_on:
            header = f"{self._encoder} {vectors.shape[1]}".ljust(_HEADER_BYTES)
            self._file.write(header.encode("ascii"))
            self._goes_on = True
        rows = np.empty(len(hashes), _record(vectors.shape[1]))
        rows["hash"], rows["vector"] = hashes, vectors
        self._file.write(rows.tobytes())
        self._file.flush()

    def close(self) -> None:
        """Close the file; it stays until the index that holds its vectors is in force."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _record(dim: int) -> Any:
    import numpy as np

    return np.dtype([("hash", "<i8"), ("vector", "<f4", (dim,))])
