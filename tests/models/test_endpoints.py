"""Whose machine an address leads to, and what of it may be told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.models.embed_remote import RemoteEmbedder
from dbrag.models.endpoints import host_of, is_loopback, is_url, without_user
from dbrag.models.remote import RemoteModel


class Model:
    """A pydantic-ai model as far as its address goes."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("[::1]", True),
        ("127.0.0.1.example.org", False),
        ("127.example.org", False),
        ("localhost.example.org", False),
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_only_this_machine_counts_as_near(host: str, here: bool) -> None:
    url = f"http://user:pass@{host}:8080/v1"
    assert is_loopback(url) == here
    assert RemoteEmbedder(f"openai:x@{url}").remote != here
    assert RemoteModel("openai:x", model=Model(url)).remote != here


def test_no_address_is_far() -> None:
    assert not is_loopback(None)
    assert not is_loopback("")
    assert not is_loopback("http://[::1")


@pytest.mark.parametrize(
    "url",
    ["host", "ftp://host", "http://", "http://[::1", "http://h:x/", "http://h:99999", "http://h h"],
)
def test_what_is_no_url(url: str) -> None:
    assert not is_url(url)


@given(st.text(max_size=30))
def test_any_text_may_be_asked_about(text: str) -> None:
    for url in (text, f"http://{text}", f"http://a@{text}"):
        assert isinstance(host_of(url), str)
        assert isinstance(is_url(url), bool)
        assert isinstance(is_loopback(url), bool)
        assert isinstance(without_user(url), str)


def test_user_and_password_are_left_out() -> None:
    assert without_user("http://u:p@h:1/v1?a=b") == "http://h:1/v1?a=b"
    assert without_user("http://h:1/v1") == "http://h:1/v1"
