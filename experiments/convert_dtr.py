"""Turn a published checkpoint of DTR into the folder that ``--method dtr --weights`` reads.

``python experiments/convert_dtr.py tapas_nq_hn_retriever_large/model.ckpt FOLDER``

The checkpoints of google-research/tapas (its DENSE_TABLE_RETRIEVER.md links them) are of
TensorFlow 1. What is which follows from tapas/models/table_retriever_model.py: the tables'
encoder is built first, so its variables are ``bert/…``; the questions' is ``bert_1/…``. Each
is multiplied by its projection, ``table_projection`` and ``text_projection``, both
``[projected, hidden]``; a checkpoint without them (``proj_0``) compares the pooled outputs
themselves, which is the identity here. Where there is no ``bert_1/…``, ``bert/…`` is both.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbrag.errors import DbragError, ModelNotInstalled, UsageError, WeightsError
from dbrag.evaluation.baselines.dtr import PROJECTIONS, QUESTION, TABLE
from dbrag.evaluation.baselines.packages import need, transformers_for

Array = NDArray[Any]

READER = Path(__file__).with_name("read_checkpoint.py")
TOWERS = {TABLE: "bert", QUESTION: "bert_1"}
MATRICES = ("text_projection", "table_projection")
OF_TRAINING = re.compile(r"(.*/)?(adam_m|adam_v|accum|counter|global_step)")
"""Variables of the optimiser (tapas/models/bert/optimization.py), of no use to an encoder."""
ACTIVATIONS = {"gelu": "gelu_new", "relu": "relu", "tanh": "tanh"}
"""In TAPAS ``gelu`` is the one by tanh, in transformers the exact one."""
SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[EMPTY]")
DOWNLOAD = "unpack the archive as published and give the prefix, as FOLDER/model.ckpt"


class Checkpoint(Mapping[str, Array]):
    """The variables of a checkpoint, read as they are asked for by ``read_checkpoint.py``.

    A large one is 8 GB with the variables of its optimiser, which are never read.

    Args:
        prefix: of the files, without ``.index`` and ``.data-…``.
        python: the Python that has TensorFlow.

    Raises:
        ModelNotInstalled: TensorFlow is missing.
        UsageError: there is no such Python.
        WeightsError: there is no checkpoint, or it cannot be read.
    """

    def __init__(self, prefix: Path, python: str = sys.executable) -> None:
        self._prefix = prefix
        if not prefix.with_name(f"{prefix.name}.index").is_file():
            raise WeightsError(f"no checkpoint {str(prefix)!r}: its .index is missing", DOWNLOAD)
        try:
            self._reader: Any = subprocess.Popen(  # noqa: S603 - the user names the Python
                [python, str(READER), str(prefix)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ},
            )
        except OSError as error:
            raise UsageError(
                f"cannot run {python!r}: {error.strerror}", "give --tensorflow another Python"
            ) from error
        try:
            self._names: list[str] = self._told("names")
        except DbragError:
            self.close()
            raise

    def close(self) -> None:
        """End the process that reads."""
        self._reader.kill()
        self._reader.communicate()

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        with suppress(OSError):  # it has ended: told below
            self._reader.stdin.write(json.dumps(name).encode() + b"\n")
            self._reader.stdin.flush()
        shape = self._told("shape")
        size = 4 * math.prod(shape)
        values = self._reader.stdout.read(size)
        if len(values) != size:
            raise self._unreadable(f"{name} ends early")
        return np.frombuffer(values, np.float32).reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _told(self, key: str) -> Any:
        """What the next line says."""
        line = self._reader.stdout.readline()
        if not line:
            raise self._unreadable(f"its reader ended with code {self._reader.wait()}")
        told = json.loads(line)
        if "lacks" in told:
            raise ModelNotInstalled(
                f"reading the checkpoint needs tensorflow ({told['lacks']})",
                "pip install tensorflow, here or where --tensorflow PYTHON then says",
            )
        if "error" in told:
            raise self._unreadable(told["error"])
        return told[key]

    def _unreadable(self, reason: str) -> WeightsError:
        reason = " ".join(reason.split())[:200]
        return WeightsError(f"cannot read the checkpoint {str(self._prefix)!r}: {reason}", DOWNLOAD)


def convert(
    variables: Mapping[str, Array], beside: Path, folder: Path, ignored: Sequence[str] = ()
) -> list[str]:
    """Write both encoders with their tokenizers, and the projections.

    The folder appears when all of it is written.

    Args:
        variables: of the checkpoint, by name.
        beside: the folder of ``bert_config.json`` and ``vocab.txt``.
        folder: to be made.
        ignored: beginnings of names of variables that may be left over.

    Returns:
        What was assumed or left out, one sentence each.

    Raises:
        ModelNotInstalled: torch, transformers or pandas is missing.
        UsageError: the folder exists or cannot be written.
        WeightsError: a variable is missing, left over or of another shape, or a file beside
            the checkpoint is not of the form.
    """
    transformers = transformers_for("dtr")
    need("dtr", "pandas")  # the tokenizer of TAPAS reads data frames
    if folder.exists():
        raise UsageError(f"{str(folder)!r} exists", "choose another folder")
    config = transformers.TapasConfig(**settings(_config(beside / "bert_config.json")))
    tokenizer = _tokenizer(transformers, beside / "vocab.txt", config)
    assumed = []
    towers = dict(TOWERS)
    if not any(name.startswith("bert_1/") for name in variables):
        towers[QUESTION] = towers[TABLE]
        assumed.append("there is one encoder: questions and tables share it")
    projections = _projections(variables, int(config.hidden_size))
    if not set(MATRICES) & set(variables):
        assumed.append("there are no projections: they are the identity")
    model = transformers.TapasModel(config)
    wanted = {
        part: {name: variable_of(name, scope) for name in model.state_dict()}
        for part, scope in towers.items()
    }
    used = {variable for names in wanted.values() for variable in names.values()}
    left = _complete(variables, used | set(MATRICES) & set(variables), ignored)
    if left:
        assumed.append(f"left out, of the training: {left:,}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as made:
            unfinished = Path(made) / folder.name
            for part, names in wanted.items():
                fill(model, names, variables)
                model.save_pretrained(unfinished / part)
                tokenizer.save_pretrained(unfinished / part)
            np.savez(unfinished / PROJECTIONS, **projections)  # type: ignore[arg-type]
            unfinished.rename(folder)
    except OSError as error:
        raise UsageError(
            f"cannot write {str(folder)!r}: {error.strerror or error}", "choose another folder"
        ) from error
    return assumed


def settings(bert: Mapping[str, Any]) -> dict[str, Any]:
    """What ``TapasConfig`` is made of, from what ``bert_config.json`` says.

    Raises:
        WeightsError: it lacks a size, or asks for what TapasModel cannot do.
    """
    missing = [name for name in (*SIZES, "type_vocab_size") if name not in bert]
    if missing:
        raise WeightsError(f"bert_config.json lacks {', '.join(missing)}", DOWNLOAD)
    kinds, activation = bert["type_vocab_size"], bert.get("hidden_act", "gelu")
    if not isinstance(kinds, list) or len(kinds) != 7:
        raise WeightsError(f"bert_config.json is not of TAPAS: type_vocab_size {kinds!r}", DOWNLOAD)
    if activation not in ACTIVATIONS:
        raise WeightsError(f"bert_config.json has an unknown hidden_act {activation!r}", DOWNLOAD)
    if bert.get("softmax_temperature", 1.0) != 1.0:
        raise WeightsError(
            f"a TapasModel has no softmax_temperature {bert['softmax_temperature']!r}", DOWNLOAD
        )
    return {
        **{name: bert[name] for name in SIZES},
        "type_vocab_sizes": kinds,
        "hidden_act": ACTIVATIONS[activation],
        "layer_norm_eps": 1e-12,  # of tf_slim.layer_norm
        "reset_position_index_per_cell": False,  # unlike other models of TAPAS
    }


def variable_of(parameter: str, scope: str) -> str:
    """The variable that a parameter of TapasModel comes from.

    ``encoder.layer.3.output.dense.weight`` of scope ``bert`` comes from
    ``bert/encoder/layer_3/output/dense/kernel``.
    """
    path, kind = parameter.replace("encoder.layer.", "encoder.layer_").rsplit(".", 1)
    parts = path.split(".")
    if parts[-1] == "LayerNorm":
        parts.append("gamma" if kind == "weight" else "beta")
    elif parts[0] != "embeddings":
        parts.append("kernel" if kind == "weight" else kind)
    return "/".join([scope, *parts])


def fill(model: Any, names: Mapping[str, str], variables: Mapping[str, Array]) -> None:
    """Set all parameters of a TapasModel.

    Args:
        names: the variable of each parameter. A ``kernel`` is ``[in, out]``, a weight of
            torch ``[out, in]``.

    Raises:
        WeightsError: a variable has another shape than its parameter.
    """
    import torch

    state = {}
    for parameter, there in model.state_dict().items():
        name = names[parameter]
        array = np.asarray(variables[name], np.float32)
        if name.endswith("/kernel"):
            array = array.T
        if array.shape != tuple(there.shape):
            raise WeightsError(
                f"{name} makes {parameter} {array.shape}, bert_config.json {tuple(there.shape)}",
                DOWNLOAD,
            )
        state[parameter] = torch.from_numpy(np.array(array, order="C"))
    model.load_state_dict(state)


def _complete(variables: Mapping[str, Array], used: set[str], ignored: Sequence[str]) -> int:
    """How many variables of the training are left out; refuses others, and missing ones."""
    missing = sorted(used - set(variables))
    if missing:
        raise WeightsError(f"the checkpoint lacks {_listed(missing)}", DOWNLOAD)
    over = sorted(set(variables) - used)
    training = [name for name in over if OF_TRAINING.fullmatch(name)]
    unknown = [n for n in over if n not in training and not n.startswith(tuple(ignored))]
    if unknown:
        raise WeightsError(
            f"DTR has no place for {_listed(unknown)}", "leave variables out by --ignore BEGINNING"
        )
    return len(training)


def _listed(names: Sequence[str], most: int = 20) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _projections(variables: Mapping[str, Array], hidden: int) -> dict[str, Array]:
    """Both matrices, ``[projected, hidden]``; the identity where the checkpoint has neither."""
    there = [name for name in MATRICES if name in variables]
    if not there:
        return {name: np.eye(hidden, dtype=np.float32) for name in MATRICES}
    if len(there) == 1:
        (lacks,) = set(MATRICES) - set(there)
        raise WeightsError(f"the checkpoint lacks {lacks}", DOWNLOAD)
    found = {name: np.asarray(variables[name], np.float32) for name in MATRICES}
    if any(array.ndim != 2 or array.shape[1] != hidden for array in found.values()) or (
        len({array.shape for array in found.values()}) > 1
    ):
        told = " and ".join(f"{name} {array.shape}" for name, array in found.items())
        raise WeightsError(f"{told} are not both [projected, {hidden}]", DOWNLOAD)
    return found


def _config(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WeightsError(f"cannot read {str(path)!r}: {error}", DOWNLOAD) from error
    if not isinstance(found, dict):
        raise WeightsError(f"{str(path)!r} holds no object", DOWNLOAD)
    return found


def _tokenizer(transformers: Any, path: Path, config: Any) -> Any:
    """A TapasTokenizer; refuses words that the encoders have no vector for."""
    try:
        words = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise WeightsError(f"cannot read {str(path)!r}: {error}", DOWNLOAD) from error
    lacking = [word for word in SPECIAL if word not in words]
    if lacking:
        raise WeightsError(f"{str(path)!r} lacks {_listed(lacking)}", DOWNLOAD)
    if len(words) > config.vocab_size:
        raise WeightsError(
            f"{str(path)!r} has {len(words):,} words, the encoders {config.vocab_size:,}", DOWNLOAD
        )
    limit = int(config.max_position_embeddings)
    return transformers.TapasTokenizer(str(path), model_max_length=limit)


def main(arguments: list[str] | None = None) -> int:
    """Convert a checkpoint; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("checkpoint", type=Path, help="prefix of its files, as NAME/model.ckpt")
    parser.add_argument("folder", type=Path, help="to be made, for --weights")
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="BEGINNING",
        help="variables whose names begin so may be left out; may be repeated",
    )
    parser.add_argument(
        "--tensorflow",
        default=sys.executable,
        metavar="PYTHON",
        help="a Python that has TensorFlow, where this one has not",
    )
    given = parser.parse_args(arguments)
    try:
        with closing(Checkpoint(given.checkpoint, given.tensorflow)) as variables:
            assumed = convert(variables, given.checkpoint.parent, given.folder, given.ignore)
    except DbragError as error:
        print(f"{error.message}. {error.hint}".rstrip(), file=sys.stderr)
        return error.exit_code
    for line in assumed:
        print(line, file=sys.stderr)
    print(f"dbrag eval retrieval --method dtr --weights {given.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
