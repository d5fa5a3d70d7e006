"""Variables of a checkpoint of TensorFlow, for ``convert_dtr.py``: a process of its own.

In one process with torch, TensorFlow can crash (both bring an LLVM), and often they do not
even go into one environment. So this needs nothing else, not dbrag either. It writes lines of
JSON: first the ``names`` of all variables, or what it ``lacks``; then for each name that it
reads, a line of JSON each, the ``shape`` and right after it the values, float32 of this
machine's byte order. Where it cannot go on, it writes the ``error``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main(prefix: str) -> None:
    """Serve the checkpoint until there are no more names on standard input."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is not of the protocol

    def say(**what: Any) -> None:
        out.write(json.dumps(what).encode() + b"\n")
        out.flush()

    try:
        import tensorflow
    except ImportError as error:
        return say(lacks=str(error))
    try:
        reader = tensorflow.train.load_checkpoint(prefix)
        say(names=sorted(reader.get_variable_to_shape_map()))
        for line in sys.stdin:
            array = reader.get_tensor(json.loads(line)).astype("float32")
            say(shape=array.shape)
            out.write(array.tobytes())
            out.flush()
    except Exception as error:  # of TensorFlow: without a common base
        say(error=str(error))


if __name__ == "__main__":
    main(sys.argv[1])
