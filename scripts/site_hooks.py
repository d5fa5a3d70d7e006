"""Hooks of mkdocs: pages that lie outside docs/ become pages of the site.

Documents link to each other as files of the repository, so that the links work where the
repository is read. Here ``../README.md`` and the like are given the place that they have on
the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "licence.md",
    "experiments/README.md": "experiments.md",
    "experiments/RESULTS.md": "results.md",
}
"""Path in the repository → path below docs/."""
SAME = {"README.md": "index.md"}
"""Files that another page of the site stands for."""

_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside."""
    for name, place in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        if not name.endswith(".md"):
            text = f"# {name.capitalize()}\n\n```text\n{text}```\n"
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links lead to the places on the site."""
    place = page.file.src_uri
    source = next((name for name, given in OUTSIDE.items() if given == place), f"docs/{place}")
    parts, last = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [moved(markdown[last : fence.start()], source, place), fence[0]]
        last = fence.end()
    return "".join([*parts, moved(markdown[last:], source, place)])


def moved(markdown: str, source: str, place: str) -> str:
    """Text with the links of the file ``source`` as they are on the page ``place``."""

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        target = OUTSIDE.get(target) or SAME.get(target) or target.removeprefix("docs/")
        return match[1] + posixpath.relpath(target, posixpath.dirname(place) or ".") + match[3]

    return _LINK.sub(link, markdown)
