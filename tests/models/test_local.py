from __future__ import annotations

import _thread
import os
import sys
import threading
import time
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.errors import ModelError, ModelNotInstalled, PromptTooLong, WeightsError
from dbrag.models import local
from dbrag.models.base import ChatModel, Prompt
from dbrag.models.local import LlamaModel
from tests.models.test_gguf import META, gguf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dbrag.settings import Settings

PROMPT = Prompt("Write SQL.", "table a(b)", "How many?")
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


# --- a fake of the library --------------------------------------------------------------------


def token(index: int, text: str, logprob: float = -0.5) -> dict[str, Any]:
    content = [{"token": text, "logprob": logprob}]
    delta = {"content": text}
    return {"choices": [{"index": index, "delta": delta, "logprobs": {"content": content}}]}


def end(index: int, tokens: int, finish: str = "stop", cached: int = 7) -> list[dict[str, Any]]:
    usage = {"prompt_tokens": 12, "completion_tokens": tokens}
    usage |= {"prompt_tokens_details": {"cached_tokens": cached}}  # type: ignore[dict-item]
    return [
        {"choices": [{"index": index, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": usage},
    ]


class Engine:
    """What the fake ``xllamacpp.Server`` does: ``answer(request)`` gives the chunks."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.parameters: list[Any] = []
        self.stopped = 0
        self.refusal: Exception | None = None
        self.answer: Callable[[dict[str, Any]], Iterator[dict[str, Any]]] = self.plain

    def plain(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Choices interleaved, the last one first, as llama.cpp sends them."""
        for word in ("select", " 1"):
            for i in reversed(range(request["n"])):
                yield token(i, word if i == 0 else f"{word}{i}", -0.5 - i)
        for i in reversed(range(request["n"])):
            yield from end(i, 2 + i)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()

    class Server:
        listening_address = "http://127.0.0.1:9"

        def __init__(self, parameters: Any) -> None:
            engine.parameters.append(parameters)
            if engine.refusal:
                raise engine.refusal

        def __del__(self) -> None:
            engine.stopped += 1

        def handle_chat_completions(self, request: dict[str, Any], callback: Any) -> None:
            engine.requests.append(request)
            for chunk in engine.answer(request):
                if callback(chunk):
                    return

    class Parameters(SimpleNamespace):
        def __init__(self) -> None:
            super().__init__(
                model=SimpleNamespace(),
                cpuparams=SimpleNamespace(),
                cpuparams_batch=SimpleNamespace(),
            )

    module = ModuleType("xllamacpp")
    module.__dict__.update(
        Server=Server,
        CommonParams=Parameters,
        common_reasoning_format=lambda value: value,
        json_schema_to_grammar=lambda text: f"grammar of {text}",
    )
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    return engine


@pytest.fixture
def model(engine: Engine, tmp_path: Path) -> Iterator[LlamaModel]:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf())
    model = LlamaModel(path, name="local:m", threads=1)
    yield model
    model.close()


def test_the_time_to_the_first_token_is_told(model: LlamaModel, engine: Engine) -> None:
    def slow(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}
        time.sleep(0.02)
        yield token(0, "select")
        time.sleep(0.2)
        yield token(0, " 1")
        yield from end(0, 2)

    engine.answer = slow
    (reply,) = model.sample(PROMPT)
    assert reply.first_token_s is not None
    assert 0.02 <= reply.first_token_s < 0.2
    engine.answer = lambda _: iter(end(0, 0))
    (silent,) = model.sample(PROMPT)
    assert silent.first_token_s is None  # no token came


def test_one_request_for_all_choices(model: LlamaModel, engine: Engine) -> None:
    assert isinstance(model, ChatModel)
    replies = model.sample(PROMPT, 3, temperature=0.7, seed=5, max_tokens=50, stop=[";"])
    assert [r.text for r in replies] == ["select 1", "select1 11", "select2 12"]
    assert [r.completion_tokens for r in replies] == [2, 3, 4]
    assert [r.logprob for r in replies] == [-0.5, -1.5, -2.5]
    assert [r.prompt_tokens for r in replies] == [12, 0, 0]
    assert [r.cached_tokens for r in replies] == [7, 0, 0]
    (request,) = engine.requests
    assert request["messages"] == PROMPT.messages()
    assert (request["n"], request["seed"], request["stop"]) == (3, 5, [";"])


def test_greedy_is_computed_once(model: LlamaModel, engine: Engine) -> None:
    replies = model.sample(PROMPT, 3)
    assert [r.text for r in replies] == ["select 1"] * 3
    assert [r.completion_tokens for r in replies] == [2, 0, 0]
    assert [request["n"] for request in engine.requests] == [1]


def test_more_choices_than_slots_go_on_with_the_seed(model: LlamaModel, engine: Engine) -> None:
    assert len(model.sample(PROMPT, 6, temperature=1.0, seed=10)) == 6
    assert [(r["n"], r["seed"]) for r in engine.requests] == [(4, 10), (2, 14)]


def test_choices_that_would_not_fit_together_go_one_by_one(
    model: LlamaModel, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "_post", lambda *_: {"input_tokens": 1500})
    replies = model.sample(Prompt("", "x" * 1500, ""), 3, temperature=1.0, max_tokens=400)
    assert [(r["n"], r["seed"]) for r in engine.requests] == [(1, 0), (1, 1), (1, 2)]
    assert [r.prompt_tokens for r in replies] == [12, 0, 0]


def test_loaded_once_silent_guarded_and_with_its_whole_context(
    model: LlamaModel, engine: Engine
) -> None:
    threads = [threading.Thread(target=model.sample, args=(PROMPT,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (parameters,) = engine.parameters
    assert parameters.verbosity == 0
    assert len(parameters.api_keys[0]) >= 32
    assert parameters.kv_unified
    assert not parameters.ctx_shift
    assert parameters.n_ctx == model.context_tokens == META["llama.context_length"]
    assert parameters.n_parallel >= 4
    assert parameters.cpuparams.n_threads == parameters.cpuparams_batch.n_threads == 1
    assert len(engine.requests) == 4


def test_too_long_is_counted_never_cut(
    model: LlamaModel, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "_post", lambda *_: {"input_tokens": 1700})
    with pytest.raises(PromptTooLong, match=r"1,700 tokens .* up to 400 .* 2,048 tokens") as caught:
        model.sample(Prompt("", "x" * 3000, "q"))
    assert "--tables" in caught.value.hint
    assert engine.requests == []


def test_too_long_by_the_engines_own_count(model: LlamaModel, engine: Engine) -> None:
    error = {"type": "exceed_context_size_error", "n_prompt_tokens": 3030, "n_ctx": 2048}
    engine.answer = lambda _: iter([{"error": error}])
    with pytest.raises(PromptTooLong, match=r"3,030 tokens exceeds the 2,048"):
        model.sample(PROMPT)


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ({"error": {"code": 500, "message": "out of\nmemory"}}, "failed: out of memory"),
        ({"error": "odd"}, "failed: odd"),
        ("not even a dict", "failed: not even a dict"),
        ({"choices": [{"index": 9, "delta": {}}]}, "failed: "),
    ],
)
def test_errors_come_as_model_errors(
    model: LlamaModel, engine: Engine, chunk: Any, message: str
) -> None:
    engine.answer = lambda _: iter([chunk])
    with pytest.raises(ModelError, match=message):
        model.sample(PROMPT)
    engine.answer = engine.plain
    assert model.sample(PROMPT)[0].text == "select 1", "the model goes on"


def test_an_exception_of_the_library(model: LlamaModel, engine: Engine) -> None:
    def answer(_: Any) -> Iterator[dict[str, Any]]:
        raise RuntimeError("parse error")
        yield {}

    engine.answer = answer
    with pytest.raises(ModelError, match="parse error"):
        model.sample(PROMPT)


def test_a_stream_that_ends_early_is_no_reply(model: LlamaModel, engine: Engine) -> None:
    engine.answer = lambda _: iter([token(0, "sel")])
    with pytest.raises(ModelError, match="without finishing"):
        model.sample(PROMPT)


def test_cut_reply_says_so(model: LlamaModel, engine: Engine) -> None:
    engine.answer = lambda _: iter([token(0, "sel"), *end(0, 1, "length")])
    assert model.sample(PROMPT, max_tokens=1)[0].finish == "length"


def test_schema_is_a_grammar_and_the_reply_is_checked(model: LlamaModel, engine: Engine) -> None:
    engine.answer = lambda _: iter([token(0, '{"a": 1}'), *end(0, 1)])
    assert model.sample(PROMPT, schema=SCHEMA)[0].text == '{"a": 1}'
    assert engine.requests[0]["grammar"].startswith("grammar of ")
    engine.answer = lambda _: iter([token(0, "free text"), *end(0, 1)])
    with pytest.raises(ModelError, match="did not follow the JSON schema"):
        model.sample(PROMPT, schema=SCHEMA)


def test_ctrl_c_ends_the_request_at_its_next_token(model: LlamaModel, engine: Engine) -> None:
    given: list[int] = []

    def endless(_: Any) -> Iterator[dict[str, Any]]:
        while True:
            given.append(1)
            if len(given) == 3:
                _thread.interrupt_main()
            time.sleep(0.01)
            yield token(0, "x")

    engine.answer = endless
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.sample(PROMPT)
    assert time.monotonic() - began < 3
    count = len(given)
    time.sleep(0.1)
    assert len(given) == count, "nothing runs on"
    engine.answer = engine.plain
    assert model.sample(PROMPT)[0].text == "select 1"


def test_close_stops_what_runs_and_frees_the_engine(model: LlamaModel, engine: Engine) -> None:
    def endless(_: Any) -> Iterator[dict[str, Any]]:
        while True:
            time.sleep(0.01)
            yield token(0, "x")

    engine.answer = endless
    failures: list[str] = []

    def ask() -> None:
        try:
            model.sample(PROMPT)
        except ModelError as error:
            failures.append(error.message)

    thread = threading.Thread(target=ask)
    thread.start()
    while not engine.requests:
        time.sleep(0.01)
    model.close()
    thread.join(5)
    assert failures == ["'local:m' was closed while it answered"]
    assert engine.stopped == 1
    with pytest.raises(ModelError, match="is closed"):
        model.sample(PROMPT)


def test_close_waits_for_an_interrupted_batch(
    model: LlamaModel, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "INTERRUPT_WAIT_S", 0.01)
    batch = threading.Event()

    def slow(_: Any) -> Iterator[dict[str, Any]]:
        _thread.interrupt_main()
        batch.wait(5)  # no callback meanwhile: a prompt is evaluated
        yield token(0, "x")

    engine.answer = slow
    with pytest.raises(KeyboardInterrupt):
        model.sample(PROMPT)
    threading.Timer(0.3, batch.set).start()
    model.close()
    assert batch.is_set(), "the engine may not go while it works"
    assert engine.stopped == 1


def test_too_little_memory_names_both_numbers_and_alternatives(
    model: LlamaModel, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "available_memory", lambda: 50_000_000)
    with pytest.raises(ModelError, match=r"needs 0\.2 GB of memory, 0\.1 GB are free") as caught:
        model.load()
    assert "local:/path/to/model.gguf" in caught.value.hint
    assert "openai:" in caught.value.hint
    assert engine.parameters == []


def test_file_the_library_refuses(model: LlamaModel, engine: Engine) -> None:
    engine.refusal = RuntimeError("Failed to init server")
    with pytest.raises(ModelError, match=r"cannot load .*m\.gguf"):
        model.load()


def test_damaged_file_is_told_before_it_is_loaded(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(gguf()[:500])
    with pytest.raises(WeightsError, match="cut short"):
        LlamaModel(path, name="local:m").load()
    assert engine.parameters == []


def test_missing_extra_and_missing_system_library(
    model: LlamaModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelNotInstalled) as caught:
        model.load()
    assert "pip install 'dbrag[local]'" in caught.value.hint


def test_waiting_threads_sleep_and_the_environment_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    with local._patient_openmp():
        assert os.environ["GOMP_SPINCOUNT"] == "1000"
    assert "GOMP_SPINCOUNT" not in os.environ
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    with local._patient_openmp():
        assert "GOMP_SPINCOUNT" not in os.environ, "the user's choice stays"


# --- the real model ---------------------------------------------------------------------------


@pytest.mark.model
def test_the_real_model(model_settings: Settings) -> None:
    from dbrag.models.load import load_chat_model

    model = load_chat_model(model_settings.model, model_settings)
    assert load_chat_model(model_settings.model, model_settings) is model
    prompt = Prompt("You write SQLite SQL.", "table city(id, name)", "Count the cities. SQL only.")
    (first,) = model.sample(prompt, max_tokens=24)
    assert "count" in first.text.lower()
    assert first.prompt_tokens > 20
    assert first.logprob is not None
    assert first.logprob <= 0
    (again,) = model.sample(prompt, max_tokens=24)
    assert again.cached_tokens >= first.prompt_tokens - 1
    (reply,) = model.sample(prompt, max_tokens=30, schema=SCHEMA)
    assert reply.text.lstrip().startswith("{")
    with pytest.raises(PromptTooLong, match=r"9,\d\d\d tokens"):
        model.sample(Prompt("", "word " * 9000, ""))
