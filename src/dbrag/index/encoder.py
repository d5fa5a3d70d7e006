"""The encoder of an indexing run: loaded when needed, checked against the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.errors import EncoderMismatch, IndexUnusable
from dbrag.index.files import REBUILD
from dbrag.index.manifest import Encoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbrag.models.base import Embedder


class EncoderInUse:
    """Loads an encoder at the first text and refuses one that the index was not built with.

    Args:
        given: an encoder, a function that loads it, or None where none is to be had.
        known: the encoder of the index, None for a new index.
        force: encode everything anew instead of refusing another encoder.
    """

    def __init__(
        self, given: Embedder | Callable[[], Embedder] | None, known: Encoder | None, force: bool
    ) -> None:
        self._given = given
        self._known = known
        self._force = force
        self._loaded: Embedder | None = None

    def load(self) -> Embedder:
        """The encoder.

        Raises:
            EncoderMismatch: the index was built with another one.
            IndexUnusable: a text is to be encoded where nothing should have changed.
        """
        if self._loaded is None:
            if self._given is None:
                raise IndexUnusable("the index lacks vectors of its own tables", REBUILD)
            # Not isinstance(…, Embedder): that would read every property and load the model.
            loaded = self._given() if callable(self._given) else self._given
            if not self._force:
                check_encoder(self._known, loaded.sha256, loaded.name)
            self._loaded = loaded
        return self._loaded

    @property
    def same(self) -> bool:
        """Whether vectors of the index may be used again."""
        if self._known is None or self._loaded is None:
            return self._known is not None
        return self._known.sha256 == self._loaded.sha256

    def identity(self) -> Encoder | None:
        """What to write into the manifest."""
        if self._loaded is None:
            return self._known
        return Encoder(self._loaded.name, self._loaded.sha256, self._loaded.dim)


def check_encoder(known: Encoder | None, sha256: str, name: str = "") -> None:
    """Compare the encoder in use with the one the index was built with.

    Raises:
        EncoderMismatch: they differ.
    """
    if known is None or known.sha256 == sha256:
        return
    now = f"{name} ({sha256[:12]}…)" if name else f"{sha256[:12]}…"
    raise EncoderMismatch(
        f"the index was built with the encoder {known.name} ({known.sha256[:12]}…), not {now}",
        "use that encoder (encoder in dbrag.toml, or DBRAG_ENCODER), or encode everything "
        "anew: dbrag index --force",
    )
