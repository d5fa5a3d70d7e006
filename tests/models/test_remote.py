from __future__ import annotations

import asyncio
import builtins
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.errors import InvalidReply, ModelError, ModelNotInstalled, PromptTooLong
from dbrag.models.base import ChatModel, Prompt
from dbrag.models.remote import RemoteModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.models.conftest import Web

pydantic_ai = pytest.importorskip("pydantic_ai")

PROMPT = Prompt("Write SQL.", "table a(b)", "How many?")
SCHEMA = {
    "type": "object",
    "properties": {"sql": {"type": "string"}},
    "required": ["sql"],
    "additionalProperties": False,
}
KEY = "sk-test-0123456789abcdef"


# --- against pydantic-ai's own fake -----------------------------------------------------------


def fake(answer: Callable[[list[Any], Any], Any], *, native: bool = False) -> RemoteModel:
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.profiles import ModelProfile

    def function(messages: list[Any], info: Any) -> ModelResponse:
        found = answer(messages, info)
        return found if isinstance(found, ModelResponse) else ModelResponse([TextPart(found)])

    profile = ModelProfile(supports_json_schema_output=native, context_window=1234)
    return RemoteModel("test:function", model=FunctionModel(function, profile=profile))


def test_messages_settings_and_usage() -> None:
    seen: list[tuple[list[Any], Any]] = []

    def answer(messages: list[Any], info: Any) -> str:
        seen.append((messages, info))
        return "select 1"

    model = fake(answer)
    assert isinstance(model, ChatModel)
    assert model.remote
    assert model.context_tokens == 1234
    prompt = Prompt("Write SQL.", "c", "q", turns=(("select x", "no column x"),))
    (reply,) = model.sample(prompt, temperature=0.3, max_tokens=77, stop=["```"], seed=5)
    assert reply.text == "select 1"
    assert reply.completion_tokens > 0
    messages, info = seen[0]
    assert [m.parts[0].content for m in messages] == ["c\n\nq", "select x", "no column x"]
    assert info.instructions == "Write SQL."
    settings = info.model_settings
    assert settings["temperature"] == 0.3
    assert settings["max_tokens"] == 77
    assert settings["seed"] == 5


def test_n_requests_at_once_with_their_own_seeds() -> None:
    seeds: list[int] = []
    barrier = threading.Barrier(3, timeout=5)

    def answer(messages: list[Any], info: Any) -> str:
        seeds.append(info.model_settings["seed"])
        barrier.wait()  # passes only when all three are under way
        return "x"

    replies = fake(answer).sample(PROMPT, 3, temperature=0.8, seed=10)
    assert len(replies) == 3
    assert sorted(seeds) == [10, 11, 12]


def test_greedy_is_asked_once() -> None:
    calls: list[int] = []
    replies = fake(lambda *_: calls.append(1) or "x").sample(PROMPT, 3)
    assert len(calls) == 1
    assert [r.text for r in replies] == ["x", "x", "x"]
    assert [r.completion_tokens > 0 for r in replies] == [True, False, False]


def test_works_inside_a_running_event_loop_and_from_threads() -> None:
    model = fake(lambda *_: "x")

    async def inside() -> str:
        return model.sample(PROMPT)[0].text

    assert asyncio.run(inside()) == "x"
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(model.sample(PROMPT)[0].text))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == ["x"] * 6


def test_stop_is_cut_here_where_the_provider_does_not() -> None:
    assert fake(lambda *_: "select 1; drop").sample(PROMPT, stop=[";"])[0].text == "select 1"


@pytest.mark.parametrize("native", [True, False])
def test_schema_goes_in_natively_or_as_an_instruction(native: bool) -> None:
    seen: list[Any] = []
    model = fake(lambda _, info: seen.append(info) or '{"sql": "s"}', native=native)
    assert model.sample(PROMPT, schema=SCHEMA)[0].text == '{"sql": "s"}'
    request = seen[0].model_request_parameters
    assert (request.output_mode == "native") is native
    assert ("JSON schema" in seen[0].instructions) is not native


def test_json_in_a_fence_is_taken_out() -> None:
    model = fake(lambda *_: '```json\n{"sql": "s"}\n```')
    assert json.loads(model.sample(PROMPT, schema=SCHEMA)[0].text) == {"sql": "s"}


def test_half_a_surrogate_pair_in_a_reply_can_be_sent_again() -> None:
    model = fake(lambda *_: "a\ud800b \ud83e\udd86")
    assert model.sample(PROMPT)[0].text == "a\ufffdb \U0001f986"


def test_reply_against_the_schema_is_asked_for_once_more() -> None:
    answers = ['{"sq": 1}', '{"sql": "s"}']
    requests: list[str] = []

    def answer(messages: list[Any], info: Any) -> str:
        requests.append(messages[-1].parts[0].content)
        return answers[len(requests) - 1]

    (reply,) = fake(answer).sample(PROMPT, schema=SCHEMA)
    assert reply.text == '{"sql": "s"}'
    assert "$ has no 'sql'" in requests[1]


def test_twice_against_the_schema_is_an_error() -> None:
    with pytest.raises(InvalidReply, match=r"did not follow the JSON schema: no JSON"):
        fake(lambda *_: "Sure!").sample(PROMPT, schema=SCHEMA)


def test_closed() -> None:
    model = fake(lambda *_: "x")
    model.close()
    with pytest.raises(ModelError, match="closed"):
        model.sample(PROMPT)


# --- against a compatible endpoint on the loopback --------------------------------------------


@pytest.fixture
def endpoint(web: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    from pydantic_ai import models

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{web.url}/v1")
    with models.override_allow_model_requests(True):
        yield web


def completion(text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
                **more,
            }
        ],
        "usage": {
            "prompt_tokens": 30,
            "completion_tokens": 4,
            "total_tokens": 34,
            "prompt_tokens_details": {"cached_tokens": 20},
        },
    }


def test_compatible_endpoint(endpoint: Web) -> None:
    bodies: list[dict[str, Any]] = []

    def answer(path: str, body: dict[str, Any]) -> tuple[int, Any]:
        assert path == "/v1/chat/completions"
        bodies.append(body)
        return 200, completion("select 1", finish_reason="length")

    endpoint.post = answer
    model = RemoteModel("openai:some-model")
    assert model.name == "openai:some-model"
    assert not model.remote, "this endpoint is on the loopback"
    replies = model.sample(PROMPT, 2, temperature=0.5, max_tokens=9, stop=["```"], seed=7)
    assert [(r.text, r.finish) for r in replies] == [("select 1", "length")] * 2
    assert (replies[0].prompt_tokens, replies[0].cached_tokens) == (30, 20)
    assert replies[0].completion_tokens == 4
    assert sorted(body["seed"] for body in bodies) == [7, 8]
    assert bodies[0]["model"] == "some-model"
    assert bodies[0]["stop"] == ["```"]
    assert [m["role"] for m in bodies[0]["messages"]] == ["system", "user"]
    assert endpoint.requests[0][2]["authorization"] == f"Bearer {KEY}"


def test_schema_reaches_the_endpoint(endpoint: Web) -> None:
    bodies: list[dict[str, Any]] = []
    endpoint.post = lambda _, body: bodies.append(body) or (200, completion('{"sql": "s"}'))
    RemoteModel("openai:gpt-4o").sample(PROMPT, schema=SCHEMA)
    assert bodies[0]["response_format"]["type"] == "json_schema"
    assert bodies[0]["response_format"]["json_schema"]["schema"]["required"] == ["sql"]


def test_an_endpoint_that_refuses_schemas_is_told_in_words(endpoint: Web) -> None:
    bodies: list[dict[str, Any]] = []

    def answer(_: str, body: dict[str, Any]) -> tuple[int, Any]:
        bodies.append(body)
        if "response_format" in body:
            text = "Invalid parameter: 'response_format' of type 'json_schema' is not supported"
            return 400, {"error": {"message": text}}
        return 200, completion('{"sql": "s"}')

    endpoint.post = answer
    model = RemoteModel("openai:gpt-3.5-turbo")
    assert model.sample(PROMPT, schema=SCHEMA)[0].text == '{"sql": "s"}'
    assert "following this JSON schema" in bodies[1]["messages"][0]["content"]
    model.sample(PROMPT, schema=SCHEMA)
    assert ["response_format" in body for body in bodies] == [True, False, False]


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (401, {"error": {"message": f"bad key {KEY}"}}, ModelError, "refused the key"),
        (404, {"error": {"message": "no such model"}}, ModelError, "was not found"),
        (400, {"error": {"message": "bad\nrequest"}}, ModelError, "failed: .*400"),
        (
            400,
            {"error": {"message": "too long", "code": "context_length_exceeded"}},
            PromptTooLong,
            "exceeds the context",
        ),
        (200, {"unexpected": True}, ModelError, "failed"),
    ],
)
def test_errors_are_one_line_without_secrets(
    endpoint: Web, status: int, body: Any, error: type[ModelError], message: str
) -> None:
    endpoint.post = lambda *_: (status, body)
    with pytest.raises(error, match=message) as caught:
        RemoteModel("openai:m").sample(PROMPT)
    text = caught.value.message + caught.value.hint
    assert "\n" not in text
    assert KEY not in text


def test_no_connection(endpoint: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(ModelError, match="cannot reach 'openai:m'"):
        RemoteModel("openai:m").sample(PROMPT)


def test_timeout(endpoint: Web) -> None:
    endpoint.post = lambda *_: time.sleep(1) or (200, completion("late"))
    with pytest.raises(ModelError, match=r"did not answer within 0\.2 s"):
        RemoteModel("openai:m", timeout_s=0.2).sample(PROMPT)


# --- set-up errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "variable"),
    [("openai:gpt-5", "OPENAI_API_KEY"), ("openrouter:a/b", "OPENROUTER_API_KEY")],
)
def test_missing_key_names_the_variable(
    spec: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelNotInstalled, match=f"environment variable {variable},") as caught:
        RemoteModel(spec)
    assert caught.value.hint == f"export {variable}=…"


def test_missing_package_of_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "groq")
    with pytest.raises(ModelNotInstalled) as caught:
        RemoteModel("groq:some-model")
    assert caught.value.hint == "pip install 'pydantic-ai-slim[groq]'"


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "pydantic_ai")
    with pytest.raises(ModelNotInstalled, match="pydantic-ai-slim") as caught:
        RemoteModel("openai:gpt-5")
    assert caught.value.hint == "pip install 'dbrag[remote]'"


def hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    real = builtins.__import__

    def hidden(name: str, *args: Any, **kwargs: Any) -> Any:
        relative = len(args) == 4 and args[3] > 0
        if not relative and (name == package or name.startswith(f"{package}.")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", hidden)


def test_unknown_provider() -> None:
    with pytest.raises(ModelNotInstalled, match="'nosuch"):
        RemoteModel("nosuch:model")


def test_old_provider_names_are_understood() -> None:
    with pytest.raises(ModelNotInstalled) as caught:
        RemoteModel("google-gla:gemini-2.5-flash")
    assert "google" in caught.value.hint.lower()


def test_ollama_needs_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    assert not RemoteModel("ollama:some-model").remote
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://elsewhere.example:11434/v1")
    assert RemoteModel("ollama:some-model").remote
