"""When the chat model is asked to rerank: what was said, else a rule by model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.models.load import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dbrag.models.base import ChatModel
    from dbrag.settings import Settings

AUTO: Mapping[str, tuple[bool, str]] = {
    "remote": (True, "with GPT-3.5 the paper gains 6.3 points of Recall@5 over its coarse ranking"),
    "local": (False, "not measured: small models may order worse than the search does"),
    "local:qwen2.5-coder-1.5b": (
        False,
        "on 40 dev questions of Spider R@5 is 97.5 before, 88.8 by its order alone, 97.5 fused",
    ),
}
"""Whether "auto" reranks, and why: by the model's name, else by where it runs."""


def on_by_default(name: str, remote: bool) -> bool:
    """What "auto" means for a model."""
    return AUTO.get(name, AUTO["remote" if remote else "local"])[0]


def is_wanted(
    settings: Settings,
    asked: bool | None,
    n_candidates: int,
    *,
    loaded: ChatModel | None,
    load: Callable[[], ChatModel],
) -> bool:
    """Whether to rerank these candidates.

    "auto" leaves alone what fits into the answer's budget whole (``m``), and a remote model
    while offline is set; a local model is not loaded to find out.

    Args:
        asked: what the caller said; None goes by the settings.
        loaded: the chat model, if it is loaded; ``load`` gives it in any case.

    Raises:
        ModelError: "auto", and the remote model cannot be used.
    """
    auto = asked is None and settings.rerank == "auto"
    if not auto:
        said = settings.rerank == "on" if asked is None else asked
        return said and n_candidates > 1
    if n_candidates <= settings.m:
        return False
    if loaded is None:
        if not is_remote(settings.model):
            return on_by_default(settings.model, remote=False)
        if settings.offline:
            return False
        loaded = load()  # also a server of this machine has a provider's name
    return on_by_default(loaded.name, loaded.remote)
