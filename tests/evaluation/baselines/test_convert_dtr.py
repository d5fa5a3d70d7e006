"""``experiments/convert_dtr.py``: variables of TensorFlow 1 become what ``dtr`` loads."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dbrag.errors import DbragError, ModelNotInstalled, UsageError, WeightsError
from dbrag.evaluation.baselines.dtr import QUESTION, TABLE, load_dtr
from dbrag.types import Column, Table, TableRef

from .dtr_numpy import CONFIG, HIDDEN, KINDS, WORDS, pooled, random_variables, write_beside
from .heavy import heavy

torch = heavy("torch")
transformers = heavy("transformers")
pd = heavy("pandas")

SCRIPT = runpy.run_path(str(Path(__file__).parents[3] / "experiments" / "convert_dtr.py"))
convert, settings, variable_of = SCRIPT["convert"], SCRIPT["settings"], SCRIPT["variable_of"]
QUESTION_WORDS = ["[CLS]", "who", "name", "##s", "ship", "[SEP]"]
SHIPS = Table(
    TableRef("fleet", None, "old_ships"),
    (Column("id"), Column("name")),
    sample_rows=(("1", "new"), ("0", None)),
)
TABLE_WORDS = ["[CLS]", "old", "ship", "##s", "[SEP]", "id", "name", "1", "new", "0", "[EMPTY]"]
TABLE_KINDS = np.array(
    [
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1],  # the table, not its title
        [0, 0, 0, 0, 0, 1, 2, 1, 2, 1, 2],  # column
        [0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2],  # row
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0],  # rank among the numbers of the column
        [0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0],  # and from the other end
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
).T


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    return write_beside(tmp_path / "published")


def question_of(variables: Mapping[str, Any], scope: str) -> Any:
    return pooled(variables, scope, QUESTION_WORDS, np.zeros((len(QUESTION_WORDS), 7), int))


def test_both_towers_give_what_the_checkpoint_gives(beside: Path, tmp_path: Path) -> None:
    variables = random_variables()
    assert convert(variables, beside, tmp_path / "made") == []
    dtr = load_dtr(str(tmp_path / "made"))
    asked = variables["text_projection"] @ question_of(variables, "bert_1")
    assert dtr.question.question("who names ship") == pytest.approx(asked, abs=1e-5)
    seen = pooled(variables, "bert", TABLE_WORDS, TABLE_KINDS)
    seen = variables["table_projection"] @ seen
    assert dtr.table.table(SHIPS) == pytest.approx(seen, abs=1e-5)
    (score,) = dtr.over([SHIPS], tmp_path / "cache").scores("who names ship")
    assert score == pytest.approx(asked @ seen, abs=1e-4)


def test_every_parameter_of_a_model_comes_back(beside: Path, tmp_path: Path) -> None:
    model = transformers.TapasModel(transformers.TapasConfig(**settings(CONFIG)))
    variables = random_variables(("bert",))
    for name, value in model.state_dict().items():
        array = value.numpy()
        there = variable_of(name, "bert")
        variables[there] = array.T if there.endswith("kernel") else array
    convert(variables, beside, tmp_path / "made")
    for part in (QUESTION, TABLE):
        again = transformers.TapasModel.from_pretrained(tmp_path / "made" / part).state_dict()
        assert set(again) == set(model.state_dict())
        assert all(torch.equal(again[name], value) for name, value in model.state_dict().items())


def test_one_encoder_is_both(beside: Path, tmp_path: Path) -> None:
    variables = random_variables(("bert",))
    told = convert(variables, beside, tmp_path / "made")
    assert told == ["there is one encoder: questions and tables share it"]
    asked = load_dtr(str(tmp_path / "made")).question.question("who names ship")
    expected = variables["text_projection"] @ question_of(variables, "bert")
    assert asked == pytest.approx(expected, abs=1e-5)


def test_without_projections_pooled_outputs_are_compared(beside: Path, tmp_path: Path) -> None:
    variables = {n: v for n, v in random_variables().items() if "projection" not in n}
    assert convert(variables, beside, tmp_path / "made") == [
        "there are no projections: they are the identity"
    ]
    asked = load_dtr(str(tmp_path / "made")).question.question("who names ship")
    assert asked == pytest.approx(question_of(variables, "bert_1"), abs=1e-5)


@pytest.mark.parametrize(
    "missing",
    [
        "bert_1/encoder/layer_1/output/dense/kernel",
        "bert/embeddings/token_type_embeddings_6",
        "text_projection",
    ],
)
def test_missing_variables_are_named(missing: str, beside: Path, tmp_path: Path) -> None:
    variables = random_variables()
    del variables[missing]
    with pytest.raises(WeightsError, match=f"the checkpoint lacks {missing}$"):
        convert(variables, beside, tmp_path / "made")
    assert not list(tmp_path.glob("*made*"))  # nor a hidden one


def test_variables_without_a_place_are_named(beside: Path, tmp_path: Path) -> None:
    variables = random_variables()
    variables["cls/predictions/output_bias"] = np.zeros(len(WORDS), np.float32)
    variables["bert/encoder/layer_2/output/dense/bias"] = np.zeros(HIDDEN, np.float32)
    both = r"bert/encoder/layer_2/output/dense/bias, cls/predictions/output_bias$"
    with pytest.raises(WeightsError, match=f"no place for {both}") as caught:
        convert(variables, beside, tmp_path / "made")
    assert "--ignore" in caught.value.hint
    with pytest.raises(WeightsError, match="no place for bert/encoder/layer_2"):
        convert(variables, beside, tmp_path / "made", ["cls/"])
    assert convert(variables, beside, tmp_path / "made", ["cls/", "bert/encoder/layer_2/"]) == []


def test_variables_of_the_training_are_left_out(beside: Path, tmp_path: Path) -> None:
    variables = random_variables()
    for name in list(variables):
        variables |= {f"{name}/adam_m": variables[name], f"{name}/adam_v": variables[name]}
    variables["global_step"] = np.array(5000)
    told = f"left out, of the training: {len(random_variables()) * 2 + 1:,}"
    assert convert(variables, beside, tmp_path / "made") == [told]


def test_shapes_must_be_those_of_the_configuration(beside: Path, tmp_path: Path) -> None:
    variables = random_variables()
    variables["bert/pooler/dense/bias"] = np.zeros(HIDDEN + 1, np.float32)
    with pytest.raises(WeightsError, match=r"bert/pooler/dense/bias makes .* \(13,\), .* \(12,\)"):
        convert(variables, beside, tmp_path / "made")
    variables = random_variables()
    variables["table_projection"] = variables["table_projection"].T
    with pytest.raises(WeightsError, match=r"table_projection \(12, 5\) are not both"):
        convert(variables, beside, tmp_path / "made")
    assert not list(tmp_path.glob("*made*"))  # nor a hidden one


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"type_vocab_size": 16}, "not of TAPAS: type_vocab_size 16"),
        ({"type_vocab_size": KINDS[:3]}, "not of TAPAS"),
        ({"hidden_act": "swish"}, "unknown hidden_act 'swish'"),
        ({"softmax_temperature": 0.5}, "no softmax_temperature 0.5"),
        ({"vocab_size": 3}, "has 24 words, the encoders 3"),
    ],
)
def test_configurations_that_cannot_be_met(
    changed: dict[str, Any], told: str, tmp_path: Path
) -> None:
    beside = write_beside(tmp_path / "published", **changed)
    with pytest.raises(WeightsError, match=told):
        convert(random_variables(), beside, tmp_path / "made")


def test_files_beside_the_checkpoint(beside: Path, tmp_path: Path) -> None:
    (beside / "vocab.txt").write_text("\n".join(WORDS[:4]))
    with pytest.raises(WeightsError, match=r"vocab\.txt' lacks \[MASK\], \[EMPTY\]"):
        convert(random_variables(), beside, tmp_path / "made")
    (beside / "bert_config.json").write_text('{"hidden_size": 12}')
    with pytest.raises(WeightsError, match=r"bert_config\.json lacks vocab_size, num_hidden"):
        convert(random_variables(), beside, tmp_path / "made")
    (beside / "bert_config.json").unlink()
    with pytest.raises(WeightsError, match=r"cannot read '.*bert_config\.json'"):
        convert(random_variables(), beside, tmp_path / "made")
    with pytest.raises(UsageError, match="exists"):
        convert(random_variables(), beside, beside)


TENSORFLOW = """
import os, pathlib, numpy
print("a library greets")
class train:
    def load_checkpoint(prefix):
        variables = dict(numpy.load(prefix + ".npz"))
        class Reader:
            def get_variable_to_shape_map(self):
                return {name: list(value.shape) for name, value in variables.items()}
            def get_tensor(self, name):
                assert "adam" not in name  # 5 GB of a large one
                %s
                return variables[name]
        return Reader()
"""


class Published:
    """A checkpoint, and in the place of TensorFlow a module that reads it."""

    def __init__(self, beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._module = beside / "tensorflow.py"
        self.tensorflow(TENSORFLOW % "pass")
        monkeypatch.setenv("PYTHONPATH", str(beside))
        (beside / "model.ckpt.index").touch()
        variables = random_variables() | {"bert/pooler/dense/bias/adam_m": np.zeros(12)}
        np.savez(beside / "model.ckpt.npz", **variables)  # type: ignore[arg-type]
        self.made = beside.parent / "made"
        self.arguments = [str(beside / "model.ckpt"), str(self.made)]

    def tensorflow(self, source: str) -> None:
        self._module.write_text(source)


@pytest.fixture
def published(beside: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    return Published(beside, monkeypatch)


def test_the_command(published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    assert SCRIPT["main"](published.arguments) == 0
    shown = capsys.readouterr()
    assert shown.out == f"dbrag eval retrieval --method dtr --weights {published.made}\n"
    assert shown.err.endswith("left out, of the training: 1\n")
    asked = load_dtr(str(published.made)).question.question("who names ship")
    variables = random_variables()
    expected = variables["text_projection"] @ question_of(variables, "bert_1")
    assert asked == pytest.approx(expected, abs=1e-5)
    assert "tensorflow" not in sys.modules  # it crashes beside torch
    assert SCRIPT["main"](published.arguments) == UsageError.exit_code
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "error", "told"),
    [
        ("raise ImportError('none here')", ModelNotInstalled, "pip install tensorflow"),
        ("import os; os.abort()", WeightsError, "its reader ended with code"),
        (TENSORFLOW % "raise IndexError('block 3')", WeightsError, "model.ckpt': block 3"),
        (TENSORFLOW % "os._exit(3)", WeightsError, "its reader ended with code 3"),
    ],
)
def test_what_keeps_a_checkpoint_from_being_read_is_told(
    source: str,
    error: type[DbragError],
    told: str,
    published: Published,
    capsys: pytest.CaptureFixture[str],
) -> None:
    published.tensorflow(source)
    assert SCRIPT["main"](published.arguments) == error.exit_code
    assert told in capsys.readouterr().err
    assert not published.made.exists()


def test_places_that_are_none(published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    assert SCRIPT["main"]([*published.arguments, "--tensorflow", "/none"]) == UsageError.exit_code
    assert "cannot run '/none'" in capsys.readouterr().err
    arguments = [f"{published.arguments[0]}.index", published.arguments[1]]
    assert SCRIPT["main"](arguments) == WeightsError.exit_code
    assert "its .index is missing" in capsys.readouterr().err
