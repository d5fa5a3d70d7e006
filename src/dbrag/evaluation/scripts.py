"""How the scripts in ``experiments/`` and ``bench/`` end, as ``dbrag`` itself does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

EXIT_FAILED, EXIT_INTERRUPTED = 1, 130


def run_script(main: Callable[[], int]) -> int:
    """The exit code of a script, without a traceback where a person ended it.

    Ctrl-C is 130, a reader that went away (``| head``) is 1; what ``main`` raises else is raised.
    """
    try:
        code = main()
        sys.stdout.flush()  # a closed pipe shows here, not when Python ends
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # What is still buffered has no reader; without this Python would try at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    return code
