"""Run ``dbrag eval`` once for each value of one setting, and print the runs side by side.

``k``: tables shown to the reranking model (Figure 2a of the paper). ``l``: rows of each table
in the prompts of programs (Figure 2b). ``votes``: programs voted on. ``models``: chat models,
``provider:name`` (Table 2; with ``--task answers`` as writers of programs). Each run has a
folder of its own under ``--out``. A sweep that was killed goes on where it stopped when the
same command is given again.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, ModelError, UsageError
from dbrag.evaluation import run_eval
from dbrag.evaluation.experiments import RETRIEVAL_DEPTH
from dbrag.evaluation.records import RECORDS
from dbrag.evaluation.report import summary_table
from dbrag.evaluation.scripts import run_script
from dbrag.settings import Settings, load_settings

if TYPE_CHECKING:
    from dbrag.models.base import ChatModel, Embedder

KINDS = ("k", "l", "votes", "models")
ROWS = ("relevant", "random", "none")
_UNSAFE = re.compile(r"[^A-Za-z0-9.]+")


@dataclass(frozen=True)
class Planned:
    """One run: its folder's name, task, method and settings."""

    name: str
    task: str
    method: str
    settings: Settings


def main(
    arguments: Sequence[str] | None = None,
    *,
    chat_model: ChatModel | None = None,
    embedder: Embedder | None = None,
) -> int:
    """Run the sweep; the exit code: that of the first run that could not be made.

    Args:
        chat_model, embedder: objects to use instead of those that the settings name.
    """
    given = _parser().parse_args(arguments)
    summaries: dict[str, Mapping[str, Any]] = {}
    code = 0
    try:
        planned = plan(given, load_settings(config=given.config))
        for run in planned:
            try:
                summary = _evaluated(run, given, chat_model, embedder)
            except ModelError as error:  # of one model among several
                summary = {"not_run": {"reason": error.message, "command": error.hint}}
                code = code or error.exit_code
            if "not_run" in summary:
                told = summary["not_run"]
                print(f"{run.name} not run: {told['reason']}. {told['command']}", file=sys.stderr)
                code = code or ModelError.exit_code
            else:
                summaries[run.name] = summary
    except DbragError as error:
        print(f"{error.message}. {error.hint}".rstrip(), file=sys.stderr)
        return error.exit_code
    if summaries:
        print(summary_table(summaries), end="")
    return code


def plan(given: argparse.Namespace, settings: Settings) -> list[Planned]:
    """Every run of a sweep; wrong values are refused before the first one.

    Raises:
        UsageError: a value that the setting cannot have.
    """
    task = given.task or ("retrieval" if given.kind in ("k", "models") else "answers")
    if (given.kind == "k") != (task == "retrieval") and given.kind != "models":
        raise UsageError(f"a sweep over {given.kind} is no run of eval {task}", "leave --task out")
    method = given.method or ("rerank" if task == "retrieval" else "dbrag")
    by_rows = given.kind in ("k", "l")
    if given.rows and not by_rows:
        raise UsageError(f"a sweep over {given.kind} takes no --rows", "DBRAG_ROW_CONTEXT=…")
    runs = []
    for rows in given.rows or ([settings.row_context] if by_rows else [""]):
        for value in dict.fromkeys(given.values):
            name = f"{given.kind.removesuffix('s')}-{_UNSAFE.sub('-', value)}"
            changed = replace(settings, row_context=rows) if rows else settings
            name = f"{name}-{rows}" if rows else name
            runs.append(Planned(name, task, method, _with(changed, given.kind, value)))
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        raise UsageError(
            f"two of the values {given.values!r} would have one folder",
            "give them another --out each",
        )
    return runs


def _with(settings: Settings, kind: str, value: str) -> Settings:
    if kind == "models":
        return replace(settings, model=value)
    try:
        number = int(value)
    except ValueError as error:
        raise UsageError(
            f"{kind} must be a whole number, not {value!r}", f"sweep.py {kind} 2 4 …"
        ) from error
    if kind == "votes":
        return replace(settings, votes=number)
    if kind == "l":
        return replace(settings, context_rows=number, program_rows="context")
    if number > RETRIEVAL_DEPTH:
        raise UsageError(
            f"K is at most {RETRIEVAL_DEPTH}, the tables of a ranking, not {number!r}",
            "leave it out",
        )
    return replace(settings, rerank_k=number)


def _evaluated(
    run: Planned,
    given: argparse.Namespace,
    chat_model: ChatModel | None,
    embedder: Embedder | None,
) -> Mapping[str, Any]:
    folder = given.out / run.name

    def record(done: int, total: int, entry: Mapping[str, Any]) -> None:
        if done == total or done % 10 == 0:
            print(f"{run.name}: {done:,} of {total:,} questions", file=sys.stderr, flush=True)

    return run_eval(
        run.task,
        data=given.data,
        questions=given.questions,
        settings=run.settings,
        limit=given.limit,
        seed=given.seed,
        method=run.method,
        out=folder,
        resume=(folder / RECORDS).exists(),
        chat_model=chat_model,
        embedder=embedder,
        on_record=record,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("values", nargs="+", metavar="VALUE")
    parser.add_argument("--data", required=True, type=Path, help="the databases")
    parser.add_argument("--questions", required=True, type=Path, help="JSON or CSV")
    parser.add_argument("--out", required=True, type=Path, help="folder of the runs' folders")
    parser.add_argument("--config", help="settings; DBRAG_… variables change them")
    parser.add_argument("--limit", type=int, help="questions sampled")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--method", help="default: rerank, or dbrag for answers")
    parser.add_argument("--task", choices=("retrieval", "answers"), help="of models")
    parser.add_argument(
        "--rows", nargs="+", choices=ROWS, help="of k and l: a run for each (row_context)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
