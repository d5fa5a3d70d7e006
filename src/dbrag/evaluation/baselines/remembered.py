"""Vectors of the corpus, computed once and kept in dbrag's cache.

A corpus of 779 tables takes a small encoder a minute and a large one an hour; a run is a
few hundred questions, and there are many runs.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from dbrag.errors import UsageError
from dbrag.index.arrays import load_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.models.base import Embedder

    Array = NDArray[np.float32]


def remembered(folder: Path, key: Iterable[str], compute: Callable[[], Array]) -> Array:
    """The array of that key, from the cache or computed and kept there.

    A file that cannot be read is computed anew.

    Args:
        folder: of dbrag's cache.
        key: all that the array depends on.

    Raises:
        UsageError: the cache cannot be written.
    """
    import numpy as np

    digest = sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
    path = folder / "baselines" / f"{digest}.npy"
    try:
        return np.asarray(load_array(path), np.float32)
    except (OSError, ValueError, EOFError):
        array = compute()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            np.save(file, array)
        temporary.replace(path)
    except OSError as error:
        raise UsageError(
            f"cannot write the vectors to {str(path)!r}: {error.strerror or error}",
            "choose another folder: DBRAG_CACHE",
        ) from error
    finally:
        with suppress(OSError):  # the same reason, told already
            temporary.unlink(missing_ok=True)
    return array


def encoded(folder: Path, encoder: Embedder, texts: Sequence[str]) -> Array:
    """Unit vectors ``[n_texts, dim]`` of texts, from the cache where they are there.

    Raises:
        ModelError: the encoder fails.
        UsageError: the cache cannot be written.
    """
    return remembered(folder, (encoder.sha256, *texts), lambda: encoder.encode(texts))
