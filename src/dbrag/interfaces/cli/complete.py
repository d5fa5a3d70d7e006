"""What shells offer for a word that is being typed: paths, models, tables of an existing index.

Every key press starts a process, so nothing heavy is imported; and whatever goes wrong, nothing
is offered.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    Items = list[CompletionItem[str]]

VARIABLE = "_DBRAG_COMPLETE"
"""Holds the shell's order, ``bash_complete`` for one."""
TYPED = "dbrag.typed"
"""In the context's ``meta``: the words of the command before the one that is being typed."""
_MOST_TABLES = 20_000
_LIVE_IN_QUOTES = frozenset("'\"\\$`!")
_PROVIDERS = ("openai:", "anthropic:", "google:", "groq:", "ollama:")


def files(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Paths, as the shell itself completes them."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def folders(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Paths of folders."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def models(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Chat models that can be fetched, and providers of others."""
    from dbrag.models.registry import registry

    local = [f"local:{spec.name}" for spec in registry() if spec.kind == "chat"]
    return _items([*local, *_PROVIDERS], incomplete)


def weights(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Names of weights."""
    from dbrag.models.registry import registry

    return _items([spec.name for spec in registry()], incomplete)


def tables(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Tables of the index: by their names, by more where several are called so."""
    found: list[str] = []
    with suppress(Exception):  # no index, a damaged one, another format: nothing to offer
        found = _table_names(context, "." in incomplete)
    return _items(found, incomplete)


def sources(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Names of the sources in the index."""
    found: list[str] = []
    with suppress(Exception):
        from dbrag.index.manifest import read_manifest

        manifest = read_manifest(_index_dir(context))
        found = [entry.name for entry in manifest.sources] if manifest else []
    return _items(found, incomplete)


def after_list(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Tables where a word follows ``--tables a``; nothing for a question."""
    open_list: Callable[[tuple[str, ...]], Any] | None
    open_list = getattr(context.command, "open_list", None)
    option = open_list(context.meta.get(TYPED, ())) if open_list else None
    found: Items = option.shell_complete(context, incomplete) if option is not None else []
    return found


def _table_names(context: click.Context, full: bool) -> list[str]:
    from dbrag.index.catalogs import CatalogFile
    from dbrag.index.layout import Layout
    from dbrag.index.manifest import read_manifest

    directory = _index_dir(context)
    manifest = read_manifest(directory)
    if manifest is None or sum(entry.tables for entry in manifest.sources) > _MOST_TABLES:
        return []
    generation = Layout(directory).generation(manifest.generation)
    refs = [
        ref
        for entry in manifest.sources
        for ref in CatalogFile.open(generation.catalog(entry.name)).refs
    ]
    called = Counter(ref.name.casefold() for ref in refs)
    return [str(ref) if full or called[ref.name.casefold()] > 1 else ref.name for ref in refs]


def _index_dir(context: click.Context) -> Any:
    from dbrag.index.where import index_dir
    from dbrag.interfaces.cli.options import Run

    run = context.find_object(Run) or Run()
    settings = run.settings()
    return index_dir(settings, settings.sources)


def _items(words: list[str], incomplete: str) -> Items:
    from click.shell_completion import CompletionItem

    wanted = incomplete.casefold()
    found = [word for word in words if word.casefold().startswith(wanted) and word.isprintable()]
    if os.environ.get(VARIABLE, "").startswith("bash"):  # the others quote by themselves
        found = _for_bash(found)
    return [CompletionItem(word) for word in sorted(found)]


def _for_bash(words: list[str]) -> list[str]:
    """Words as bash may put them into the line; what it would change or run is left out."""
    if not _in_quotes():
        # The script's ``read`` takes backslashes out.
        return [shlex.quote(word) for word in words if "\\" not in word]
    # Quotes of ours would be text inside those that are typed, and ``$(…)`` a command.
    return [word for word in words if not _LIVE_IN_QUOTES.intersection(word)]


def _in_quotes() -> bool:
    """Whether the word that is being typed has a quotation mark, or stands in one."""
    text = os.environ.get("COMP_WORDS", "")
    number = int(os.environ.get("COMP_CWORD") or 0)
    typed = text.split("\n")[number : number + 1]
    quote, escaped = "", False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
    return bool(quote) or any(set(word) & {"'", '"'} for word in typed)
