"""From the name of a retrieval baseline to the method."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.errors import UsageError
from dbrag.evaluation.baselines.names import (
    CONTRIEVER,
    FROM_MODEL,
    BaselineOptions,
    is_baseline,
    parts_of,
)
from dbrag.evaluation.baselines.parameters import GREEDY, JAR, WALK

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbrag.evaluation.methods import RetrievalMethod, Tools


def make(method: str) -> Callable[[Tools], RetrievalMethod]:
    """What makes the method of that name from its tools."""
    return partial(_made, method)


def _made(method: str, tools: Tools) -> RetrievalMethod:
    """The method.

    Raises:
        UsageError: options that it has no use for, or an unusable file.
        ModelNotInstalled, WeightsError: packages or weights are missing.
    """
    from dbrag.evaluation.baselines import walks
    from dbrag.evaluation.baselines.packages import need
    from dbrag.evaluation.baselines.scorers import make_scorer, ranked

    tools.baseline.check(method)
    reranker, base = parts_of(method)
    if reranker == "jar":
        need("jar", "scipy")  # before an hour is spent on the base
    scorer = make_scorer(base, tools)
    if reranker == "jar":
        from dbrag.evaluation.baselines.jar import make_jar

        return make_jar(tools, scorer)
    if reranker:
        order = walks.ORDERS[reranker]
        return walks.reordered(order, scorer, tools.db.opened_index().adjacency, tools.catalog.refs)
    return ranked(scorer, tools.catalog.refs)


def configured(
    config: dict[str, Any], method: str, options: BaselineOptions, model: str
) -> dict[str, Any]:
    """A run's configuration with that of its baseline, without weights that play no part in it.

    Args:
        model: the chat model as it may be told.

    Raises:
        UsageError: options that the method has no use for, or a file that cannot be read.
    """
    options.check(method)
    if not is_baseline(method):
        return config
    found = {**config, "baseline": told(method, options)}
    if options.sub_questions == FROM_MODEL:
        found["baseline"]["model"] = model
    if parts_of(method)[1] != "hybrid":
        found.pop("weights", None)
    return found


def told(method: str, options: BaselineOptions) -> dict[str, Any]:
    """What the configuration tells of a baseline: parameters, and files by their hash.

    Raises:
        UsageError: options that it has no use for, or a file that cannot be read.
    """
    options.check(method)
    reranker, base = parts_of(method)
    found: dict[str, Any] = {}
    if base in ("contriever", "dtr"):
        name = options.weights
        is_folder = name is not None and Path(name).expanduser().is_dir()
        default = CONTRIEVER if base == "contriever" else None
        found["encoder"] = Path(str(name)).resolve().name if is_folder else name or default
    if reranker == "pagerank":
        found |= asdict(WALK)
    elif reranker == "greedy-join":
        found |= asdict(GREEDY)
    elif reranker == "jar":
        found |= {**asdict(JAR), "solver_s": options.solver_s}
        found["sub_questions"] = _origin(options.sub_questions)
    return found


def _origin(sub_questions: str | None) -> str:
    if sub_questions is None:
        return "the question itself"
    if sub_questions == FROM_MODEL:
        return FROM_MODEL
    try:
        data = Path(sub_questions).read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the sub-questions {sub_questions!r}: {error.strerror or error}",
            f"--sub-questions FILE, or --sub-questions {FROM_MODEL}",
        ) from error
    return f"file {sha256(data).hexdigest()[:16]}"
