"""The chat model and the encoder: their files, the runtimes that load them, their keys."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbrag.doctor.check import Check, of_error, ok, problem, size
from dbrag.doctor.extras import installed
from dbrag.errors import DbragError, WeightsError
from dbrag.models import weights
from dbrag.models.load import is_remote, spec_in_full
from dbrag.models.registry import REGISTRY

if TYPE_CHECKING:
    from dbrag.settings import Settings

IMPORT_S = 120.0
_ENCODER = "local:all-minilm-l6-v2"
_LOOK = """
import importlib, json, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        error = ""
    except BaseException as e:
        error = f"{type(e).__name__}: {e}"
    print(json.dumps([name, error]), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the models want of the machine; 0 where a remote one wants nothing.

    Attributes:
        memory_bytes: of the chat model when loaded.
        missing_bytes: of weights that are not here yet.
    """

    model: str
    memory_bytes: int = 0
    missing_bytes: int = 0


def needs(settings: Settings) -> Needs:
    """What the models in use want; nothing is loaded, and what is wrong with them told later."""
    missing = 0
    memory = 0
    model = settings.model
    names = [_ENCODER, f"{_ENCODER}-tokenizer"] if settings.encoder == _ENCODER else []
    try:
        if not is_remote(model):
            names.append(spec_in_full(model))
            known = REGISTRY.get(names[-1].removeprefix("local:"))
            memory = known.memory_bytes if known else 0
    except DbragError:
        pass
    for name in names:
        try:
            path, _ = weights.glance(name, settings)
        except WeightsError:
            known = REGISTRY.get(name.removeprefix("local:"))
            missing += known.bytes if known else 0
        except DbragError:
            pass
        else:
            if not name.startswith(_ENCODER):
                memory = _memory_of(path, name) or memory
    return Needs(model, memory, missing)


def _memory_of(path: Path, name: str) -> int:
    from dbrag.models.local import LlamaModel

    try:
        return LlamaModel(path, name=name).memory_bytes
    except (DbragError, OSError):
        return 0


def chat_model(settings: Settings, *, deep: bool, call: bool) -> Iterator[Check]:
    """The chat model: weights and runtime of a local one, the key of a remote one.

    Args:
        deep: read local weights for their hash.
        call: let the model answer a fixed question of a few words.
    """
    name = spec_in_full(settings.model)
    found: Iterable[Check] = _local(name, settings, deep=deep)
    if is_remote(name):
        found = [_remote(name, settings)]
    for check in found:
        yield check
        call = call and check.status != "problem"
    if call:
        from dbrag.models.load import check as try_it

        told = try_it(name, settings)
        yield ok("model call", f"{told.name} answered in {told.seconds:g} s")


def _local(name: str, settings: Settings, *, deep: bool) -> Iterator[Check]:
    try:
        path, known = weights.glance(name, settings, deep=deep)
    except DbragError as error:
        yield of_error("model", error, "dbrag models list")
    else:
        if weights.is_path(name):
            text = "its header is whole; a file of your own has no hash to compare"
        else:
            text = (
                "SHA-256 is right" if known else "the size is right, the SHA-256 not compared yet"
            )
        text = f"{name} is at {str(path)!r} ({size(path.stat().st_size)}): {text}"
        yield ok("model", text, "" if known or weights.is_path(name) else "dbrag doctor --deep")
    yield _runtime("model runtime", ["xllamacpp"], "pip install 'dbrag[local]'")


def _remote(name: str, settings: Settings) -> Check:
    from dbrag.models.remote import RemoteModel

    try:
        model = RemoteModel(name)
    except DbragError as error:
        return of_error("model", error, "dbrag doctor --model local:qwen2.5-coder-1.5b")
    where = f"at {model.endpoint}" if model.endpoint else "of its provider"
    if settings.offline and model.remote:
        return problem(
            "model",
            f"{name!r} is a remote model and offline is set",
            "unset DBRAG_OFFLINE, or dbrag doctor --model local:qwen2.5-coder-1.5b",
        )
    return ok(
        "model", f"{name} {where}: all that it needs is set; not called", "dbrag doctor --call"
    )


def encoder(settings: Settings) -> Iterator[Check]:
    """The text encoder: files and runtime of a local one, the key of a remote one."""
    from dbrag.models.embed import is_remote_encoder, load_embedder
    from dbrag.models.endpoints import spec_without_user

    shown = spec_without_user(settings.encoder)
    if is_remote_encoder(settings.encoder):
        model = load_embedder(settings)
        place = "another machine" if getattr(model, "remote", True) else "this machine"
        yield ok("encoder", f"{shown} on {place}: all that it needs is set; not called")
        return
    try:
        if settings.encoder == _ENCODER:
            # 23 MB: read whole at the first use of every process, too.
            path, _ = weights.glance(_ENCODER, settings, deep=True)
            weights.glance(f"{_ENCODER}-tokenizer", settings, deep=True)
            yield ok(
                "encoder", f"{shown} is at {str(path)!r}: SHA-256 is right, its tokenizer's too"
            )
        else:
            load_embedder(settings)
            yield ok("encoder", f"{shown}: model.onnx and tokenizer.json are there")
    except DbragError as error:
        yield of_error("encoder", error, "dbrag models pull")
    modules = ["onnxruntime", "tokenizers"]
    yield _runtime("encoder runtime", modules, f"pip install --force-reinstall {' '.join(modules)}")


def encoder_sha256(settings: Settings) -> str:
    """The identity of the encoder in use, as indexes know it.

    Raises:
        DbragError: it cannot be used.
    """
    from dbrag.models.embed import load_embedder

    if settings.encoder == _ENCODER:  # loading it would leave a mark in the cache
        weights.glance(_ENCODER, settings)
        return weights.spec_of(_ENCODER).sha256
    return load_embedder(settings).sha256


def _runtime(name: str, modules: Sequence[str], hint: str) -> Check:
    """Whether modules can be imported; each one is, in a process that may die of it."""
    absent = [module for module in modules if not installed(module)]
    if absent:
        return problem(name, f"{', '.join(absent)} is not installed", hint)
    for module, error in import_errors(modules):
        if error:
            return problem(name, f"{module} is installed, but cannot be loaded: {error}", hint)
    return ok(name, f"{', '.join(modules)} can be loaded")


def import_errors(modules: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each module with what importing it raised, "" for nothing; in another process.

    A library built for another processor ends its process without a word.
    """
    command = [sys.executable, "-P", "-c", _LOOK, *modules]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and our own text
            command, capture_output=True, text=True, timeout=IMPORT_S, check=False
        )
        lines, ended = done.stdout.splitlines(), f"its process ended with {done.returncode}"
    except subprocess.TimeoutExpired:
        lines, ended = [], f"it takes more than {IMPORT_S:g} s"
    told = dict(json.loads(line) for line in lines if line.startswith('["'))
    for module in modules:
        yield module, " ".join(told.get(module, ended).split())[:300]
