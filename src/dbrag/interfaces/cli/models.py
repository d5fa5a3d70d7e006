"""``dbrag models list | pull | check | cache``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dbrag.interfaces.cli import complete, output
from dbrag.interfaces.cli.options import Run, common_options, pass_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dbrag.settings import Settings


@click.group()
@common_options
def models() -> None:
    """The models on this machine: list them, fetch weights, try one."""


@models.command("list")
@common_options
@pass_run
def list_models(run: Run) -> int:
    """What can be fetched, what is here, and which model is in use."""
    from dbrag.models.endpoints import spec_without_user
    from dbrag.types import SCHEMA_VERSION

    settings = run.settings()
    entries = _entries(settings)
    encoder = spec_without_user(settings.encoder)
    if run.json:
        output.emit_json(
            {
                "schema": SCHEMA_VERSION,
                "model": settings.model,
                "encoder": encoder,
                "models": entries,
            }
        )
        return 0
    from dbrag.interfaces.cli.render import size, terminal_width
    from dbrag.interfaces.cli.tables import aligned

    rows = [
        (
            entry["name"],
            entry["kind"],
            size(entry["bytes"]),
            entry["licence"],
            "here" if entry["path"] else "not here",
            entry["problem"] or "",
        )
        for entry in entries
    ]
    names = ("name", "kind", "size", "licence", "weights", "note")
    lines = aligned(names, rows, width=terminal_width())
    lines += ["", f"chat model in use: {settings.model}", f"encoder in use: {encoder}"]
    output.emit("\n".join(lines))
    return 0


@models.command()
@click.argument("names", nargs=-1, metavar="[NAME]…", shell_complete=complete.weights)
@common_options
@pass_run
def pull(run: Run, names: tuple[str, ...]) -> int:
    """Fetch weights: those named, or the chat model and the encoder in use."""
    from dbrag.interfaces.cli.render import size
    from dbrag.types import SCHEMA_VERSION

    settings = run.settings()
    pulled = []
    for name in _with_tokenizers(names or _in_use(settings)):
        path = pull_one(run, name, settings)
        pulled.append({"name": name, "path": str(path), "bytes": path.stat().st_size})
    if run.json:
        output.emit_json({"schema": SCHEMA_VERSION, "pulled": pulled})
    else:
        lines = [f"{p['name']}: {size(int(str(p['bytes'])))} at {p['path']}" for p in pulled]
        output.emit("\n".join(lines) or f"nothing to fetch for {settings.model}")
    return 0


@models.command()
@common_options
@pass_run
def check(run: Run) -> int:
    """Load the chat model (--model) and the encoder, and let each say something."""
    from dataclasses import asdict

    from dbrag.interfaces.cli.ask import tell_remote
    from dbrag.models.embed import load_embedder
    from dbrag.models.load import check as check_model

    settings = run.settings()
    tell_remote(settings)
    result = asdict(check_model(settings.model, settings))
    encoder = load_embedder(settings)
    result["encoder"] = {"name": encoder.name, "dim": len(encoder.encode(["a word"])[0])}
    if run.json:
        from dbrag.types import SCHEMA_VERSION

        output.emit_json({"schema": SCHEMA_VERSION, **result})
    else:
        from dbrag.interfaces.cli.render import trace_lines

        output.emit("\n".join(trace_lines([{"stage": "works", **result}])))
    return 0


@models.command()
@click.option("--clear", is_flag=True, help="Delete all replies.")
@common_options
@pass_run
def cache(run: Run, clear: bool) -> int:
    """The remembered replies of chat models (setting reply_cache): how many, or delete them."""
    from dataclasses import asdict

    from dbrag.errors import ModelError
    from dbrag.models.cache import ReplyCache

    replies = ReplyCache(run.settings().cache_dir)
    before = replies.state()
    if clear:
        try:
            replies.clear()
        except OSError as error:
            raise ModelError(
                f"cannot delete {before.path!r}: {error.strerror or error}", "delete it by hand"
            ) from error
    if run.json:
        from dbrag.types import SCHEMA_VERSION

        output.emit_json({"schema": SCHEMA_VERSION, **asdict(before), "cleared": clear})
        return 0
    from dbrag.interfaces.cli.render import size

    lines = [f"{before.path}: {before.calls:,} remembered, {size(before.bytes)}"]
    if before.problem:
        lines.append(f"it cannot be used: {before.problem}")
    if clear:
        lines.append("deleted")
    elif before.problem:
        lines.append("dbrag models cache --clear deletes it")
    output.emit("\n".join(lines))
    return 0


def pull_one(run: Run, name: str, settings: Settings) -> Path:
    """Fetch one file of weights, after saying how big it is and where it comes from."""
    from dbrag.errors import WeightsError
    from dbrag.interfaces.cli.notices import LiveLine, pull_text
    from dbrag.models import weights

    try:
        return weights.locate(name, settings)
    except WeightsError:
        pass  # missing or damaged: fetched below
    if not run.quiet:
        output.note(weights.describe(name))
    live = LiveLine(run)

    def show(progress: weights.PullProgress) -> None:
        if progress.note and not run.quiet:
            live.clear()
            output.note(progress.note)
        live.show(pull_text(progress))

    try:
        return weights.pull(name, settings, show)
    finally:
        live.clear()


def _with_tokenizers(names: Sequence[str]) -> list[str]:
    """The names, and after each encoder the tokenizer that it cannot do without."""
    from dbrag.models.weights import registry

    known = {spec.name for spec in registry()}
    wanted: list[str] = []
    for name in names:
        wanted.append(name)
        if f"{name.removeprefix('local:')}-tokenizer" in known:
            wanted.append(f"{name}-tokenizer")
    return list(dict.fromkeys(wanted))


def _in_use(settings: Settings) -> list[str]:
    """Names of the chat model and the encoder, where they are files of this machine."""
    from dbrag.models.load import is_remote

    names = [] if is_remote(settings.model) else [settings.model]
    return names + [settings.encoder] * settings.encoder.startswith("local:")


def _entries(settings: Settings) -> list[dict[str, Any]]:
    from dbrag.errors import WeightsError
    from dbrag.models import weights

    entries = []
    for spec in weights.registry():
        path: str | None = None
        problem: str | None = None
        try:
            path = str(weights.locate(spec.name, settings))
        except WeightsError as error:
            problem = error.message
        entries.append(
            {
                "name": f"local:{spec.name}",
                "kind": spec.kind,
                "bytes": spec.bytes,
                "memory_bytes": spec.memory_bytes,
                "licence": spec.licence,
                "sha256": spec.sha256,
                "path": path,
                "problem": problem,
            }
        )
    return entries
