"""Contriever (Izacard et al. 2022), a text encoder of the paper's comparison.

A BERT encoder whose token states are averaged over the tokens that are there. Its authors
compare vectors by inner product; the DBRAG paper by cosine, so vectors have length 1 here.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.evaluation.baselines.names import CONTRIEVER
from dbrag.evaluation.baselines.packages import loaded, transformers_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

MAX_TOKENS = 512
_BATCH = 16
_HUB_S = 5.0


class Contriever:
    """An :class:`~dbrag.models.base.Embedder` on torch.

    Args:
        model: of transformers; its output has ``last_hidden_state`` ``[batch, tokens, dim]``.
        tokenizer: of transformers.
        name: shown as the encoder's name.
    """

    def __init__(self, model: Any, tokenizer: Any, name: str = CONTRIEVER) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._name = name

    @property
    def name(self) -> str:
        """``transformers:model``."""
        return f"transformers:{self._name}"

    @cached_property
    def sha256(self) -> str:
        """Of the weights as they are in memory, name by name."""
        return state_hash(self._model.state_dict())

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._model.config.hidden_size)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors ``[n_texts, dim]``; texts are cut at 512 tokens.

        Mean of the token states where the attention mask is 1 (section 3.2 of its paper).
        """
        import numpy as np

        vectors = np.empty((len(texts), self.dim), np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            vectors[batch] = self._encoded([texts[i] for i in batch])
        return vectors

    def _encoded(self, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np
        import torch

        limit = min(MAX_TOKENS, int(self._model.config.max_position_embeddings))
        inputs = self._tokenizer(
            texts, padding=True, truncation=True, max_length=limit, return_tensors="pt"
        )
        with torch.inference_mode():
            states = self._model(**inputs).last_hidden_state
            mask = inputs["attention_mask"].unsqueeze(-1)
            mean = (states * mask).sum(1) / mask.sum(1)
            unit = torch.nn.functional.normalize(mean, dim=1)
        return np.asarray(unit.float().numpy())


def load_contriever(weights: str | None = None, offline: bool = False) -> Contriever:
    """The encoder from a folder or, by its name, from the Hugging Face hub or its cache.

    Args:
        weights: a folder or a name; None: ``facebook/contriever-msmarco``.
        offline: look into the hub's cache only.

    Raises:
        ModelNotInstalled: torch or transformers is missing.
        WeightsError: the weights are neither here nor can be fetched.
    """
    transformers = transformers_for("contriever")
    name = weights or CONTRIEVER
    folder = Path(name).expanduser()
    is_folder = folder.is_dir()
    where = str(folder) if is_folder else name
    command = (
        f"hf download {CONTRIEVER} --local-dir contriever && "
        "dbrag eval retrieval --method contriever --weights contriever …"
    )

    def load(local: bool = True) -> Contriever:
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, local_files_only=local)
        model = transformers.AutoModel.from_pretrained(where, local_files_only=local)
        return Contriever(model, tokenizer, folder.resolve().name if is_folder else name)

    def fetch() -> Contriever:
        try:
            return load()
        except OSError:
            from huggingface_hub import model_info

            # transformers would try for minutes to reach a hub that does not answer.
            model_info(where, timeout=_HUB_S)
            return load(local=False)

    found: Contriever = loaded(load if offline or is_folder else fetch, name, command)
    return found


def state_hash(state: Mapping[str, Any]) -> str:
    """SHA-256 of tensors by name: the same weights give the same, whatever their file."""
    import torch

    digest = sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
