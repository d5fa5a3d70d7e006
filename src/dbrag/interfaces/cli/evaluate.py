"""``dbrag eval retrieval | answers``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from dbrag.errors import ModelError, UsageError
from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.options import Run, common_options, membership_option, named, pass_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@click.group("eval")
@common_options
def evaluate() -> None:
    """Measure on a benchmark: records.jsonl and summary.json."""


def _eval_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        membership_option,
        click.option("--resume", is_flag=True, help="Go on where --out stopped."),
        click.option(
            "--out", metavar="DIR", callback=named, help="Folder of records.jsonl and summary.json."
        ),
        click.option("--method", metavar="NAME", help="What is measured (default: dbrag itself)."),
        click.option(
            "--seed", type=int, default=0, show_default=True, metavar="S", help="Of the sample."
        ),
        click.option("--limit", type=click.IntRange(1), metavar="N", help="Questions sampled."),
        click.option(
            "--questions", required=True, metavar="FILE", callback=named, help="JSON or CSV."
        ),
        click.option("--data", required=True, metavar="DIR", callback=named, help="The databases."),
    ):
        command = option(command)
    return command


@evaluate.command()
@_eval_options
@click.option(
    "--weights",
    metavar="NAME",
    callback=named,
    help="Of contriever or dtr: a folder, or on the hub.",
)
@click.option(
    "--sub-questions",
    metavar="FILE",
    callback=named,
    help='Of jar: JSON lines, or "model" to ask the chat model.',
)
@common_options
@pass_run
def retrieval(run: Run, /, **options: Any) -> int:
    """Recall of the tables found, over all databases under --data."""
    return _evaluate(run, "retrieval", options)


@evaluate.command()
@_eval_options
@click.option("--votes", type=click.IntRange(1, 100), metavar="N", help="Programs voted on.")
@common_options
@pass_run
def answers(run: Run, /, **options: Any) -> int:
    """Share of right answers, execution match."""
    return _evaluate(run, "answers", options)


def _evaluate(run: Run, task: str, options: dict[str, Any]) -> int:
    from dbrag.evaluation.baselines.names import FROM_MODEL, BaselineOptions
    from dbrag.evaluation.config import asks_chat, out_folder
    from dbrag.evaluation.experiments import run_eval
    from dbrag.evaluation.methods import check_method
    from dbrag.interfaces.cli.ask import tell_remote
    from dbrag.interfaces.cli.notices import LiveLine, index_text

    if run.sources:
        raise UsageError(
            f"eval reads the databases under --data, not --source {run.sources[0]!r}",
            "leave --source out: dbrag eval … --data DIR",
        )
    settings = run.settings(votes=options.pop("votes", None), membership=options.pop("membership"))
    method = check_method(task, options["method"])
    baseline = BaselineOptions(options.pop("weights", None), options.pop("sub_questions", None))
    chat = asks_chat(settings, task, method) or baseline.sub_questions == FROM_MODEL
    tell_remote(settings, chat=chat)
    folder = options["out"] = out_folder(options["out"], options["resume"], task, method)
    live = LiveLine(run)

    def record(done: int, total: int, entry: Mapping[str, Any]) -> None:
        live.show(f"{task}: {done:,} of {total:,} questions, last {entry.get('id', '')}")

    try:
        summary = run_eval(
            task,
            settings=settings,
            baseline=baseline,
            on_record=record,
            progress=lambda state: live.show(index_text(state)),
            **options,
        )
    except KeyboardInterrupt:
        live.clear()
        if folder.exists():
            output.note(f"what was done is kept: --resume --out {shlex.quote(str(folder))} goes on")
        raise
    finally:
        live.clear()
    if run.json:
        output.emit_json(summary)
    else:
        output.emit("\n".join(_summary_lines(summary)))
    return ModelError.exit_code if "not_run" in summary else 0


def _summary_lines(summary: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, value in summary.items():
        if name == "orders":
            lines += [line for order, told in value.items() for line in _order_lines(order, told)]
        elif name == "calibration":
            for kind, told in value.items():  # the bins are for --json and summary.json
                figures = {key: one for key, one in (told or {}).items() if key != "bins"}
                lines += [f"by {kind}: {_inner(figures)}"] if figures else []
        elif isinstance(value, dict):
            lines += [f"{name}: {_inner(value)}"] if value else []
        else:
            lines.append(f"{name}: {_number(value)}")
    return lines


def _order_lines(order: str, told: Mapping[str, Any]) -> list[str]:
    """A further order of the tables: its figures, and what the run's own gains over it."""
    scores = ", ".join(f"{name} {_number(v)}" for name, v in told.items() if name != "gain")
    gains = []
    for name, gain in told["gain"].items():
        low, high = gain["questions"]
        within = "" if low is None else f" ({low:+.4f} to {high:+.4f})"
        gains.append(f"{name} {gain['mean']:+.4f}{within}")
    return [f"order {order}: {scores}", f"  the run's own gains: {', '.join(gains)}"]


def _inner(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_number(inner)}" for name, inner in value.items())


def _number(value: Any) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:.4f}"
        case dict():
            return f"({_inner(value)})"
        case list() | tuple():
            return "[" + ", ".join(map(_number, value)) + "]"
        case _:
            return str(value)
