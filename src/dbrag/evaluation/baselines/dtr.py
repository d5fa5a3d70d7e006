"""DTR, the dense table retriever (Herzig et al. 2021, "Open domain question answering over
tables via dense retrieval"): two TAPAS encoders, for questions and for tables.

    score(q, t) = (W_q · h_q) · (W_t · h_t)

with h the pooled output (dense layer and tanh over the first token) of each encoder and W
its projection, ``[256, hidden]``. The question's encoder sees an empty table: all its seven
kinds of token types are 0. The table's encoder sees the table's title, header and rows; to it
the title is no question: no cell stands in a relation to its numbers.

The published checkpoints are of TensorFlow 1; ``experiments/convert_dtr.py`` makes a folder
for ``--weights`` of one. It holds

    question_encoder/   a TapasModel of transformers with its tokenizer (variables bert_1/…)
    table_encoder/      the same (variables bert/…)
    projections.npz     the variables text_projection and table_projection

Source: google-research/tapas, tapas/models/table_retriever_model.py (the encoders and the
score) and tapas/retrieval/tf_example_utils.py (what they see).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.errors import WeightsError
from dbrag.evaluation.baselines.contriever import state_hash
from dbrag.evaluation.baselines.flat import cells
from dbrag.evaluation.baselines.packages import loaded, need, transformers_for
from dbrag.evaluation.baselines.remembered import remembered
from dbrag.index.arrays import load_archive

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.types import Table

    Array = NDArray[np.float32]

QUESTION_TOKENS = 128
TABLE_TOKENS = 512
QUESTION, TABLE, PROJECTIONS = "question_encoder", "table_encoder", "projections.npz"
COLUMN_KIND, ROW_KIND, RELATION_KIND = 1, 2, 6
"""Of TAPAS's seven token types: number of the column, of the row, relation to the question."""
CONFIGURED = ("hidden_act", "num_attention_heads", "reset_position_index_per_cell")
COMMAND = (
    "python experiments/convert_dtr.py CHECKPOINT FOLDER makes the folder of a published "
    "checkpoint (see docs/evaluation.md); then "
    "dbrag eval retrieval --method dtr --weights FOLDER"
)


class Tower:
    """One of the two encoders with its projection.

    Args:
        model: a TapasModel.
        tokenizer: a TapasTokenizer.
        projection: ``[projected, hidden]``.
    """

    def __init__(self, model: Any, tokenizer: Any, projection: Array) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._projection = projection

    @property
    def sha256(self) -> str:
        """Of the weights, the projection, and what the weights do not tell of the encoder."""
        weights = state_hash(self._model.state_dict()) + _array_hash(self._projection)
        return " ".join([weights, *(f"{getattr(self._model.config, name)}" for name in CONFIGURED)])

    def question(self, text: str) -> Array:
        """The vector of a question, ``[projected]``."""
        import torch

        limit = min(QUESTION_TOKENS, int(self._model.config.max_position_embeddings))
        tokenizer = self._tokenizer
        tokens = [tokenizer.cls_token, *tokenizer.tokenize(_text(text)), tokenizer.sep_token]
        ids = tokenizer.convert_tokens_to_ids(tokens[:limit])
        kinds = len(self._model.config.type_vocab_sizes)
        return self._projected(
            {
                "input_ids": torch.tensor([ids]),
                "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
                "token_type_ids": torch.zeros(1, len(ids), kinds, dtype=torch.long),
            }
        )

    def table(self, table: Table) -> Array:
        """The vector of a table, ``[projected]``.

        Where it is too long, all cells are cut to the same number of word pieces; where not
        even their first words fit, last columns and rows are left out.

        Raises:
            WeightsError: the encoder is too short for the table's name and one column.
        """
        import pandas as pd

        names, samples = cells(table)
        header, *rows = [[_text(cell) for cell in line] for line in (names, *samples)]
        title = _text(table.ref.name.replace("_", " "))
        limit = min(TABLE_TOKENS, int(self._model.config.max_position_embeddings))
        n_rows, n_columns = self._shown(title, header, rows, limit)
        if not n_columns:
            raise WeightsError(
                f"the table encoder's {limit} tokens hold no column of {str(table.ref)!r}", COMMAND
            )
        shown = [row[:n_columns] for row in rows[:n_rows]]
        inputs = self._tokenizer(
            table=pd.DataFrame(shown, columns=header[:n_columns], dtype=str),
            queries=title,
            truncation="drop_rows_to_fit",  # which cuts cells first, and then need not drop any
            max_length=limit,
            return_tensors="pt",
        )
        inputs["token_type_ids"][..., RELATION_KIND] = 0
        return self._projected(inputs)

    def _shown(
        self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], limit: int
    ) -> tuple[int, int]:
        """How many rows and columns are encoded: those whose cells' first words fit.

        As in the authors' code, the longer of the two is cut until they do. There are also no
        more than the encoder has numbers for.
        """
        import numpy as np

        sizes = self._model.config.type_vocab_sizes
        n_rows = min(len(rows), sizes[ROW_KIND] - 1)
        n_columns = min(len(header), sizes[COLUMN_KIND] - 1)
        grid = [line[:n_columns] for line in (header, *rows[:n_rows])]
        pieces = np.array([[self._first_word(cell) for cell in line] for line in grid], np.int64)
        budget = limit - 2 - len(self._tokenizer.tokenize(title))
        while n_columns and pieces[: n_rows + 1, :n_columns].sum() > budget:
            if n_columns >= n_rows:
                n_columns -= 1
            else:
                n_rows -= 1
        return n_rows, n_columns

    def _first_word(self, cell: str) -> int:
        """Word pieces of the first word of a cell."""
        rest = self._tokenizer.tokenize(cell)[1:]
        return 1 + next(
            (i for i, piece in enumerate(rest) if not piece.startswith("##")), len(rest)
        )

    def _projected(self, inputs: Any) -> Array:
        import numpy as np
        import torch

        with torch.inference_mode():
            pooled = self._model(**inputs).pooler_output[0].float().numpy()
        return np.asarray(self._projection @ pooled, np.float32)


class Dtr:
    """The retriever: two towers."""

    def __init__(self, question: Tower, table: Tower) -> None:
        self.question = question
        self.table = table

    def over(self, tables: Sequence[Table], cache: Path) -> DtrScorer:
        """The scorer over some tables; their vectors are kept in dbrag's cache."""
        import numpy as np

        shown = [f"{table.ref.name} {cells(table)!r}" for table in tables]
        matrix = remembered(
            cache,
            ("dtr", self.table.sha256, *shown),
            lambda: np.stack([self.table.table(table) for table in tables]),
        )
        return DtrScorer(self.question, matrix)


class DtrScorer:
    """Inner products of the question's vector with those of the tables."""

    cosine = False

    def __init__(self, question: Tower, matrix: Array) -> None:
        self._question = question
        self._matrix = matrix

    def scores(self, question: str) -> Array:
        """``[n_tables]``, of any size."""
        import numpy as np

        return np.asarray(self._matrix @ self._question.question(question), np.float32)


def load_dtr(weights: str | None) -> Dtr:
    """The retriever from a folder; see the module's text for what it holds.

    Raises:
        ModelNotInstalled: torch, transformers or pandas is missing.
        WeightsError: no folder is given, or it does not hold the weights.
    """
    transformers = transformers_for("dtr")
    need("dtr", "pandas")  # the tokenizer of TAPAS reads data frames
    if weights is None:
        raise WeightsError("weights missing: dtr's are published for TensorFlow 1 only", COMMAND)
    folder = Path(weights).expanduser()
    projections = _projections(folder)

    def tower(part: str, projection: Array) -> Tower:
        place = str(folder / part)
        tokenizer = transformers.TapasTokenizer.from_pretrained(place, local_files_only=True)
        model = transformers.TapasModel.from_pretrained(place, local_files_only=True)
        hidden = int(model.config.hidden_size)
        if projection.ndim != 2 or projection.shape[1] != hidden:
            raise ValueError(f"the projection is {projection.shape}, not [projected, {hidden}]")
        return Tower(model, tokenizer, projection)

    def load() -> Dtr:
        question, table = projections
        if len(question) != len(table):
            raise ValueError(f"the projections give {len(question)} and {len(table)} numbers")
        return Dtr(tower(QUESTION, question), tower(TABLE, table))

    found: Dtr = loaded(load, weights, COMMAND)
    return found


def _projections(folder: Path) -> tuple[Array, Array]:
    """Those of questions and of tables, each ``[projected, hidden]``."""
    import numpy as np

    def read() -> tuple[Array, Array]:
        arrays = load_archive(folder / PROJECTIONS)
        return (
            np.asarray(arrays["text_projection"], np.float32),
            np.asarray(arrays["table_projection"], np.float32),
        )

    found: tuple[Array, Array] = loaded(read, str(folder), COMMAND)
    return found


def _text(text: str) -> str:
    """A text as the authors' tokenizer takes it, in the form that makes transformers' do so.

    In lower case nothing is read as ``[SEP]``, and only a blank, not an empty text, is the
    token ``[EMPTY]``.
    """
    return text.lower() or " "


def _array_hash(array: Array) -> str:
    from hashlib import sha256

    return sha256(array.tobytes()).hexdigest()
