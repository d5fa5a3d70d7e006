"""DTR's loading and scores, on TAPAS encoders of two layers with random weights."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dbrag.errors import WeightsError
from dbrag.evaluation.baselines.dtr import PROJECTIONS, QUESTION, TABLE, load_dtr
from dbrag.types import Column, Table, TableRef

from .heavy import heavy

torch = heavy("torch")
transformers = heavy("transformers")
pd = heavy("pandas")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[EMPTY]", "ship", "name", "id", "who"]
WORDS += [*"0123456789", "old", "new", "##s", "age"]
HIDDEN, PROJECTED, LIMIT = 8, 4, 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny-dtr"
    vocabulary = path.parent / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS))
    for seed, part in enumerate((QUESTION, TABLE)):
        torch.manual_seed(seed)
        config = transformers.TapasConfig(
            vocab_size=len(WORDS),
            hidden_size=HIDDEN,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=LIMIT,
        )
        transformers.TapasModel(config).save_pretrained(path / part)
        transformers.TapasTokenizer(str(vocabulary)).save_pretrained(path / part)
    random = np.random.default_rng(0)
    np.savez(
        path / PROJECTIONS,
        text_projection=random.normal(size=(PROJECTED, HIDDEN)),
        table_projection=random.normal(size=(PROJECTED, HIDDEN)),
    )
    return path


def table(name: str = "old_ships", columns: int = 2, rows: int = 2) -> Table:
    names = [f"{'name' if i % 2 else 'id'} {i}" for i in range(columns)]
    cells = tuple(
        tuple(None if i == 1 else str(r + i) for i in range(columns)) for r in range(rows)
    )
    return Table(TableRef("fleet", None, name), tuple(Column(n) for n in names), sample_rows=cells)


def test_the_score_is_the_product_of_projected_pooled_outputs(folder: Path, tmp_path: Path) -> None:
    tables = [table(), table("new_ships", 3)]
    scorer = load_dtr(str(folder)).over(tables, tmp_path)
    arrays = np.load(folder / PROJECTIONS)
    question = transformers.TapasModel.from_pretrained(folder / QUESTION).eval()
    tower = transformers.TapasModel.from_pretrained(folder / TABLE).eval()
    tokenizer = transformers.TapasTokenizer.from_pretrained(folder / TABLE)
    ids = tokenizer.convert_tokens_to_ids(["[CLS]", "who", "name", "##s", "ship", "[SEP]"])
    with torch.no_grad():
        asked = question(
            input_ids=torch.tensor([ids]), token_type_ids=torch.zeros(1, len(ids), 7).long()
        ).pooler_output[0]
    left = arrays["text_projection"] @ asked.numpy()
    for one, score in zip(tables, scorer.scores("who names ship"), strict=True):
        header = [c.name for c in one.columns]
        frame = pd.DataFrame([[v or " " for v in row] for row in one.sample_rows], columns=header)
        inputs = tokenizer(table=frame, queries=one.ref.name.replace("_", " "), return_tensors="pt")
        assert inputs["token_type_ids"][0, :, 1].max() == len(header)  # columns are told apart
        with torch.no_grad():
            pooled = tower(**inputs).pooler_output[0].numpy()
        assert score == pytest.approx(left @ (arrays["table_projection"] @ pooled), rel=1e-4)


def test_the_two_encoders_are_not_interchanged(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "swapped"
    other.mkdir()
    (other / QUESTION).symlink_to(folder / TABLE)
    (other / TABLE).symlink_to(folder / QUESTION)
    (other / PROJECTIONS).symlink_to(folder / PROJECTIONS)
    tables = [table()]
    one = load_dtr(str(folder)).over(tables, tmp_path).scores("who")
    assert load_dtr(str(other)).over(tables, tmp_path).scores("who") != pytest.approx(one)


def shown(folder: Path, one: Table) -> Any:
    """The inputs that the table's encoder gets, ``[n_tokens]`` and ``[n_tokens, 7]``."""
    tower, seen = load_dtr(str(folder)).table, []
    tower._projected = lambda inputs: seen.append(inputs)  # type: ignore[assignment, method-assign]
    tower.table(one)
    return seen[0]["input_ids"][0], seen[0]["token_type_ids"][0]


@pytest.mark.parametrize(
    ("columns", "rows", "columns_shown", "rows_shown"),
    [
        (2, 2, 2, 2),
        (200, 0, 35, 0),  # of 40 tokens five are [CLS] old ship ##s [SEP]
        (200, 2, 11, 2),
        (300, 1, 17, 1),
        (2, 200, 2, 16),
        (5, 200, 5, 6),
    ],
)
def test_columns_and_rows_are_left_out_of_what_is_too_long(
    folder: Path, columns: int, rows: int, columns_shown: int, rows_shown: int
) -> None:
    ids, kinds = shown(folder, table(columns=columns, rows=rows))
    assert len(ids) <= LIMIT
    assert (kinds[:, 1].max(), kinds[:, 2].max()) == (columns_shown, rows_shown)
    assert load_dtr(str(folder)).table.table(table(columns=columns, rows=rows)).shape == (4,)


def test_there_are_no_more_columns_and_rows_than_the_encoder_has_numbers_for(
    folder: Path, tmp_path: Path
) -> None:
    few = shutil.copytree(folder, tmp_path / "few")
    config = transformers.TapasConfig.from_pretrained(few / TABLE)
    config.type_vocab_sizes = [3, 5, 4, 2, 256, 256, 10]
    transformers.TapasModel(config).save_pretrained(few / TABLE)
    _, kinds = shown(few, table(columns=6, rows=5))
    assert (kinds[:, 1].max(), kinds[:, 2].max()) == (4, 3)
    assert load_dtr(str(few)).table.table(table(columns=6, rows=5)).shape == (PROJECTED,)


def test_the_title_is_no_question_to_its_cells(folder: Path) -> None:
    _, kinds = shown(folder, table("ships 1"))
    assert kinds[:, 4].max() == 2  # the rank of a number in its column
    assert kinds[:, 6].max() == 0
    tokenizer = transformers.TapasTokenizer.from_pretrained(folder / TABLE)
    frame = pd.DataFrame([["0"], ["1"]], columns=["id"])
    asked = tokenizer(table=frame, queries="ships 1", return_tensors="pt")["token_type_ids"][0]
    assert asked[:, 6].max() > 0  # what the tokenizer makes of a question


def test_an_empty_cell_is_a_token_of_its_own(folder: Path) -> None:
    ids, kinds = shown(folder, table())
    in_second = ids[(kinds[:, 1] == 2) & (kinds[:, 2] > 0)]
    assert in_second.tolist() == [WORDS.index("[EMPTY]")] * 2
    ids, kinds = shown(folder, replace(table(), sample_rows=(("1", "[SEP]"),)))
    assert ids[kinds[:, 2] == 1].tolist() == [WORDS.index(w) for w in ["1", *["[UNK]"] * 3]]


def test_a_long_question_is_cut(folder: Path) -> None:
    tower, seen = load_dtr(str(folder)).question, []
    tower._projected = lambda inputs: seen.append(inputs)  # type: ignore[assignment, method-assign]
    tower.question("who " * 100)
    ids = seen[0]["input_ids"][0].tolist()
    assert ids == [WORDS.index("[CLS]"), *[WORDS.index("who")] * (LIMIT - 1)]


def test_vectors_are_of_the_configuration_too(folder: Path, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    written = json.loads((other / TABLE / "config.json").read_text())
    turned = not written["reset_position_index_per_cell"]
    written["reset_position_index_per_cell"] = turned
    (other / TABLE / "config.json").write_text(json.dumps(written))
    assert load_dtr(str(folder)).table.sha256 != load_dtr(str(other)).table.sha256


def test_a_table_without_columns_is_told(folder: Path) -> None:
    with pytest.raises(WeightsError, match=r"hold no column of 'fleet\.old_ships'"):
        load_dtr(str(folder)).table.table(table(columns=0, rows=0))


def test_vectors_are_remembered(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_dtr(str(folder)).over([table()], tmp_path).scores("who")
    again = load_dtr(str(folder))
    monkeypatch.setattr(type(again.table), "table", lambda *_: pytest.fail("encoded again"))
    assert again.over([table()], tmp_path).scores("who").tolist() == first.tolist()


def test_missing_weights(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="weights missing") as caught:
        load_dtr(None)
    assert "--weights FOLDER" in caught.value.hint
    assert "python experiments/convert_dtr.py CHECKPOINT FOLDER" in caught.value.hint
    with pytest.raises(WeightsError, match=r"weights missing: .*No such file"):
        load_dtr(str(tmp_path))
    np.savez(tmp_path / PROJECTIONS, text_projection=np.zeros((2, 3)))
    with pytest.raises(WeightsError, match="table_projection"):
        load_dtr(str(tmp_path))


def test_projections_must_fit(folder: Path, tmp_path: Path) -> None:
    for part in (QUESTION, TABLE):
        (tmp_path / part).symlink_to(folder / part)
    shapes = {"text_projection": (4, HIDDEN), "table_projection": (4, HIDDEN + 1)}
    np.savez(tmp_path / PROJECTIONS, **{n: np.zeros(s) for n, s in shapes.items()})
    with pytest.raises(WeightsError, match=r"the projection is \(4, 9\), not"):
        load_dtr(str(tmp_path))
    shapes["table_projection"] = (5, HIDDEN)
    np.savez(tmp_path / PROJECTIONS, **{n: np.zeros(s) for n, s in shapes.items()})
    with pytest.raises(WeightsError, match="give 4 and 5 numbers"):
        load_dtr(str(tmp_path))


def test_the_vocabulary_of_the_tests_is_whole(folder: Path) -> None:
    config = json.loads((folder / TABLE / "config.json").read_text())
    assert config["vocab_size"] == len(WORDS)
    assert len(config["type_vocab_sizes"]) == 7
