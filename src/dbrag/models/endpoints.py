"""Addresses of model servers: whether they are on this machine, what may be told of them."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

OPENAI_URL = "https://api.openai.com/v1"
OLLAMA_URL = "http://localhost:11434/v1"
PROVIDERS = ("openai", "ollama")
"""Providers of text encoders."""


def host_of(url: str | None) -> str:
    """The host of a URL in lower case; "" where it has none or is no URL."""
    try:
        return urlsplit(url or "").hostname or ""
    except ValueError:  # "http://[::1"
        return ""


def is_url(url: str) -> bool:
    """Whether it is a URL that HTTP requests can go to."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # reading it checks it
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not set(url) & set(" \t")


def is_loopback(url: str | None) -> bool:
    """Whether a URL leads to this machine; names other than ``localhost`` are not looked up."""
    host = host_of(url)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, "127.0.0.1.example.org" too
        return host == "localhost"


def spec_without_user(spec: str) -> str:
    """``provider:model@url`` without user and password; other names as they are."""
    named, at, url = spec.partition("@")
    return named + at + without_user(url)


def without_user(url: str) -> str:
    """A URL without user and password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
