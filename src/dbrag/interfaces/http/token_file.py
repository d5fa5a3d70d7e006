"""Whether others on this machine may read the file of the token."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path


def exposure(file: str | None) -> str | None:
    """A warning where the mode of the file lets every user read it, else None.

    A pipe or a device (``<(pass dbrag)``) keeps nothing. On Windows the mode does not say who
    may read a file.
    """
    if file is None or os.name == "nt":
        return None
    path = Path(file).expanduser()
    try:
        mode = path.stat().st_mode
    except OSError:  # it was there a moment ago: reading it has told what is wrong
        return None
    if not stat.S_ISREG(mode) or not mode & stat.S_IROTH:
        return None
    return (
        f"warning: every user may read the token in {file!r} (mode {stat.S_IMODE(mode):04o}): "
        f"chmod 600 {shlex.quote(str(path))}"
    )
