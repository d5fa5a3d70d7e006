"""What the documents say is so: commands, flags, settings, files, exit codes."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from typing import Any

import click
import pytest

from dbrag.demo import QUESTIONS
from dbrag.interfaces.cli.app import cli
from dbrag.settings import Settings, load_settings
from tests import snippets
from tests.snippets import DATA, REASONS, RUNNABLE, Place, Snippet

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
GENERATED = "cli.md"
WRITTEN = [page for page in PAGES if page.name != GENERATED]
# What the scripted model answers: SQL that the real one wrote, else the gold SQL.
REPLIES = {one.question: one.sql for one in QUESTIONS} | {
    QUESTIONS[0].question: "SELECT s.name, COUNT(o.order_id) FROM stores s"
    " JOIN orders o ON s.store_id = o.store_id GROUP BY s.name",
    "What is the total amount of each region?": "SELECT region, SUM(amount) FROM orders"
    " GROUP BY region ORDER BY region",
}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(page: str) -> list[str]:
    return [one.text for one in snippets.snippets(page)]


def fences(page: Path) -> list[Snippet]:
    return snippets.snippets(page.read_text(encoding="utf-8"))


def commands() -> dict[str, click.Command]:
    found: dict[str, click.Command] = dict(cli.commands)
    for group in [c for c in cli.commands.values() if isinstance(c, click.Group)]:
        found |= {f"{group.name} {name}": command for name, command in group.commands.items()}
    return found


def test_the_page_of_commands_is_generated() -> None:
    generator = runpy.run_path(str(ROOT / "scripts" / "generate_cli_docs.py"))
    stale = "stale: python scripts/generate_cli_docs.py"
    assert text("docs/cli.md") == generator["document"](), stale


def test_every_command_is_documented() -> None:
    page = text("docs/cli.md")
    for name in commands():
        assert f"## dbrag {name}\n" in page


def test_json_of_every_command_is_documented() -> None:
    page = text("docs/json.md")
    for name in cli.commands:
        assert f"## {name}\n" in page


def test_every_setting_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", text("docs/settings.md"), re.MULTILINE))
    assert set(rows) == {field.name for field in fields(Settings)}
    for field in fields(Settings):
        default = getattr(Settings(), field.name)
        if isinstance(default, int | float) and not isinstance(default, bool):
            assert float(rows[field.name].replace(",", "")) == default
        elif isinstance(default, str):
            assert rows[field.name] == f"`{default}`"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_in_the_text_exist(page: Path) -> None:
    known = commands()
    lines = [
        line for block in blocks(page.read_text(encoding="utf-8")) for line in block.splitlines()
    ]
    for line in lines:
        if not line.startswith("dbrag "):
            continue
        words = shlex.split(line, comments=True)
        command = known.get(" ".join(words[1:3])) or known[words[1]]
        flags = {option for parameter in command.params for option in parameter.opts}
        for word in takewhile(lambda word: word != "--", words[2:]):
            assert not word.startswith("-") or word.split("=")[0] in flags, line


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_readme_starts_with_two_commands() -> None:
    runnable = [block.strip() for block in blocks(text("README.md"))]
    assert runnable[:2] == ["bash scripts/setup.sh", "bash scripts/test.sh"]
    first = re.search(r'dbrag ask -s demo/shop.db "(.+)"', text("README.md"))
    assert first
    assert first[1] == QUESTIONS[0].question


def test_exit_codes_are_the_same_everywhere() -> None:
    for page in (text("docs/cli.md"), text("README.md").replace(" · ", ", ")):
        flat = " ".join(page.split())
        for code in ("0 answered or done", "1 failed", "2 usage", "3 source", "4 unanswerable",
                     "5 model", "6 limit reached", "130 interrupted"):  # fmt: skip
            assert code in flat


# ---- snippets --------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("docs"), REPLIES)
    with pytest.MonkeyPatch.context() as patch, snippets.fakes(made, patch):
        code, printed = made.shell("dbrag index -q -s demo/shop.db")
        assert code == 0, printed
        yield made
    made.close()


def runs(snippet: Snippet) -> bool:
    return snippet.lang in RUNNABLE and not snippet.mark.startswith(("not run", "run by"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    "page", [page for page in WRITTEN if any(map(runs, fences(page)))], ids=lambda p: p.name
)
def test_snippets_run(page: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBRAG_CACHE", str(place.folder / ".cache"))
    names: dict[str, Any] = {"__name__": "__main__"}
    place.clean()
    for one in filter(runs, fences(page)):
        with ExitStack() as stack:
            text = one.text
            if one.mark == "run with: server":
                address = stack.enter_context(snippets.served(place)).removeprefix("http://")
                text = text.replace(snippets.SERVED, address)
            if one.lang == "python":
                place.python(text, names)
                continue
            code, printed = place.shell(text)
        where = f"{page.name}:{one.line}"
        assert code == 0, f"{where} ended with {code}:\n{printed}"
        missing = snippets.differences(one.output or "", printed)
        assert not missing, f"{where} does not print {missing!r}, but:\n{printed}"


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_every_snippet_is_run_or_says_why_not(page: Path) -> None:
    for one in fences(page):
        where = f"{page.name}:{one.line}"
        assert one.lang in (*RUNNABLE, *DATA), f"{where}: name the language, one that is known"
        if one.lang in DATA:
            assert not one.mark, f"{where}: only {RUNNABLE} are run"
            # A command does not get around being run by another name for its language.
            assert not re.match(r"(\$ |dbrag |pip |curl |python )", one.text), where
        elif one.mark.startswith("not run: "):
            kind = one.mark.removeprefix("not run: ").partition(", ")[0]
            assert kind in REASONS, f"{where}: {kind!r} is no reason; known: {', '.join(REASONS)}"
        elif one.mark.startswith("run by: "):
            test = ROOT / one.mark.removeprefix("run by: ")
            assert page.name in test.read_text(encoding="utf-8"), where
        else:
            assert one.mark in ("", "run with: server"), where


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_snippets_that_are_not_run_can_be_read(page: Path) -> None:
    for one in fences(page):
        if one.lang == "python":
            compile(one.text, f"{page.name}:{one.line}", "exec")
        elif one.lang == "json":
            json.loads(one.text)
        elif one.lang == "sh" and not runs(one):
            subprocess.run(["bash", "-n"], input=one.text, text=True, check=True)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_settings_in_the_text_are_settings(page: Path, tmp_path: Path) -> None:
    for one in fences(page):
        if one.lang == "toml":
            (tmp_path / "dbrag.toml").write_text(one.text, encoding="utf-8")
            load_settings({}, config=str(tmp_path / "dbrag.toml"))


def test_a_snippet_is_taken_apart() -> None:
    page = """
<!-- not run: key, costs money -->

```sh
dbrag ask
```

- in a list:
  ```python
  if True:
      pass
  ```

```sh
echo 1; echo 2
```

```text
1
…
```
"""
    first, second, third = snippets.snippets(page)
    assert first == Snippet(4, "sh", "dbrag ask\n", "not run: key, costs money")
    assert second == Snippet(9, "python", "if True:\n    pass\n")
    assert third.output == "1\n…\n"


def test_what_a_snippet_prints_is_compared() -> None:
    printed = "a note\nconfidence: sure (71%)\nname  n\n----  -\nx     1\n"
    assert not snippets.differences("confidence: not sure (3%)\nna…n\nx     1\n", printed)
    assert snippets.differences("x     2\n", printed) == "x     2"
    assert snippets.differences("x     1\nname  n\n", printed) == "name  n"  # another order
    assert snippets.differences("name n\n", printed) == "name n"


def test_a_failing_command_is_seen(place: Place) -> None:
    code, printed = place.shell('dbrag sql -s demo/shop.db "DROP TABLE orders"\necho not here')
    assert code == 2
    assert "refused" in printed or "error" in printed
    assert "not here" not in printed


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("script", ["scripts/setup.sh", "scripts/test.sh", ".ci/run"])
def test_scripts_are_sound(script: str) -> None:
    path = ROOT / script
    assert path.stat().st_mode & 0o111, "not executable"
    subprocess.run(["bash", "-n", str(path)], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_setup_says_its_plan_first() -> None:
    done = subprocess.run(
        ["bash", "scripts/setup.sh", "--plan"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for words in ("1.12 GB", "of memory", "Hugging Face", "--model", "disk"):
        assert words in done.stderr
    remote = subprocess.run(
        ["bash", "scripts/setup.sh", "--plan", "--model", "openai:x"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "1.12 GB" not in remote.stderr
