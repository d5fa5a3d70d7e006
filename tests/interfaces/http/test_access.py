"""Who may ask: tokens, hosts, origins, rates; in process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbrag.database import Database
from dbrag.errors import UsageError
from dbrag.interfaces.http.access import Access, Rate, host_name
from dbrag.interfaces.http.options import ServeOptions, is_loopback_host, read_token
from tests.interfaces.http.conftest import TOKEN, Served, in_process

EVERY_GET = ("/sources", "/tables", "/table?table=orders", "/samples?table=orders", "/joins")
EVERY_GET += ("/jobs", "/history", "/learned", "/metrics", "/results/12345678")
BEARER = {"authorization": f"Bearer {TOKEN}"}


def code_of(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


# ---- tokens ---------------------------------------------------------------------------------


@pytest.fixture
def guarded(open_shop: Callable[..., Database]) -> Any:
    with in_process(open_shop(), token=TOKEN) as served:
        yield served


@pytest.mark.parametrize("path", EVERY_GET)
def test_no_token_no_answer(guarded: Served, path: str) -> None:
    response = guarded.get(path)
    assert code_of(response) == (401, "unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"
    assert guarded.get(path, headers=BEARER).status_code in (200, 404)


@pytest.mark.parametrize("path", ["/ask", "/ask/stream", "/search", "/sql", "/feedback"])
def test_no_token_nothing_is_done(guarded: Served, path: str) -> None:
    assert code_of(guarded.post(path, {"question": "x"})) == (401, "unauthorized")
    assert not guarded.service.board._finished


@pytest.mark.parametrize(
    "header",
    [
        "Bearer wrong-token-of-some-length",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer",
        "Bearer ",
        "",
    ],
)
def test_wrong_tokens(guarded: Served, header: str) -> None:
    response = guarded.get("/sources", headers={"authorization": header})
    assert code_of(response) == (401, "unauthorized")
    assert TOKEN not in response.text


def test_a_token_in_the_url_is_none(guarded: Served) -> None:
    for name in ("token", "access_token", "api_key", "authorization"):
        assert code_of(guarded.get(f"/sources?{name}={TOKEN}")) == (401, "unauthorized")


def test_what_needs_no_token_tells_nothing(guarded: Served) -> None:
    for path in ("/health", "/ready", "/openapi.json"):
        assert guarded.get(path).status_code == 200
    assert guarded.get("/openapi.json").json() == guarded.http.app.app.openapi()
    assert "gift cards" not in guarded.get("/openapi.json").text


def test_after_many_wrong_tokens_an_address_waits(guarded: Served) -> None:
    wrong = {"authorization": "Bearer wrong-token-of-some-length"}
    codes = [guarded.get("/sources", headers=wrong).status_code for _ in range(15)]
    assert codes[:10] == [401] * 10
    assert codes[-1] == 429
    late = guarded.get("/sources", headers=BEARER)
    assert code_of(late) == (429, "rate")
    assert int(late.headers["retry-after"]) >= 1
    assert guarded.get("/health").status_code == 200


def test_the_token_of_the_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(str(file), {}) == TOKEN
    assert read_token(str(file), {"DBRAG_API_TOKEN": "another-long-enough-token"}) == TOKEN
    assert read_token(None, {"DBRAG_API_TOKEN": TOKEN}) == TOKEN
    assert read_token(None, {}) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "at least 16"),
        (b"short", "at least 16"),
        (b"two words that are long enough", "one line"),
        (b"a" * 20 + b"\n" + b"b" * 20, "one line"),
        ("ä".encode() * 20, "ASCII"),
        (b"x" * 5000, "4,096"),
    ],
)
def test_files_that_hold_no_token(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=said) as caught:
        read_token(str(file), {})
    assert "words that" not in caught.value.message
    with pytest.raises(UsageError, match="cannot read the token"):
        read_token(str(tmp_path / "none"), {})


def test_an_empty_variable_is_a_mistake_and_not_no_token() -> None:
    with pytest.raises(UsageError, match="DBRAG_API_TOKEN has 0 characters"):
        read_token(None, {"DBRAG_API_TOKEN": ""})


# ---- options --------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", "10.0.0.1"])
def test_beyond_this_machine_a_token_is_needed(host: str) -> None:
    with pytest.raises(UsageError, match="without a token") as caught:
        ServeOptions(host=host)
    assert "DBRAG_API_TOKEN" in caught.value.hint
    assert ServeOptions(host=host, token=TOKEN).is_loopback is False


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
def test_loopback(host: str) -> None:
    assert is_loopback_host(host)
    assert ServeOptions(host=host).token is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": ""},
        {"host": "a b"},
        {"host": "http://x"},
        {"port": 70_000},
        {"token": "short"},
        {"hosts": ("http://x.org",)},
        {"hosts": ("x.org:80",)},
        {"origins": ("x.org",)},
        {"origins": ("*",)},
        {"origins": ("null",)},
        {"origins": ("https://x.org/",)},
        {"workers": 0},
        {"asks": 0},
        {"queue": 0},
        {"timeout_s": 0.0},
        {"timeout_s": float("inf")},
        {"timeout_s": float("nan")},
        {"rate": -1},
        {"history": -1},
    ],
)
def test_options_that_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        ServeOptions(**wrong)
    assert caught.value.message


# ---- hosts and origins ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8321", "localhost"),
        ("localhost.", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[::1]:8321", "::1"),
        ("[::1", None),
        ("[x]", None),
        ("localhost:x", None),
        ("localhost:", None),
        ("a@localhost", "a@localhost"),
        ("", None),
        (":80", None),
    ],
)
def test_names_in_the_host_header(header: str, name: str | None) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8321", "localhost.evil.example", "127.0.0.1.evil.example",
     "8.8.8.8", "a@127.0.0.1", "", "127.0.0.1:x", "0.0.0.0"],
)  # fmt: skip
def test_hosts_that_are_not_ours(served: Served, host: str) -> None:
    for path in ("/api/v1/sources", "/", "/index.html"):
        assert code_of(served.http.get(path, headers={"host": host})) == (421, "host")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8321", "[::1]:8321", "LOCALHOST"])
def test_hosts_that_are_ours(served: Served, host: str) -> None:
    assert served.get("/jobs", headers={"host": host}).status_code == 200


def test_hosts_of_a_server_for_others() -> None:
    access = Access(ServeOptions(host="0.0.0.0", token=TOKEN, hosts=("dbrag.example.org",)))

    def status(host: str) -> int:
        found = access.refusal("GET", "/", {"host": [host]}, "10.0.0.9")
        return found.status if found else 200

    assert [status(h) for h in ("dbrag.example.org", "DBRAG.example.org:80", "192.168.1.4:8321",
                                "[fe80::1]")] == [200] * 4  # fmt: skip
    assert [status(h) for h in ("example.org", "evil.dbrag.example.org", "")] == [421] * 3
    assert access.refusal("GET", "/", {}, "") is not None
    assert access.refusal("GET", "/", {"host": ["localhost", "localhost"]}, "") is not None


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1", "file://",
     "http://127.0.0.1:8321.evil.example", "http://[", "chrome-extension://abc",
     "http://a@127.0.0.1:8321"],
)  # fmt: skip
def test_pages_of_other_origins(served: Served, origin: str) -> None:
    body = {"sql": "SELECT 1"}
    for response in (
        served.post("/sql", body, headers={"origin": origin}),
        served.get("/sources", headers={"origin": origin}),
        served.http.options("/api/v1/sql", headers=_preflight(origin)),
    ):
        assert code_of(response) == (403, "origin")
        assert "access-control-allow-origin" not in response.headers
    assert not served.service.board._finished


def test_a_form_of_another_site_cannot_post(served: Served) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        response = served.http.post(
            "/api/v1/sql", content=b'{"sql": "SELECT 1"}', headers={"content-type": kind}
        )
        assert code_of(response) == (415, "media_type")
    for site in ("cross-site", "same-site"):
        cross = {"sec-fetch-site": site}
        assert code_of(served.get("/sources", headers=cross)) == (403, "origin")
        assert code_of(served.post("/sql", {"sql": "SELECT 1"}, headers=cross)) == (403, "origin")
    assert served.get("/jobs", headers={"sec-fetch-site": "none"}).status_code == 200


def test_the_page_itself_may_ask(served: Served) -> None:
    same = {"origin": "http://127.0.0.1:8321", "sec-fetch-site": "same-origin"}
    assert served.post("/sql", {"sql": "SELECT 1"}, headers=same).status_code == 200


def _preflight(origin: str) -> dict[str, str]:
    return {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }


def test_an_allowed_origin(open_shop: Callable[..., Database]) -> None:
    app = "https://app.example.org"
    with in_process(open_shop(), origins=(app,), token=TOKEN) as served:
        answer = served.http.options("/api/v1/sql", headers=_preflight(app))
        assert answer.status_code == 204
        assert answer.headers["access-control-allow-origin"] == app
        assert "authorization" in answer.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in answer.headers
        done = served.post("/sql", {"sql": "SELECT 1"}, headers={"origin": app, **BEARER})
        assert done.status_code == 200
        assert done.headers["access-control-allow-origin"] == app
        assert done.headers["vary"] == "Origin"
        refused = served.get("/sources", headers={"origin": app})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == app
        other = served.get("/sources", headers={"origin": "https://app.example.org.evil.example"})
        assert other.status_code == 403


# ---- headers and rates ----------------------------------------------------------------------


def test_headers_of_every_response(served: Served) -> None:
    for response in (
        served.get("/sources"),
        served.get("/nothing"),
        served.post("/sql", {"sql": "DROP TABLE orders"}),
        served.get("/sources", headers={"host": "evil.example"}),
        served.http.get("/"),
    ):
        headers = response.headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "server" not in headers
    assert served.get("/sources").headers["cache-control"] == "no-store"


def test_rate_refills_and_forgets_old_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    rate = Rate(60, clock=lambda: now[0])
    assert [rate.wait_s("a") for _ in range(10)] == [0.0] * 10
    assert rate.wait_s("a") == pytest.approx(1.0)
    assert rate.empty("a")
    assert rate.wait_s("b") == 0.0
    now[0] = 2.0
    assert not rate.empty("a")
    assert [rate.wait_s("a") > 0 for _ in range(3)] == [False, False, True]
    monkeypatch.setattr("dbrag.interfaces.http.access.MOST_ADDRESSES", 3)
    for name in "cdefg":
        rate.wait_s(name)
    assert len(rate._buckets) == 3
    assert Rate(0).wait_s("a") == 0.0


def test_an_address_that_asks_too_often(open_shop: Callable[..., Database]) -> None:
    with in_process(open_shop(), rate=60) as served:
        codes = [served.get("/jobs").status_code for _ in range(15)]
        assert codes[:10] == [200] * 10
        assert 429 in codes
        late = served.get("/jobs")
        assert code_of(late) == (429, "rate")
        assert 1 <= int(late.headers["retry-after"]) <= 3
        assert served.get("/health").status_code == 200


# ---- what is logged -------------------------------------------------------------------------


def test_the_log_has_no_question_value_or_token(
    open_shop: Callable[..., Database], log: Any
) -> None:
    with in_process(open_shop(), token=TOKEN) as served:
        served.get(f"/sources?token={TOKEN}")
        served.get("/sources", headers={"authorization": "Bearer not-the-right-secret"})
        served.post("/sql", {"sql": "SELECT 'secret value' AS s"}, headers=BEARER)
        served.post("/ask", {"question": "How secret is it?"}, headers=BEARER)
        served.get("/secret-path", headers=BEARER)
    text = log.getvalue()
    assert "secret" not in text
    assert TOKEN not in text
    lines = [json.loads(line) for line in text.splitlines()]
    requests = [line for line in lines if line["event"] == "request"]
    assert [line["status"] for line in requests][:3] == [401, 401, 200]
    asked = next(line for line in requests if line["route"] == "/api/v1/ask")
    assert asked["method"] == "POST"
    assert len(asked["job"]) >= 16
    assert asked["ms"] > 0


def test_questions_in_the_log_where_wanted(open_shop: Callable[..., Database], log: Any) -> None:
    with in_process(open_shop(), log_questions=True) as served:
        served.post("/ask", {"question": "How many\n{} customers?"})
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert "How many\n{} customers?" in [line.get("question") for line in lines]
