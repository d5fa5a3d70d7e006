"""A chat model in this process: llama.cpp through ``xllamacpp``.

Facts the code rests on (xllamacpp 2026.10, measured on two cores):

* ``n`` choices of one request evaluate the prompt once; choice ``i`` is seeded with ``seed + i``.
* An evaluated prefix is reused by the next prompt that begins the same way
  (``Reply.cached_tokens``). Greedy text may differ in rare near-ties between a cold and a
  warm cache, because batches of another shape round differently.
* The threads of llama.cpp meet at a barrier hundreds of times per token. By default they
  spin there for milliseconds; where another program runs on the same cores that costs a
  factor of ten and more (0.2 to 3.4 tokens/s against 5.2). They sleep sooner here, which
  costs about a tenth where nothing else runs (``OMP_WAIT_POLICY=active`` takes it back).
* Errors come back as ``{"error": …}``; a flat JSON schema, or one together with
  ``force_pure_content_parser``, is silently ignored: schemas go in as grammars.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import threading
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbrag.cancel import check
from dbrag.errors import InvalidReply, ModelError, ModelNotInstalled, PromptTooLong, WeightsError
from dbrag.models.base import Prompt, Reply
from dbrag.models.gguf import GGUFHeader, read_header
from dbrag.models.json_schema import problem_of
from dbrag.models.llama_stream import AGAIN, LlamaStream, failure
from dbrag.models.machine import available_memory, usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

CONTEXT_TOKENS = 8192
PARALLEL = 4
BATCH_TOKENS = 64
"""Tokens of a prompt evaluated between two looks at whether the user interrupted."""
PROMPT_CACHE_MIB = 512
"""Memory for evaluated prompts that gave up their place to another prompt."""
OVERHEAD_BYTES = 150_000_000
"""Memory beside weights and cache: compute buffers and vocabulary."""
BARRIER_SPINS = 1000
"""Turns a thread waits awake for the others: some microseconds."""
INTERRUPT_WAIT_S = 1.0
EXIT_WAIT_S = 30.0
_SPINS = "GOMP_SPINCOUNT"
_TEMPLATE_TOKENS = 64
_MESSAGE_TOKENS = 16

_live: weakref.WeakSet[LlamaModel] = weakref.WeakSet()


class LlamaModel:
    """A GGUF model, loaded at the first use; calls of several threads wait for each other.

    One request runs at a time: which others share a batch would change the rounding, and
    so the text, and they would have to share the context. Ask for ``n`` choices instead:
    four decode 1.6 times as fast together as one after the other.

    Args:
        path: a verified GGUF file.
        name: what ``name`` gives back, ``local:…``.
        threads: threads for the arithmetic; None means one for each usable core.
        context_tokens: upper limit, lowered to what the model was trained for.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        threads: int | None = None,
        context_tokens: int = CONTEXT_TOKENS,
    ) -> None:
        self._path = path
        self._name = name
        self._threads = threads or usable_cores()
        self._wanted_context = context_tokens
        self._header: GGUFHeader | None = None
        self._server: Any = None
        self._address = ""
        self._key = secrets.token_hex(16)
        self._closed = False
        self._lock = threading.RLock()
        self._streams: set[LlamaStream] = set()
        _live.add(self)

    @property
    def name(self) -> str:
        """``local:…``."""
        return self._name

    @property
    def remote(self) -> bool:
        """False: prompts stay in this process."""
        return False

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    @property
    def threads(self) -> int:
        """Threads that evaluate."""
        return self._threads

    @property
    def context_tokens(self) -> int:
        """Tokens that prompt and completion may take together."""
        trained = self._read_header().context_tokens
        return min(self._wanted_context, trained) if trained else self._wanted_context

    def load(self) -> None:
        """Load the model now instead of at the first use.

        Raises:
            ModelNotInstalled: the extra is missing.
            WeightsError: the file is damaged.
            ModelError: too little memory, closed, or llama.cpp refuses the file.
        """
        with self._lock:
            if self._closed:
                raise ModelError(f"{self._name!r} is closed", "make a new one")
            if self._server is None:
                xllamacpp = _import_xllamacpp()
                self._check_memory()
                try:
                    self._server = xllamacpp.Server(self._parameters(xllamacpp))
                except (RuntimeError, ValueError, MemoryError) as error:
                    raise ModelError(
                        f"llama.cpp cannot load {str(self._path)!r}: {error}",
                        "the file may be damaged, or of a kind this version does not know",
                    ) from error
                self._address = str(self._server.listening_address).partition("//")[2]

    def sample(
        self,
        prompt: Prompt,
        n: int = 1,
        *,
        temperature: float = 0.0,
        max_tokens: int = 400,
        schema: Mapping[str, Any] | None = None,
        stop: Sequence[str] = (),
        seed: int = 0,
    ) -> list[Reply]:
        """``n`` completions; the prompt is evaluated once for all of them.

        At temperature 0 one completion is computed and given ``n`` times (its
        tokens are charged once).

        Raises:
            PromptTooLong: prompt and ``max_tokens`` exceed ``context_tokens``; nothing is cut.
            ModelError: llama.cpp fails.
            InvalidReply: it does not follow ``schema``.
        """
        with self._lock:
            self.load()
            messages = prompt.messages()
            tokens = self._fitting_tokens(messages, max_tokens)
            request: dict[str, Any] = {
                "messages": messages,
                "max_tokens": max_tokens,
                "temperature": temperature,
                "top_k": 40,
                "top_p": 0.95,
                "min_p": 0.05,
                "stop": list(stop),
                "cache_prompt": True,
                "logprobs": True,
                "top_logprobs": 1,
                "stream": True,
                "return_progress": True,
                "stream_options": {"include_usage": True},
            }
            if schema is not None:
                request["grammar"] = self._grammar(schema)
            # choices of one request share the prompt's cells, each needs its own for the reply
            room = max(1, (self.context_tokens - tokens) // max_tokens)
            distinct = n if temperature > 0 else 1
            replies: list[Reply] = []
            while len(replies) < distinct:
                count = min(distinct - len(replies), PARALLEL, room)
                part = {**request, "n": count, "seed": seed + len(replies)}
                replies += self._run(part, count, charge_prompt=not replies)
        if schema is not None:
            self._check_json(replies, schema)
        again = replace(replies[0], prompt_tokens=0, cached_tokens=0, completion_tokens=0)
        return replies + [again] * (n - distinct)

    def token_count(self, text: str) -> int:
        """Tokens of a plain text (a few milliseconds; loads the model)."""
        self.load()
        return len(self._post("/tokenize", {"content": text})["tokens"])

    def prompt_tokens(self, prompt: Prompt) -> int:
        """Tokens of a prompt with the chat template around it (loads the model)."""
        self.load()
        return self._count(prompt.messages())

    def close(self) -> None:
        """Stop what runs and free the memory."""
        self._closed = True
        self._stop_streams(EXIT_WAIT_S)
        with self._lock:
            self._server = None

    # --- loading --------------------------------------------------------------------------

    def _read_header(self) -> GGUFHeader:
        if self._header is None:
            try:
                self._header = read_header(self._path)
            except OSError as error:
                raise WeightsError(
                    f"cannot read {str(self._path)!r}: {error.strerror or error}",
                    "check its permissions",
                ) from error
        return self._header

    @property
    def memory_bytes(self) -> int:
        """What it takes when loaded: weights, cache of the whole context, buffers."""
        cache = self.context_tokens * self._read_header().cache_bytes_per_token
        return self._path.stat().st_size + cache + OVERHEAD_BYTES

    def _check_memory(self) -> None:
        needed = self.memory_bytes
        free = available_memory()
        if free is not None and free < needed:
            raise ModelError(
                f"{self._name!r} needs {needed / 1e9:.1f} GB of memory, "
                f"{free / 1e9:.1f} GB are free",
                "close other programs, or choose a smaller model "
                "(--model local:/path/to/model.gguf) or a remote one (--model openai:NAME)",
            )

    def _parameters(self, xllamacpp: Any) -> Any:
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(self._path)
        parameters.n_ctx = self.context_tokens
        parameters.n_parallel = PARALLEL
        parameters.kv_unified = True  # else every slot gets only a share of the context
        parameters.ctx_shift = False  # never forget the beginning of a prompt silently
        parameters.n_batch = parameters.n_ubatch = BATCH_TOKENS
        parameters.cache_ram_mib = PROMPT_CACHE_MIB
        parameters.fit_params = False
        parameters.warmup = False
        parameters.verbosity = 0
        parameters.reasoning_format = xllamacpp.common_reasoning_format(0)  # text as it is
        parameters.cpuparams.n_threads = self._threads
        parameters.cpuparams_batch.n_threads = self._threads
        # A port on the loopback cannot be switched off: without the key it answers nothing.
        parameters.api_keys = [self._key]
        parameters.n_threads_http = 2
        parameters.ui = False
        parameters.endpoint_slots = False
        return parameters

    # --- one request ----------------------------------------------------------------------

    def _grammar(self, schema: Mapping[str, Any]) -> str:
        try:
            return str(_import_xllamacpp().json_schema_to_grammar(json.dumps(dict(schema))))
        except (RuntimeError, ValueError, TypeError) as error:
            raise ModelError(
                f"the JSON schema cannot be followed: {error}", "simplify it"
            ) from error

    def _check_json(self, replies: Sequence[Reply], schema: Mapping[str, Any]) -> None:
        # llama.cpp ignores a schema it does not understand, so its word is not enough
        for reply in replies:
            problem = problem_of(reply.text, schema) if reply.finish != "length" else None
            if problem is not None:
                raise InvalidReply(f"{self._name!r} did not follow the JSON schema: {problem}")

    def _fitting_tokens(self, messages: list[dict[str, str]], max_tokens: int) -> int:
        """Tokens of the prompt, or an upper bound where even that fits."""
        # no token is shorter than a byte, so most prompts need no exact count
        bound = _TEMPLATE_TOKENS + sum(
            _MESSAGE_TOKENS + len(m["content"].encode("utf-8", "replace")) for m in messages
        )
        if bound + PARALLEL * max_tokens <= self.context_tokens:
            return bound
        tokens = self._count(messages)
        if tokens + max_tokens > self.context_tokens:
            raise PromptTooLong(
                f"a prompt of {tokens:,} tokens and a reply of up to {max_tokens:,} exceed the "
                f"{self.context_tokens:,} tokens of {self._name!r}",
                "ask about fewer tables (--tables), or use a model with a longer context",
            )
        return tokens

    def _run(
        self, request: dict[str, Any], count: int, *, charge_prompt: bool = True
    ) -> list[Reply]:
        stream = LlamaStream(self._server, request, count)
        self._streams.add(stream)
        try:
            stream.start()
            while not stream.finished.wait(0.2):  # short waits: Ctrl-C also works on Windows
                check()
        except BaseException:
            stream.cancelled = True
            stream.join(INTERRUPT_WAIT_S)
            raise
        finally:
            # one that is cut off in the middle of a batch has to be waited for before the end:
            # tearing the engine down under it crashes the process
            self._streams = {each for each in self._streams if each.is_alive()}
        if stream.cancelled:
            raise ModelError(f"{self._name!r} was closed while it answered", "ask again")
        if stream.failure is not None:
            raise failure(self._name, stream.failure) from stream.cause
        return stream.replies(charge_prompt)

    def _stop_streams(self, wait_s: float) -> None:
        for stream in tuple(self._streams):
            stream.cancelled = True
        for stream in tuple(self._streams):
            stream.join(wait_s)

    # --- the loopback port: only what the in-process interface lacks ---------------------------

    def _count(self, messages: list[dict[str, str]]) -> int:
        found = self._post("/v1/chat/completions/input_tokens", {"messages": messages})
        return int(found["input_tokens"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        import http.client

        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body).encode(), headers)
            response = connection.getresponse()
            data = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ModelError(f"{self._name!r} does not answer: {error}", AGAIN) from error
        finally:
            connection.close()
        if not isinstance(data, dict) or "error" in data:
            raise failure(self._name, data)
        return data


def _import_xllamacpp() -> Any:
    with _patient_openmp():
        try:
            import xllamacpp
        except ModuleNotFoundError as error:
            raise ModelNotInstalled(
                "local models need the package 'xllamacpp', which is not installed",
                "pip install 'dbrag[local]', or choose a remote model: --model openai:NAME",
            ) from error
        except ImportError as error:
            raise ModelNotInstalled(
                f"the package 'xllamacpp' cannot be loaded: {error}",
                "on Debian and Ubuntu: apt-get install libgomp1",
            ) from error
    return xllamacpp


@contextlib.contextmanager
def _patient_openmp() -> Iterator[None]:
    """GNU OpenMP reads its environment once, when it is loaded; ours stays as it was."""
    if any(name in os.environ for name in (_SPINS, "OMP_WAIT_POLICY")):
        yield  # the user's own choice
        return
    os.environ[_SPINS] = str(BARRIER_SPINS)
    try:
        yield
    finally:
        os.environ.pop(_SPINS, None)


@atexit.register
def _close_all() -> None:
    """The engine has threads of its own: stop them before the interpreter goes."""
    for model in tuple(_live):
        model.close()
