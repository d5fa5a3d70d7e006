"""One file over HTTP, taken up again where a connection broke."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import httpx

from dbrag.errors import WeightsError
from dbrag.models.weights import PullProgress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0
ATTEMPTS = 5
RETRY_WAIT_S = 1.0
REPORT_EVERY_S = 0.2


@dataclass
class Meter:
    """Bytes so far of one download, told to the caller a few times a second."""

    name: str
    report: Callable[[PullProgress], None]
    place: str = ""
    done: int = 0
    total: int = 0
    _began: float = field(default_factory=time.monotonic)
    _fetched: int = 0
    _told: float = 0.0

    def start(self, place: str, done: int, total: int) -> None:
        """A place begins to send; ``done`` of ``total`` bytes are there already."""
        self.place, self.done, self.total = place, done, total
        self._began, self._fetched, self._told = time.monotonic(), 0, 0.0
        self.tell("download")

    def add(self, count: int) -> None:
        """``count`` more bytes came."""
        self.done += count
        self._fetched += count
        now = time.monotonic()
        if now - self._told >= REPORT_EVERY_S:
            self._told = now
            self.tell("download")

    def lost(self, count: int) -> None:
        """``count`` bytes of an earlier run have to be fetched again."""
        self.done -= count

    def note(self, text: str) -> None:
        """A line for the user."""
        self.report(PullProgress(self.name, self.place, "connect", note=text))

    def tell(self, stage: Literal["download", "verify"]) -> None:
        """Report now."""
        elapsed = time.monotonic() - self._began
        left = (self.total - self.done) * elapsed / self._fetched if self._fetched else None
        self.report(PullProgress(self.name, self.place, stage, self.done, self.total, left))


def open_client() -> httpx.Client:
    """Proxies and SSL_CERT_FILE come from the environment (httpx's ``trust_env``)."""
    return httpx.Client(
        follow_redirects=True,
        timeout=httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
        headers={"User-Agent": "dbrag"},
    )


def download(
    client: httpx.Client,
    url: str,
    part: Path,
    size: int | None,
    meter: Meter,
    auth: tuple[str, str] | None = None,
) -> None:
    """Complete ``part``, which may hold the first bytes already.

    Broken connections are taken up again; ``ATTEMPTS`` in a row that bring no byte
    are an error, and so is one before the first byte: another place may answer.

    Raises:
        httpx.HTTPError: the place does not answer or keeps breaking off.
        WeightsError: it sends more than ``size`` bytes.
    """
    failures, answered, restarts = 0, False, 0
    while size is None or size_of(part) != size:
        before = size_of(part)
        if size is not None and before > size:
            meter.lost(before)
            part.unlink()
            before = 0
        problem: httpx.HTTPError
        try:
            whole = _download_once(client, url, part, before, size, meter, auth)
            if whole and size is None:
                return
            problem = httpx.RemoteProtocolError(f"broke off at {size_of(part):,} bytes")
            restarts += not whole
        except (httpx.TransportError, httpx.HTTPStatusError) as error:
            if isinstance(error, httpx.HTTPStatusError) and error.response.status_code < 500:
                raise
            problem = error
        answered = answered or size_of(part) > before
        failures = 0 if size_of(part) > before else failures + 1
        if size is not None and size_of(part) == size:
            return
        # beginning again and again: what it has is not what we want
        if restarts > 1 or failures >= (ATTEMPTS if answered else 1):
            raise problem
        time.sleep(RETRY_WAIT_S)


def _download_once(
    client: httpx.Client,
    url: str,
    part: Path,
    start: int,
    size: int | None,
    meter: Meter,
    auth: tuple[str, str] | None,
) -> bool:
    """One request from byte ``start`` on; False when nothing usable lay at ``part``."""
    # identity: a transport compression would make the offsets of Range meaningless
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with client.stream("GET", url, headers=headers, auth=auth) as response:
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            meter.lost(start)
            part.unlink(missing_ok=True)
            return False
        response.raise_for_status()
        resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
        total = _total(response, resumed)
        if size is not None and total is not None and total != size:
            part.unlink(missing_ok=True)
            raise WeightsError(f"it has {total:,} bytes, not the expected {size:,}")
        if not resumed:
            meter.lost(start)
        written = start if resumed else 0
        with part.open("ab" if resumed else "wb") as output:
            # no chunk size: httpx would hold back, and on a broken connection lose, a part of it
            for chunk in response.iter_bytes():
                written += len(chunk)
                if size is not None and written > size:
                    raise WeightsError(f"more than the expected {size:,} bytes came")
                output.write(chunk)
                meter.add(len(chunk))
    return True


def _total(response: httpx.Response, resumed: bool) -> int | None:
    """Size of the whole file, where the server tells it."""
    text = response.headers.get("Content-Length", "")
    if resumed:
        text = response.headers.get("Content-Range", "").rpartition("/")[2]
    return int(text) if text.isdigit() else None


def reason(error: Exception) -> str:
    """One line without secrets (URLs may hold credentials or signatures)."""
    match error:
        case httpx.ConnectTimeout():
            return f"no connection within {CONNECT_TIMEOUT_S:.0f} s"
        case httpx.TimeoutException():
            return f"no data for {READ_TIMEOUT_S:.0f} s"
        case httpx.HTTPStatusError():
            return f"HTTP {error.response.status_code}"
        case httpx.ConnectError():
            return f"cannot connect ({error})"
        case WeightsError():
            return error.message
        case _:
            return str(error).splitlines()[0] if str(error) else type(error).__name__


def size_of(path: Path) -> int:
    """Bytes of a file, 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
