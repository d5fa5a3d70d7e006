"""MTQA: a baseline that writes the answer from flattened tables (section 4.2 of the paper).

MultiTabQA (Pal et al. 2023, https://aclanthology.org/2023.acl-long.348) is a BART that was
pre-trained on SQL queries with their tabular answers and fine-tuned on questions. It reads
``question <table_name> : t col : a | b row 1 : v | v …`` and writes ``col : a row 1 : v …``.
Input and generation are as published: lower case, no double quotes, NULL as an empty cell,
tables without rows left out, 1,024 tokens at most (what is beyond is cut, which the
prediction tells), five beams, length penalty 0.5. Its answers are in lower case.

The paper feeds it the retrieved tables; the figures of its authors are with the gold tables.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, ExecutionError, InvalidReply, LimitReached, SourceError
from dbrag.evaluation.baselines.packages import loaded, transformers_for
from dbrag.evaluation.baselines.reading import Found, read_rows, retrieved, summed, told
from dbrag.evaluation.methods import Prediction, Tools
from dbrag.values import text_value

if TYPE_CHECKING:
    from dbrag.evaluation.datasets import Question
    from dbrag.settings import Settings
    from dbrag.types import Table

MAX_TOKENS = 1_024
"""Of the input and of the answer, as published; of a smaller model what it holds."""
BEAMS = 5
LENGTH_PENALTY = 0.5
INPUT_CUT, OUTPUT_CUT = "input_cut", "output_cut"
"""Warnings: the tables did not fit, the answer did not end."""

_ROW = re.compile(r"(?:\A|\s+)row\s+\d+\s+:(?:\s+|\Z)")
_COLUMNS = re.compile(r"\Acol\s+:(?:\s+|\Z)")
_INTEGER = re.compile(r"(?:0|-?[1-9]\d*)\Z")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)\.\d+\Z")
_UNREADABLE = (LimitReached, SourceError, ExecutionError)


class Mtqa:
    """Answers questions with MultiTabQA; see the module's text.

    Args:
        tools: what methods are made from.
        gold: read the gold tables in place of the retrieved ones.

    Raises:
        ModelNotInstalled: torch or transformers is missing.
        WeightsError: the weights are.
    """

    def __init__(self, tools: Tools, *, gold: bool = False) -> None:
        self._tools = tools
        self._gold = gold
        self._model, self._tokenizer = load(tools.db.settings)
        positions = int(getattr(self._model.config, "max_position_embeddings", MAX_TOKENS))
        self._most_tokens = min(MAX_TOKENS, positions)

    def __call__(self, question: Question) -> Prediction:
        """One question.

        Raises:
            ModelError: the chat model was to rerank and fails.
            UsageError: the question is empty or too long.
        """
        found = self._found(question)
        started = time.perf_counter()
        tokens: dict[str, int] = {}
        warnings: list[str] = []
        columns: tuple[str, ...] = ()
        rows: tuple[tuple[Any, ...], ...] = ()
        error: DbragError | None = None
        read_s = 0.0
        try:
            text = self._input(question.question, found.tables)
            read_s = time.perf_counter() - started
            written = self._written(text, tokens, warnings)
            columns, rows = read_answer(written)
        except (InvalidReply, *_UNREADABLE) as caught:
            error = caught
        return Prediction(
            status="failed" if error else "answered",
            columns=columns,
            rows=rows,
            tables=tuple(table.ref for table in found.tables),
            tokens=summed(found.tokens, tokens),
            stages={
                "retrieve": found.seconds,
                "execute": read_s,
                "reason": time.perf_counter() - started - read_s,
            },
            warnings=tuple(warnings),
            error=told(error) if error else None,
        )

    def _found(self, question: Question) -> Found:
        if not self._gold:
            return retrieved(self._tools, question.question)
        return Found(tuple(self._tools.catalog.by_ref[ref] for ref in question.tables))

    def _input(self, question: str, tables: Sequence[Table]) -> str:
        """Question and tables as one text; rows are read no further than the model reads.

        Raises:
            LimitReached, SourceError, ExecutionError: a table cannot be read.
        """
        db = self._tools.db
        parts, used = [question.replace("<>", "!=")], 0
        for table in tables:
            if used > self._most_tokens:
                break
            rows: list[Sequence[Any]] = []

            def keep(new: Sequence[tuple[Any, ...]], rows: list[Sequence[Any]] = rows) -> bool:
                rows.extend(new)
                return True

            # no row takes less than a token
            most = self._most_tokens - used + 1
            read_rows(db.source(table.ref.source), table, most, db.settings.timeout_s, keep)
            if rows:
                parts.append(flattened(table, rows))
                used += len(self._ids(parts[-1]))
        return as_published(" ".join(parts))

    def _ids(self, text: str) -> Sequence[int]:
        found: Sequence[int] = self._tokenizer(as_published(text))["input_ids"]
        return found

    def _written(self, text: str, tokens: dict[str, int], warnings: list[str]) -> str:
        """What the model writes; ``tokens`` and ``warnings`` are filled."""
        if len(self._ids(text)) > self._most_tokens:
            warnings.append(INPUT_CUT)
        inputs = self._tokenizer(
            text, return_tensors="pt", truncation=True, max_length=self._most_tokens
        )
        with import_module("torch").inference_mode():
            output = self._model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                num_beams=BEAMS,
                length_penalty=LENGTH_PENALTY,
                max_length=self._most_tokens,
                do_sample=False,
            )[0]
        tokens.update(prompt=int(inputs["input_ids"].shape[1]), completion=int(output.shape[0]))
        if self._model.config.eos_token_id not in output[1:].tolist():
            warnings.append(OUTPUT_CUT)
        written: str = self._tokenizer.decode(output, skip_special_tokens=True)
        return written


def load(settings: Settings) -> tuple[Any, Any]:
    """The model and its tokenizer, of the setting ``mtqa_model``.

    Raises:
        ModelNotInstalled: torch or transformers is missing.
        WeightsError: there are no such weights here, and the hub does not give them.
    """
    transformers = transformers_for("MTQA")
    name = settings.mtqa_model
    folder = Path(name).expanduser()
    here = folder.is_dir()
    place = str(folder) if here else name
    options = {"local_files_only": settings.offline or here}

    def read() -> tuple[Any, Any]:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(place, **options)
        return model.eval(), tokenizer

    command = f"hf download {name} --local-dir FOLDER, then DBRAG_MTQA_MODEL=FOLDER dbrag eval …"
    found: tuple[Any, Any] = loaded(read, name, command)
    return found


def flattened(table: Table, rows: Sequence[Sequence[Any]]) -> str:
    """``<table_name> : t col : a | b row 1 : v | v row 2 : …``."""
    parts = [f"<table_name> : {table.ref.name}"]
    parts.append("col : " + " | ".join(column.name for column in table.columns))
    for number, row in enumerate(rows, start=1):
        cells = ("" if value is None else text_value(value) for value in row)
        parts.append(f"row {number} : " + " | ".join(cells))
    return " ".join(parts)


def as_published(text: str) -> str:
    """Text as the model was trained on it."""
    return text.strip().lower().replace('"', "")


def read_answer(text: str) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """``col : a | b row 1 : v | v …`` as names ``[n_columns]``, rows ``[n_rows][n_columns]``.

    An empty cell is NULL, as in the input; what is written as a number is one. Where rows
    are of unequal length, the short ones end in NULLs and the names in empty ones: the
    paper's metrics of rows and cells count what is there.

    Raises:
        InvalidReply: it does not begin with columns, or has none.
    """
    text = text.strip()
    head = _COLUMNS.match(text)
    if head is None:
        raise InvalidReply(f"MTQA wrote no table but {text[:120]!r}")
    first, *others = _ROW.split(text[head.end() :])
    names = [name.strip() for name in first.split("|")]
    if not any(names):
        raise InvalidReply(f"MTQA wrote a table without columns: {text[:120]!r}")
    rows = [[_cell(cell.strip()) for cell in row.split("|")] for row in others]
    width = max(len(names), *map(len, rows)) if rows else len(names)
    columns = [*names, *[""] * (width - len(names))]
    return tuple(columns), tuple((*row, *[None] * (width - len(row))) for row in rows)


def _cell(text: str) -> Any:
    if not text:
        return None
    if _INTEGER.match(text):
        return int(text)
    return Decimal(text) if _DECIMAL.match(text) else text  # 1.50 stays as it is written
