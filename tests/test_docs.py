"""What the documents say is so: commands, flags, settings, files, exit codes."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import click
import pytest

from dbrag.interfaces.cli.app import cli
from dbrag.settings import Settings

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(page: str) -> list[str]:
    return re.findall(r"^```[a-z]*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


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
        for word in words[2:]:
            assert not word.startswith("-") or word.split("=")[0] in flags, line


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_readme_starts_with_two_commands() -> None:
    runnable = [block.strip() for block in blocks(text("README.md"))]
    assert runnable[:2] == ["bash scripts/setup.sh", "bash scripts/test.sh"]
    first = re.search(r'dbrag ask -s demo/shop.db "(.+)"', text("README.md"))
    from dbrag.demo import QUESTIONS

    assert first
    assert first[1] == QUESTIONS[0].question


def test_exit_codes_are_the_same_everywhere() -> None:
    for page in (text("docs/cli.md"), text("README.md").replace(" · ", ", ")):
        flat = " ".join(page.split())
        for code in ("0 answered or done", "1 failed", "2 usage", "3 source", "4 unanswerable",
                     "5 model", "6 limit reached", "130 interrupted"):  # fmt: skip
            assert code in flat


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
