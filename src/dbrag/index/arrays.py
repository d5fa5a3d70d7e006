"""Arrays read from disk, by several threads at once.

numpy reads the header of an array by ``ast.literal_eval``, and until Python 3.11.8 and 3.12.2
two threads that parse at the same moment can make each other fail: ``SystemError: AST
constructor recursion depth mismatch`` (CPython gh-106905). So one thread reads at a time, and
tries again where somebody else's parsing came between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
_TRIES = 5
_READING = threading.Lock()


def load_array(path: Path, mapped: Literal["r"] | None = None) -> NDArray[Any]:
    """The array of a ``.npy`` file; ``mapped="r"`` leaves it on disk.

    Raises:
        OSError, ValueError: missing, damaged, or empty and to be mapped.
    """
    import numpy as np

    def read() -> NDArray[Any]:
        array: NDArray[Any] = np.load(path, mmap_mode=mapped)
        return array

    return one_at_a_time(read)


def load_archive(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a ``.npz`` file by name; none of them may hold Python objects.

    Raises:
        OSError, ValueError, EOFError, zipfile.BadZipFile: missing or damaged.
        TypeError: a ``.npy`` file.
    """
    import numpy as np

    def read() -> dict[str, NDArray[Any]]:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}

    return one_at_a_time(read)


def one_at_a_time(read: Callable[[], T]) -> T:
    """What ``read`` returns, which calls ``numpy.load``.

    Raises:
        Exception: whatever ``read`` raises.
    """
    with _READING:
        for _ in range(_TRIES - 1):
            try:
                return read()
            except SystemError as error:
                if "AST constructor" not in str(error):
                    raise
        return read()
