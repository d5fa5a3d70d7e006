"""What this machine (or the container dbrag runs in) has to give: cores and memory."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_SYS_CPU = Path("/sys/devices/system/cpu")
_MEMINFO = Path("/proc/meminfo")


def usable_cores() -> int:
    """Physical cores this process may run on, at least 1.

    Two hyperthreads of one core share its arithmetic units, so they count once
    (where the machine has more than two logical ones); a container's CPU quota
    is respected.
    """
    try:
        logical = sorted(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        logical = list(range(os.cpu_count() or 1))
    cores = len(logical)
    if cores > 2:
        siblings = [
            _text(_SYS_CPU / f"cpu{cpu}" / "topology" / "thread_siblings_list") for cpu in logical
        ]
        if all(siblings):
            cores = len(set(siblings))
    quota, _, period = (_text(_CGROUP / "cpu.max") or "max 1").partition(" ")
    if quota.isdigit() and period.isdigit() and int(period) > 0:
        cores = min(cores, int(quota) // int(period))
    return max(1, cores)


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping, None where the system does not tell."""
    free: int | None = None
    for line in (_text(_MEMINFO) or "").splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit, used = _text(_CGROUP / "memory.max"), _text(_CGROUP / "memory.current")
    if limit and limit.isdigit() and used and used.isdigit():
        left = int(limit) - int(used) + _reclaimable()
        free = left if free is None else min(free, left)
    return None if free is None else max(0, free)


def _reclaimable() -> int:
    """Page cache that the kernel gives back before a container's limit is hit."""
    for line in (_text(_CGROUP / "memory.stat") or "").splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file" and value.isdigit():
            return int(value)
    return 0


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
