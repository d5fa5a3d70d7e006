"""MTQA: input and output as published, on a tiny BART with random weights."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.errors import InvalidReply, ModelNotInstalled, WeightsError
from dbrag.evaluation import experiments, run_eval
from dbrag.evaluation.baselines import mtqa, packages
from dbrag.evaluation.baselines.mtqa import Mtqa, as_published, flattened, load, read_answer
from dbrag.evaluation.datasets import Question
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.settings import Settings
from dbrag.types import Column, Table, TableRef

QUESTION = "How many Customers are there?"
WORDS = [
    *("<s>", "<pad>", "</s>", "<unk>", "|", ":", "col", "row", "count(*)", "name", "customers"),
    *("table_name", "<", ">", "how", "many", "are", "there", "?", "1", "2", "3"),
]


# ---- the texts, without torch ---------------------------------------------------------------


def test_tables_are_flattened_as_published() -> None:
    columns = (Column("Dept_ID"), Column("Name"), Column("Budget"))
    table = Table(TableRef("d", None, "department"), columns)
    rows = [(1, 'The "State"', 9.96), (2, None, 30266.0)]
    text = flattened(table, rows)
    assert text == (
        "<table_name> : department col : Dept_ID | Name | Budget "
        'row 1 : 1 | The "State" | 9.96 row 2 : 2 |  | 30266.0'
    )
    assert as_published(f" {text}").startswith("<table_name> : department col : dept_id | name |")
    assert '"' not in as_published(text)


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("col : count(*) row 1 : 11", ("count(*)",), ((11,),)),
        (
            " col : name | avg(x) row 1 : ann b | 1.50 row 2 :  | 007 ",
            ("name", "avg(x)"),
            (("ann b", Decimal("1.50")), (None, "007")),
        ),
        ("col : a row 1 : -3 row 2 : -0 row 10 : 1e5", ("a",), ((-3,), ("-0",), ("1e5",))),
        ("col : a", ("a",), ()),
        ("col : a row 1 : ", ("a",), ((None,),)),
        ("col : a row 1 : 1 | 2 row 2 : 3", ("a", ""), ((1, 2), (3, None))),
        ("col : a | b row 1 : 1", ("a", "b"), ((1, None),)),
        ("col : first row number row 1 : x row y", ("first row number",), (("x row y",),)),
    ],
)
def test_what_it_writes_is_read(text: str, columns: Any, rows: Any) -> None:
    assert read_answer(text) == (columns, rows)
    assert [type(v) for row in read_answer(text)[1] for v in row] == [
        type(v) for row in rows for v in row
    ]


@pytest.mark.parametrize(
    "text", ["", "11", "row 1 : 11", "the col : a row 1 : 2", "col :", "col : |"]
)
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(InvalidReply):
        read_answer(text)


def test_missing_packages_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(ModelNotInstalled, match="MTQA needs torch and transformers") as caught:
        load(Settings())
    assert "pip install" in caught.value.hint


def test_without_packages_a_run_is_told_as_not_run(
    small_shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    summary = evaluated(small_shop, tmp_path, "mtqa")
    assert "MTQA needs torch" in summary["not_run"]["reason"]
    assert "pip install" in summary["not_run"]["command"]
    assert "EX" not in summary
    assert not (tmp_path / "run" / "records.jsonl").exists()


# ---- with torch ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BART of one layer with random weights and a tokenizer of a few words."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder = tmp_path_factory.mktemp("bart")
    vocabulary = {word: place for place, word in enumerate(WORDS)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=len(WORDS),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=64,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
    )
    transformers.BartForConditionalGeneration(config).save_pretrained(folder)
    return folder


@contextmanager
def opened(path: Path, weights: Path, *, gold: bool = False, **settings: Any) -> Iterator[Mtqa]:
    model = FunctionModel(lambda _: "[1]")
    options = {"mtqa_model": str(weights), "rerank": "off", **settings}
    with dbrag.connect(path, chat_model=model, embedder=HashEmbedder(), **options) as db:
        db.index()
        yield Mtqa(experiments._tools(db), gold=gold)
    assert not model.prompts, "no chat model is asked"


def question(path: Path, *tables: str) -> Question:
    return Question("q-0", path.stem, QUESTION, tuple(TableRef(path.stem, None, t) for t in tables))


def evaluated(path: Path, tmp_path: Path, method: str, **settings: Any) -> dict[str, Any]:
    file = tmp_path / "questions.json"
    query = "SELECT count(*) FROM customers"
    file.write_text(json.dumps([{"db_id": path.stem, "question": QUESTION, "query": query}]))
    return run_eval(
        "answers",
        data=path,
        questions=file,
        settings=Settings(index=str(tmp_path / "index"), **settings),
        method=method,
        embedder=HashEmbedder(),
        out=tmp_path / "run",
    )


def writes(method: Mtqa, text: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Let the model write a text; what it was given is kept."""
    import torch

    given: list[dict[str, Any]] = []
    ids = [2, *(WORDS.index(word) for word in text.split()), 2]

    def generate(**options: Any) -> Any:
        given.append(options)
        return torch.tensor([ids])

    monkeypatch.setattr(method._model, "generate", generate)
    return given


def test_random_weights_give_an_answer_or_a_failure(small_shop: Path, weights: Path) -> None:
    with opened(small_shop, weights, m=1) as method:
        one, two = (method(question(small_shop, "customers")) for _ in range(2))
    assert one.status in ("answered", "failed")
    assert one.tokens["prompt"] > 5
    assert 1 < one.tokens["completion"] <= 64
    assert (one.rows, one.tokens, one.error) == (two.rows, two.tokens, two.error)
    if one.status == "failed":
        assert one.error is not None
        assert one.error["code"] == "invalid_reply"


def test_what_the_model_reads_and_how_it_writes(
    small_shop: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(small_shop, weights, gold=True) as method:
        given = writes(method, "col : count(*) row 1 : 3", monkeypatch)
        texts: list[str] = []
        monkeypatch.setattr(mtqa, "as_published", lambda t: texts.append(t) or as_published(t))
        prediction = method(question(small_shop, "customers"))
    assert (prediction.columns, prediction.rows) == (("count(*)",), ((3,),))
    assert prediction.status == "answered"
    assert texts[1] == (
        f"{QUESTION} <table_name> : customers col : customer_id | name | city "
        "row 1 : 1 | Anna Costa | Lisbon row 2 : 2 | Ben O'Brien | Dublin row 3 : 3 | 李雷 | "
    )
    (options,) = given
    assert (options["num_beams"], options["length_penalty"]) == (5, 0.5)
    assert options["max_length"] == 64  # of this small model; 1,024 as published
    assert prediction.warnings == ()


def test_what_is_too_long_is_cut_and_told(
    tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
        connection.executemany("INSERT INTO customers VALUES (?)", ((str(n),) for n in range(999)))
        connection.execute("CREATE TABLE empty (name TEXT)")
        connection.commit()
    read: list[int] = []
    original = mtqa.read_rows

    def spied(*given: Any) -> None:
        read.append(given[2])
        original(*given)

    with opened(path, weights) as method:
        given = writes(method, "col : name", monkeypatch)
        monkeypatch.setattr(mtqa, "read_rows", spied)
        prediction = method(question(path))
    assert prediction.warnings == ("input_cut",)
    assert given[0]["input_ids"].shape == (1, 64)
    assert max(read) <= 65, "no more rows than the model can read"


def test_an_answer_without_an_end_is_told(
    small_shop: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    with opened(small_shop, weights, m=1) as method:
        ids = [2, *(WORDS.index(word) for word in ["col", ":", "name", "row", "1", ":"])]
        monkeypatch.setattr(method._model, "generate", lambda **_: torch.tensor([ids]))
        prediction = method(question(small_shop))
    assert prediction.warnings == ("output_cut",)
    assert prediction.rows == ((None,),)


def test_the_gold_tables_are_read_where_they_are_given(
    small_shop: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(small_shop, weights, gold=True) as method:
        writes(method, "col : name", monkeypatch)
        prediction = method(question(small_shop, "orders", "order lines"))
    assert [ref.name for ref in prediction.tables] == ["orders", "order lines"]
    assert prediction.stages["retrieve"] == 0.0


def test_a_run_with_weights_of_a_folder(small_shop: Path, tmp_path: Path, weights: Path) -> None:
    summary = evaluated(small_shop, tmp_path, "mtqa-gold", mtqa_model=str(weights))
    assert (summary["n"], summary["EX"]) == (1, 0.0)
    assert summary["config"]["settings"]["mtqa_model"] == weights.name
    assert "model" not in summary["versions"]


def test_missing_weights_are_told_with_the_command(small_shop: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    with pytest.raises(WeightsError, match="weights missing: 'nobody/nothing'") as caught:
        load(Settings(mtqa_model="nobody/nothing", offline=True))
    assert caught.value.hint.startswith("hf download nobody/nothing --local-dir FOLDER")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    summary = evaluated(small_shop, tmp_path, "mtqa", mtqa_model=str(damaged))
    assert "weights missing" in summary["not_run"]["reason"]
