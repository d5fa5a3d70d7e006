"""Who may ask, and how much: looked at before anything of a request is used.

* **Host** has to be a name of this server: a page whose own name was pointed at this
  machine (DNS rebinding) is refused.
* **Origin**, which browsers send with requests of pages, has to be this server or one that
  the user allowed; where there is no Origin, ``Sec-Fetch-Site`` may not name another site, nor
  another port of this one.
* **Token**, if there is one, compared in constant time; never taken from the URL.
* **Rate** of one address, stricter for wrong tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dbrag.interfaces.http.options import LOOPBACK_NAMES, ServeOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

API = "/api/"
OPEN = frozenset({"/api/v1/health", "/api/v1/ready"})
"""Answered to anybody who can connect: they tell nothing, and probes know no token."""
PUBLIC = OPEN | {"/api/v1/openapi.json"}
WRONG_TOKENS = 10
"""Wrong tokens a minute of one address before it has to wait."""
MOST_ADDRESSES = 10_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not let in."""

    status: int
    code: str
    message: str
    hint: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class Rate:
    """A token bucket for each address: ``a_minute`` on average, a sixth of it at once.

    Args:
        a_minute: requests; 0: no limit.
        clock: seconds.
    """

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = a_minute / 60
        self._burst = max(10.0, a_minute / 6)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, address: str, cost: float = 1.0) -> float:
        """0 when the request may go on, which is then counted; else seconds to wait."""
        if not self._per_s:
            return 0.0
        now = self._clock()
        left, at = self._buckets.pop(address, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_s)
        allowed = left >= cost or cost == 0
        self._buckets[address] = (left - cost if allowed else left, now)
        while len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (cost - left) / self._per_s

    def empty(self, address: str) -> bool:
        """Whether nothing is left for an address; counts nothing."""
        left, at = self._buckets.get(address, (self._burst, 0.0))
        return bool(self._per_s) and left + (self._clock() - at) * self._per_s < 1.0


class Access:
    """The rules of one server.

    Args:
        options: its address, names, origins, token and rate.
    """

    def __init__(self, options: ServeOptions) -> None:
        self._names = {name.casefold() for name in (*options.hosts, *LOOPBACK_NAMES)}
        self._names.add(options.host.casefold())
        self._any_address = not options.is_loopback
        self._origins = {origin.casefold() for origin in options.origins}
        self._digest = _digest(options.token) if options.token is not None else None
        self._rate = Rate(options.rate)
        self._wrong = Rate(WRONG_TOKENS)

    def refusal(
        self, method: str, path: str, headers: Mapping[str, list[str]], address: str
    ) -> Refusal | None:
        """Why the request is refused; None lets it in.

        Args:
            headers: names in lower case → all values.
            address: of the client.
        """
        if path in OPEN:
            return None
        if not self._is_ours(headers.get("host", [])):
            return Refusal(
                421, "host", "the server is not known under this Host", "--allow-host NAME"
            )
        origin = headers.get("origin", [])
        if origin and not self._may(origin, headers["host"][0]):
            return Refusal(
                403, "origin", "this page may not use the API", "--allow-origin ORIGIN allows it"
            )
        if not path.startswith(API):
            return None
        if not origin and headers.get("sec-fetch-site", [""])[0] in ("cross-site", "same-site"):
            return Refusal(
                403, "origin", "pages of other sites may not use the API", "--allow-origin ORIGIN"
            )
        if wait := self._rate.wait_s(address):
            return _too_many("too many requests", wait)
        preflight = method == "OPTIONS" and self.cors(headers)
        if self._digest is None or path in PUBLIC or preflight:
            return None  # browsers ask first, without a token, whether they may send it
        if self._wrong.empty(address):
            return _too_many("too many wrong tokens", 60 / WRONG_TOKENS)
        return self._without_token(headers.get("authorization", []), address)

    def cors(self, headers: Mapping[str, list[str]]) -> dict[str, str]:
        """The headers that let an allowed page of another origin read the response."""
        origin = (headers.get("origin") or [""])[0]
        if origin.casefold() not in self._origins:
            return {}
        return {
            "access-control-allow-origin": origin,
            "access-control-allow-methods": "GET, POST, DELETE",
            "access-control-allow-headers": "authorization, content-type",
            "access-control-expose-headers": "retry-after, x-request-id, content-disposition",
            "access-control-max-age": "600",
            "vary": "Origin",
        }

    def _without_token(self, given: list[str], address: str) -> Refusal | None:
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        right = hmac.compare_digest(_digest(token.strip()), self._digest or b"")
        if right and scheme.casefold() == "bearer":
            return None
        if given:
            self._wrong.wait_s(address)
        return Refusal(
            401,
            "unauthorized",
            "the token is wrong" if given else "a token is needed",
            "send the header Authorization: Bearer TOKEN",
            {"www-authenticate": "Bearer"},
        )

    def _is_ours(self, hosts: list[str]) -> bool:
        name = host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None:
            return False
        # A name can be pointed anywhere; what was asked for by address is that address.
        return name in self._names or (self._any_address and _is_address(name))

    def _may(self, origins: list[str], host: str) -> bool:
        if len(origins) != 1:
            return False
        origin = origins[0].casefold()
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        same = parts.scheme in ("http", "https") and parts.netloc == host.casefold()
        return same or origin in self._origins


def host_name(host: str) -> str | None:
    """The name in a Host header, in lower case, without port and brackets; None if it is none."""
    text = host.strip().casefold()
    if text.startswith("["):
        name, bracket, port = text[1:].partition("]")
        if not bracket or not (port == "" or (port[0] == ":" and _is_port(port[1:]))):
            return None
        return name if _is_address(name) else None
    name, colon, port = text.partition(":")
    if colon and not _is_port(port):
        return None
    return name.removesuffix(".") or None


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _digest(token: str) -> bytes:
    # Of one length, whatever is sent: the comparison tells nothing of the token's.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _too_many(what: str, wait_s: float) -> Refusal:
    seconds = max(1, round(wait_s + 0.5))
    return Refusal(
        429, "rate", f"{what} from this address", f"try again in {seconds} s",
        {"retry-after": str(seconds)},
    )  # fmt: skip
